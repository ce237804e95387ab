"""A real browser to open pages in, with everything that it asked for and said."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


@dataclass
class Opened:
    """A page that is open, what it asked the network or the disk for, and what its console said."""

    page: Any
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def quiet(self) -> None:
        """Nothing was said on the console, and nothing asked for but the page itself."""
        assert self.console == []
        assert len(self.requests) == 1, self.requests


Open = Callable[..., AbstractContextManager[Opened]]


class Tab:
    """A tab that page after page is opened in, each as in a new one: that takes three times the work."""

    def __init__(self, browser: Any, script: bool) -> None:
        self.page = browser.new_context(java_script_enabled=script).new_page()
        self.seen = Opened(self.page)
        self.page.on("request", lambda request: self.seen.requests.append(request.url))
        self.page.on("console", lambda message: self.seen.console.append(message.text))
        self.page.on("pageerror", lambda error: self.seen.console.append(str(error)))

    def cleared(self, width: int, theme: str) -> Opened:
        """With nothing of the page before: no document, permission, emulated paper, or mouse over a part of it."""
        self.page.goto("about:blank")  # also since the same file at another place would be no new document
        self.page.context.clear_permissions()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="null", color_scheme=theme)
        self.page.mouse.move(0, 0)
        self.seen = Opened(self.page)
        return self.seen

    def left(self) -> None:
        """After a page that is as it should be: it keeps nothing in the browser, where the next one would find it."""
        assert self.page.evaluate("location.protocol") == "file:"
        assert self.page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0


@pytest.fixture(scope="package")
def browser(chromium: Path) -> Iterator[Any]:
    """Chromium of this machine, driven by Playwright, which downloads nothing. Ended before other rooms' tests: it
    holds an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=str(chromium), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(scope="package")
def opened(browser: Any) -> Open:
    """Opens a file: `with opened(path, width=390, theme="dark") as it: it.page…`."""
    free: dict[bool, Tab] = {}

    @contextmanager
    def open_page(
        file: Path, width: int = 1200, theme: str = "light", script: bool = True, at: str = "", ready: bool = True
    ) -> Iterator[Opened]:
        tab = free.pop(script, None) or Tab(browser, script)
        try:
            seen = tab.cleared(width, theme)
            seen.page.goto(file.as_uri() + at)
            if script and ready and seen.page.locator("#trials").count():
                seen.page.wait_for_selector("#trials-bar:not([hidden])")
            yield seen
            tab.left()
        except BaseException:
            tab.page.context.close()  # whatever state it is in
            raise
        free[script] = tab

    return open_page

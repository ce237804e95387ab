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

    @contextmanager
    def open_page(
        file: Path, width: int = 1200, theme: str = "light", script: bool = True, at: str = "", ready: bool = True
    ) -> Iterator[Opened]:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, java_script_enabled=script
        )
        seen = Opened(context.new_page())
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda error: seen.console.append(str(error)))
        seen.page.goto(file.as_uri() + at)
        if script and ready and seen.page.locator("#trials").count():
            seen.page.wait_for_selector("#trials-bar:not([hidden])")
        try:
            yield seen
        finally:
            context.close()

    return open_page

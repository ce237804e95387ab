"""Every command in the README and the docs parses, and what it names exists; so does what pages link to."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from harness import cli

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md", ROOT / "results" / "README.md", ROOT / "reports" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]  # fmt: skip
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
OURS = ("benchmarks/", "docs/", "harness/", "tests/", "results/reference")
"""Arguments that begin so name files of the repository."""


def commands(page: Path) -> Iterator[str]:
    """The lines of the page's `console` and `sh` blocks, continued lines joined; comments left out."""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in ("console", "sh"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.strip() and not line.lstrip().startswith("#"):
                    yield line.strip().removeprefix("$ ")


COMMANDS = list(dict.fromkeys(command for page in PAGES for command in commands(page)))
HARNESS = [command for command in COMMANDS if command.startswith("python -m harness ")]
SWEEPS = [command for command in HARNESS if shlex.split(command)[3] == "sweep" and "--resume" not in command]
PYTEST = [command for command in COMMANDS if command.startswith("pytest ")]
MAKE = [command for command in COMMANDS if command.startswith("make ")]
PIP = [command for command in COMMANDS if command.startswith("pip install ")]


def test_every_command_is_of_a_kind_that_is_checked_here() -> None:
    assert not set(COMMANDS) - {*HARNESS, *PYTEST, *MAKE, *PIP}
    assert len(HARNESS) > 20
    assert PYTEST
    assert MAKE
    assert PIP


@pytest.mark.parametrize("command", HARNESS)
def test_a_harness_command_parses(command: str) -> None:
    verb, *arguments = shlex.split(command)[3:]
    application = typer.main.get_command(cli.build())
    with application.make_context("harness", [verb, *arguments], resilient_parsing=True) as context:
        found = application.get_command(context, verb)  # type: ignore[attr-defined]
        assert found is not None, f"there is no verb '{verb}'"
        found.make_context(verb, list(arguments), parent=context)


@pytest.mark.parametrize("command", SWEEPS)
def test_a_sweep_plans(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    arguments = [argument for argument in shlex.split(command)[3:] if argument != "--dry-run"]
    code = cli.run([*arguments, "--dry-run"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert " trials, about " in captured.out


@pytest.mark.parametrize("command", COMMANDS)
def test_files_that_a_command_names_exist(command: str) -> None:
    for argument in shlex.split(command):
        if argument.startswith(OURS):
            assert (ROOT / argument).exists(), argument


@pytest.mark.parametrize("command", MAKE)
def test_a_make_command_has_its_target(command: str) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(command.split()[1:]) <= set(targets)


@pytest.mark.parametrize("command", PIP)
def test_a_pip_command_names_extras_that_exist(command: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r"\.\[([^\]]+)\]", command):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("command", PYTEST)
def test_a_pytest_command_collects_cells(command: str, tmp_path: Path) -> None:
    arguments = shlex.split(command)[1:]
    # Comparing needs a saved run, which tests/benchmarks has; here only the flag's value is parsed.
    arguments = [argument for argument in arguments if argument != "--benchmark-compare"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "--collect-only", "-p", "no:cacheprovider",
         "--benchmark-storage", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "bench_cells.py::test_step[" in done.stdout, done.stdout + done.stderr
    assert "unrecognized arguments" not in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def anchors(page: Path) -> set[str]:
    """The anchors that the headings of a Markdown page get."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}

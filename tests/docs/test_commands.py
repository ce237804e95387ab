"""Every command in the README and the docs parses, and what it names exists; so does what pages link to."""

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import cli
from harness.analysis.comparison import choose_margins, parse_share
from harness.cli._flags import keys_given
from harness.cli._sides import read_sides
from harness.spec.sweep import OF_SWEEPS
from tests.docs.printed import COMMANDS, FENCE, HARNESS, PAGES, ROOT, anchors
from tests.pytest_plugin.conftest import LOADED

LINK = re.compile(r"\]\(([^)\s]+)\)")
OURS = ("benchmarks/", "docs/", "harness/", "tests/", "results/reference")
"""Arguments that begin so name files of the repository."""


ELSEWHERE = ("--resume", "--engine benchmarks.", "--data tfrecord:", '--data "tfrecord:')
"""What goes on with a run, what an engine of one's own trains, and what files are read for: `test_extending.py` and
`test_prepare.py` run these."""
READERS = ("likes", "my_package", "promises")
"""Packages and modules that the reader is to have; `test_own_data.py` and `test_gate.py` run what the pages print of
the first and the last."""
SWEEPS = [
    command
    for command in HARNESS
    if shlex.split(command)[3] == "sweep" and not any(flag in command for flag in ELSEWHERE)
]
BUILDS = re.compile(r"--work collective .*--model ")
"""What asks for the gradients of models: a process of its own imports TensorFlow to build them."""
AB = [command for command in HARNESS if shlex.split(command)[3] == "ab" and "--resume" not in command]
REFERENCE = [
    command for command in HARNESS if command.startswith("python -m harness compare results/reference --along")
]
GATE = [command for command in COMMANDS if command.startswith("pytest ") and "--gate-" in command]
PYTEST = [command for command in COMMANDS if command.startswith("pytest ") and command not in GATE]
MAKE = [command for command in COMMANDS if command.startswith("make ")]
PIP = [command for command in COMMANDS if command.startswith("pip install ")]
SCRIPT = "python benchmarks/own_script.py"
"""`test_own_step.py` runs it, for fewer steps."""


def test_every_command_is_of_a_kind_that_is_checked_here() -> None:
    assert not set(COMMANDS) - {*HARNESS, *GATE, *PYTEST, *MAKE, *PIP, SCRIPT}
    assert len(HARNESS) > 40
    assert all((AB, REFERENCE, GATE, PYTEST, MAKE, PIP))


def parsed(command: str) -> dict[str, Any]:
    """What the command line gives the verb; fails when it does not parse."""
    verb, *arguments = shlex.split(command)[3:]
    whole = cli.command_line()
    if verb.startswith("--"):
        assert verb in {option for parameter in whole.params for option in parameter.opts}
        return {}
    with whole.make_context("harness", [verb, *arguments], resilient_parsing=True) as context:
        found = whole.get_command(context, verb)
        assert found is not None, f"there is no verb '{verb}'"
        return dict(found.make_context(verb, list(arguments), parent=context).params)


@pytest.mark.parametrize("command", HARNESS)
def test_a_harness_command_parses(command: str) -> None:
    parsed(command)


@pytest.mark.parametrize(
    "command", [pytest.param(one, marks=pytest.mark.tensorflow) if BUILDS.search(one) else one for one in SWEEPS]
)
def test_a_sweep_plans(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in READERS:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(ROOT)
    arguments = [argument for argument in shlex.split(command)[3:] if argument != "--dry-run"]
    code = cli.run([*arguments, "--dry-run"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert " trials, about " in captured.out


def specs(page: Path) -> Iterator[tuple[str, str]]:
    """The page's TOML blocks that begin with a file's name: name and text."""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "toml" and (name := re.match(r"# (\S+\.toml)\n", block)):
            yield name[1], block


@pytest.mark.parametrize("command", AB)
def test_an_ab_command_comes_to_two_sides(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in PAGES:
        for name, text in specs(page):
            (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    given = parsed(command)
    files = [Path(spec) for spec in (given["spec_a"], given["spec_b"]) if spec is not None]
    # Interpreters and revisions are the reader's; tests/run has both.
    sides = read_sides(files, keys_given(given, without=OF_SWEEPS), given["a"] or (), given["b"] or ())
    assert [side.name for side in sides] == ["a", "b"]
    asked = ((key, given[key]) for key in ("delta", "epsilon"))
    delta, epsilon = (None if text is None else parse_share(key, text) for key, text in asked)
    choose_margins(None, unpaired=False, delta=delta, epsilon=epsilon)


@pytest.mark.parametrize("command", REFERENCE)
def test_a_comparison_of_the_reference_run_works_as_printed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    arguments = shlex.split(command)[3:]
    if "--output" in arguments:
        arguments[arguments.index("--output") + 1] = str(tmp_path / "written")
    code = cli.run(arguments)
    captured = capsys.readouterr()
    assert code in (0, 1), captured.err
    assert re.search(r"\b\d+ (faster|slower|equivalent), ", captured.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_files_that_a_command_names_exist(command: str) -> None:
    for argument in shlex.split(command):
        if argument.startswith(OURS):
            assert (ROOT / argument).exists(), argument


@pytest.mark.parametrize("command", MAKE)
def test_a_make_command_has_its_target(command: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(command.split()[1:]) <= set(targets)


@pytest.mark.parametrize("command", PIP)
def test_a_pip_command_names_extras_that_exist(command: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extras in re.findall(r"\.\[([^\]]+)\]", command):
        assert set(extras.split(",")) <= set(project["optional-dependencies"])


@pytest.fixture
def collect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What a pytest in the repository's root says that it would run."""
    monkeypatch.chdir(ROOT)

    def call(*arguments: str) -> str:
        pytest.main([*arguments, "--collect-only", "-p", "no:cacheprovider"])
        captured = capsys.readouterr()
        assert "unrecognized arguments" not in captured.err
        return captured.out + captured.err

    return call


@pytest.mark.parametrize("command", PYTEST)
def test_a_pytest_command_collects_cells(command: str, tmp_path: Path, collect: Callable[..., str]) -> None:
    arguments = shlex.split(command)[1:]
    # Comparing needs a saved run, which tests/benchmarks has; here only the flag's value is parsed.
    arguments = [argument for argument in arguments if argument != "--benchmark-compare"]
    said = collect(*arguments, "--benchmark-storage", str(tmp_path))
    assert "bench_cells.py::test_step[" in said


@pytest.mark.parametrize("command", GATE)
def test_a_gate_command_collects_gate_tests(command: str, collect: Callable[..., str]) -> None:
    arguments = shlex.split(command)[1:]
    # A command that names no file is for a suite of the reader's; that its flags are known is what can be seen here.
    named = any(argument.startswith(OURS) for argument in arguments)
    said = collect(*LOADED, *arguments, *([] if named else ["benchmarks/gate_example.py"]))
    assert "gate_example.py::test_" in said


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


def test_the_recipe_for_going_on_names_every_verb_that_can() -> None:
    page = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^## Resume\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    verbs = cli.command_line().commands.items()
    resuming = {name for name, verb in verbs if any(flag.name == "resume" for flag in verb.params)}
    assert {name for name in resuming if name not in recipe} == set()

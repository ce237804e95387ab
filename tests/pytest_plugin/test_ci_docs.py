"""`docs/ci.md` and the two workflows beside it: what they say is there, and works."""

import importlib.util
import itertools
import re
import shlex
from pathlib import Path

import pytest

from harness import cli
from harness.pytest_plugin.as_json import GATE, TEST
from harness.pytest_plugin.marks import gate_cell
from harness.report.values import Keys

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
FILES = {
    name: (ROOT / "docs" / "ci" / name).read_text(encoding="utf-8") for name in ("github-actions.yml", "gitlab-ci.yml")
}
VALUES = {
    "GATE_TESTS": "benchmarks/gate_example.py",
    "INSTALL": "-e . -c constraints.txt",
    "AGAINST": "HEAD",
    "CI_MERGE_REQUEST_DIFF_BASE_SHA": "HEAD",
    "CI_PROJECT_DIR": ".",
}
"""What the variables of the workflows are, in this repository."""


def fenced(language: str) -> list[str]:
    """The blocks of the page in one language, without the indentation that a list gives them."""
    blocks = re.findall(rf"^( *)```{language}\n(.*?)^ *```", PAGE, re.DOTALL | re.MULTILINE)
    return ["".join(line.removeprefix(indent) for line in block.splitlines(True)) for indent, block in blocks]


def steps(name: str) -> list[str]:
    """The shell commands of a workflow."""
    pattern = r"^ +- run: (.*)$" if name.startswith("github") else r"^    - (\w+ .*)$"
    found = re.findall(pattern, FILES[name], re.MULTILINE)
    return [re.sub(r"\s+#.*", "", command) for command in found if not command.startswith("if")]


def arguments(command: str) -> list[str]:
    """The words of a command, its variables filled in as a shell would."""
    return shlex.split(re.sub(r"\$(\w+)", lambda match: VALUES[match[1]], command))


COMMANDS = list(
    dict.fromkeys(
        [
            *(command for name in FILES for command in steps(name)),
            *(line for block in fenced("bash") for line in block.splitlines()),
        ]
    )
)
HARNESS = [command for command in COMMANDS if command.startswith("python -m harness ")]
PYTEST = [command for command in COMMANDS if re.match(r"(python -m )?pytest ", command)]
OTHER = [command for command in COMMANDS if command not in (*HARNESS, *PYTEST)]


@pytest.mark.parametrize("name", list(FILES))
def test_a_workflow_is_yaml(name: str) -> None:
    """By PyYAML where it is installed; else tabs and odd indentation, which YAML forbids or punishes."""
    if importlib.util.find_spec("yaml") is not None:
        import yaml  # type: ignore[import-untyped, unused-ignore]

        assert isinstance(yaml.safe_load(FILES[name]), dict)
    for line in FILES[name].splitlines():
        assert "\t" not in line
        assert (len(line) - len(line.lstrip())) % 2 == 0, line
        assert re.match(r"\s*(#|- |[\w.-]+:( |$)|$|\S+$)", line), line


def test_workflows_run_what_is_expected() -> None:
    for name in FILES:
        found = " ; ".join(steps(name))
        assert "pip install" in found
        assert "--gate-against" in found
        assert "results/" in FILES[name]
    assert "fetch-depth: 0" in FILES["github-actions.yml"]
    assert "if: ${{ always() }}" in FILES["github-actions.yml"].partition("upload-artifact")[2]
    assert "cache-dependency-path" not in FILES["github-actions.yml"]  # files that a reader's repository may lack
    assert 'GIT_DEPTH: "0"' in FILES["gitlab-ci.yml"]
    for variable in ("INSTALL", "GATE_TESTS"):
        for text in FILES.values():
            assert f"{variable}: {VALUES[variable]} " in text


def test_every_command_is_of_a_kind_that_is_checked_here() -> None:
    assert HARNESS
    assert PYTEST
    for command in OTHER:
        assert re.match(r"(python -m )?pip install |git config --global --add safe\.directory ", command), command


@pytest.mark.parametrize("command", HARNESS)
def test_a_harness_command_parses(command: str) -> None:
    verb, *rest = arguments(command)[3:]
    application = cli.command_line()
    with application.make_context("harness", [verb, *rest], resilient_parsing=True) as context:
        found = application.get_command(context, verb)  # type: ignore[attr-defined]
        assert found is not None, f"there is no verb '{verb}'"
        found.make_context(verb, list(rest), parent=context)


@pytest.mark.parametrize("command", PYTEST)
def test_a_pytest_command_collects_the_example(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(command)
    words = [str(tmp_path / word) if word == "gate.xml" else word for word in words[words.index("pytest") + 1 :]]
    example = [] if VALUES["GATE_TESTS"] in words else [VALUES["GATE_TESTS"]]
    monkeypatch.chdir(ROOT)
    code = pytest.main(["-p", "no:cacheprovider", *example, *words, "--collect-only"])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    assert "test_one_replica_is_no_slower" in said.out


@pytest.mark.parametrize("command", [command for command in OTHER if "pip install" in command])
def test_files_that_an_installation_names_exist(command: str) -> None:
    words = arguments(command)
    for flag, file in itertools.pairwise(words):
        if flag == "-c":
            assert (ROOT / file).is_file()


def test_the_marks_of_the_page_name_cells() -> None:
    calls = re.findall(r"training_gate\((\w+=[^)]*)\)", "\n".join(fenced("python")))
    assert len(calls) > 5
    for call in calls:
        values = eval(f"dict({call})", {"n": 2})
        gate_cell({"strategy": "mirrored", **values} if set(values) == {"replicas"} else values, "test")


def test_the_modules_of_the_page_are_python() -> None:
    for block in fenced("python"):
        compile(block, "ci.md", "exec")


def test_the_options_table_has_every_option_and_ini_key(pytestconfig: pytest.Config) -> None:
    table = PAGE[PAGE.index("## Options") :]
    options = {name for name in vars(pytestconfig.option) if name.startswith("gate_")}
    assert len(options) == 10
    for name in options:
        assert re.search(rf"^\| `--{name.replace('_', '-')}[ `]", table, re.MULTILINE)
    for key in (
        "gate_against",
        "gate_delta",
        "gate_epsilon",
        "gate_blocks",
        "gate_max_blocks",
        "gate_results",
        "gate_strict",
    ):
        assert f"`{key}`" in table
        pytestconfig.getini(key)


@pytest.mark.parametrize("keys", [GATE, TEST], ids=["whole", "test"])
def test_every_key_of_the_gates_file_is_explained(keys: Keys) -> None:
    section = PAGE[PAGE.index("## A file for the job") :].partition("\n## ")[0]
    assert not [key for key in keys if f"`{key}`" not in section]


def test_the_page_names_no_place_of_one_machine() -> None:
    assert not re.search(r"/home/|/work/|/root/|/tmp/|localhost:|pypi", PAGE + "".join(FILES.values()))

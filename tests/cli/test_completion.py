"""Completion in a real bash, colours, and the help of every verb."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.record import RunStore
from harness.report.export import exporters
from tests.record.examples import RUN_ID, manifest

Run = Callable[..., tuple[int, str, str]]
VERBS = ("ab", "compare", "doctor", "export", "history", "list", "report", "show", "sweep", "validate")
ASK = """
eval "$(_HARNESS_COMPLETE=source_bash harness)"
read -ra COMP_WORDS <<< "$1"
[ "${1: -1}" = " " ] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_harness_completion harness
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def bash(tmp_path: Path) -> Callable[[str], list[str]]:
    """What bash offers for a line, with the script that `harness` gives it, in a folder with one run."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    RunStore.create(tmp_path / "results", manifest()).close()
    script = tmp_path / "bin" / "harness"
    script.parent.mkdir()
    code = "import sys; sys.argv[0] = 'harness'; from harness.__main__ import main; main()"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    script.chmod(0o755)
    surroundings = {
        **os.environ,
        "PATH": f"{script.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path.cwd()),
    }

    def offered(line: str) -> list[str]:
        done = subprocess.run(
            ["bash", "--norc", "-c", ASK, "bash", line], cwd=tmp_path, env=surroundings, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    return offered


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("harness hi", ["history"]),
        ("harness show ", ["latest", RUN_ID]),
        (f"harness report {RUN_ID[:6]}", [RUN_ID]),
        ("harness sweep --cross-device", ["--cross-device-op"]),
        ("harness sweep --strategy none,mir", ["none,mirrored"]),
        ("harness export latest --format windows-", ["windows-parquet"]),
        ("harness report latest --overlay l", ["latest"]),
        ("harness compare latest --along cross_d", ["cross_device_op"]),
        ("harness compare latest --correction h", ["holm"]),
        ("harness compare latest --format m", ["markdown"]),
        ("harness prepare digits files --with d", ["dask"]),
        ("harness prepare digits files --with local,b", ["local,beam"]),
    ],
)
def test_bash_completes_verbs_flags_runs_and_names(
    bash: Callable[[str], list[str]], line: str, offers: list[str]
) -> None:
    assert bash(line) == offers


def test_to_list_the_verbs_no_record_is_loaded() -> None:
    code = "import sys; from harness.cli import build; build(); assert 'harness.record' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    code = "import sys; sys.argv[0] = 'harness'; from harness.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "_HARNESS_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
    )
    assert "_HARNESS_COMPLETE=complete_" + shell in done.stdout.replace("env ", "")


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example_that_names_it(harness: Run, verb: str) -> None:
    _, out, _ = harness(verb, "--help")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    assert f"harness {verb}" in plain[plain.index("Example") :]


def test_the_help_of_export_names_every_format_that_is_found(harness: Run) -> None:
    words = re.findall(r"[\w-]+", harness("export", "--help")[1])
    assert set(exporters()) <= set(words)


def test_no_color_is_a_flag_of_every_verb_and_leaves_nothing_behind(harness: Run) -> None:
    for verb in VERBS:
        assert "--no-color" in harness(verb, "--help")[1]
    assert harness("list", "--no-color")[0] == 0
    assert "NO_COLOR" not in os.environ

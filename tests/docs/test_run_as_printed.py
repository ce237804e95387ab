"""The recipes for models and data: each command runs as it is printed, but with few and short windows, of few
photographs, and without the base case on the whole machine."""

import re
from pathlib import Path

import pytest

from harness.record import load_run
from tests.cli.real import run
from tests.docs.printed import ROOT, commands_of, short

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
RECIPES = (
    "Models by name",
    "Optimizers",
    "Several steps in one call",
    "Your own model",
    "Your own data",
    "Your own training step",
    "Other data",
    "The input pipeline",
)
"""The commands of `Prepare data` and `TFRecord files` go together: `test_prepare.py` runs them, and `test_own_data.py`
that for several inputs and targets."""
SECTIONS = {section.partition("\n")[0]: section for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)}
PRINTED = [
    command
    for title in RECIPES
    for command in commands_of(SECTIONS[title])
    if re.search(r" -m harness (?!.*likes:)", command)
]
OF_THE_NETWORK = [command for command in PRINTED if "--data tfds:" in command]
"""The set would be downloaded."""
ON_GPUS = [command for command in PRINTED if "--device gpu" in command]
"""`test_commands.py` plans them: where there is no GPU nothing is measured."""
SAID_TO_BE_UNSUPPORTED = "gradient_accumulation_steps"
"""What the recipe for optimizers says that `mirrored` cannot do."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's, with the modules of the repository."""
    made = tmp_path_factory.mktemp("reader")
    (made / "benchmarks").symlink_to(ROOT / "benchmarks")
    return made


@pytest.mark.parametrize("command", [command for command in PRINTED if command not in [*ON_GPUS, *OF_THE_NETWORK]])
def test_what_is_printed_measures_and_proves_each_of_its_cells(folder: Path, tmp_path: Path, command: str) -> None:
    done = run(*short(command), f"--results={tmp_path}", f"--data-dir={folder / 'data'}", folder=folder)
    assert done.returncode in (0, *([1] if " ab " in command else [])), done.stderr
    [made] = [path for path in tmp_path.iterdir() if path.is_dir()]
    trials = load_run(made).trials
    assert any(trial.measured for trial in trials)
    others = [trial for trial in trials if not trial.measured and SAID_TO_BE_UNSUPPORTED not in str(trial.reason)]
    assert [(trial.cell.label, trial.status, trial.reason) for trial in others] == []

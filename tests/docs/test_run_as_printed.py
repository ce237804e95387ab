"""The recipes for models and data: each command runs as it is printed, but with few and short windows, of few
photographs, with the perceptron and `sgd` where it names none, and without the base case on the whole machine."""

import re
import shlex
from pathlib import Path

import pytest

from harness.analysis.explain import explanations_of
from harness.record import TrialRecord, load_run
from harness.record.explain import NO_PULL, NO_PUSH
from tests.cli.owned import THREADS
from tests.cli.real import SMALL, run
from tests.docs.printed import MADE_STEP, MARKED_SCRIPT, OWN_TEXT, ROOT, commands_of, short
from tests.explained import FEW, one_block_each, with_arms

pytestmark = pytest.mark.slow

PAGE = (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8")
RECIPES = (
    "Models by name",
    "Optimizers",
    "Several steps in one call",
    "Micro-batches",
    "Your own model",
    "Your own data",
    "Your own training step",
    "Other data",
    "The input pipeline",
    "Collectives",
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
OF_OTHER_ENGINES = [command for command in PRINTED if "--engine " in command]
"""Each is installed into an environment of its own."""
ON_GPUS = [command for command in PRINTED if "--device gpu" in command]
"""`test_commands.py` plans them: where there is no GPU nothing is measured."""
[OWN_STEP] = [command for command in PRINTED if "--model benchmarks.own_train_step:make_model " in command]
ELSEWHERE = [*ON_GPUS, *OF_THE_NETWORK, *OF_OTHER_ENGINES, OWN_TEXT, MADE_STEP, MARKED_SCRIPT]
SAID = "gradient_accumulation_steps|broadcast|all_gather"
"""Of the reasons of what is unsupported: what the recipe for optimizers says that `mirrored` cannot do, and that for
collectives that not every op has."""


def said_to_be_unsupported(trial: TrialRecord) -> bool:
    """Whether the page says that it cannot run."""
    return trial.status == "unsupported" and re.search(SAID, str(trial.reason)) is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's, with the modules of the repository."""
    made = tmp_path_factory.mktemp("reader")
    (made / "benchmarks").symlink_to(ROOT / "benchmarks")
    return made


@pytest.mark.parametrize("command", [command for command in PRINTED if command not in ELSEWHERE])
def test_what_is_printed_measures_and_proves_each_of_its_cells(folder: Path, tmp_path: Path, command: str) -> None:
    done = run(*short(command), f"--results={tmp_path}", f"--data-dir={folder / 'data'}", folder=folder)
    assert done.returncode in (0, *([1] if " ab " in command else [])), done.stderr
    [made] = [path for path in tmp_path.iterdir() if path.is_dir()]
    trials = load_run(made).trials
    assert any(trial.measured for trial in trials)
    others = [trial for trial in trials if not (trial.measured or said_to_be_unsupported(trial))]
    assert [(trial.cell.label, trial.status, trial.reason) for trial in others] == []
    if command == OWN_STEP:
        assert (2, 2) in {(trial.cell.get("workers"), trial.cell.replicas) for trial in trials}
        for trial in trials:  # the loss of both workers is the one that is reported
            assert (trial.status, trial.reason, trial.checks.loss) == ("ok", None, True)


def explained_as_printed() -> list[str]:
    """Those that explain; `--try` measures for minutes."""
    return [command for command in commands_of(SECTIONS["Why is it not faster?"]) if "--try" not in command]


@pytest.mark.parametrize("command", explained_as_printed())
def test_what_is_printed_takes_a_step_apart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """By one block, and a few instruments: what more add is no matter of the command. Every instrument of these cells
    is in `tests/engines/tensorflow/test_instruments.py`."""
    one_block_each(monkeypatch)
    with_arms(monkeypatch, lambda _: (*FEW, NO_PULL, NO_PUSH))
    given = shlex.split(command)[3:]
    where, sizes = f"--results={tmp_path}", ["--windows=5", "--max-warmup=0", "--window=0.02", "--timeout=60"]
    if "latest" in given:
        of = ["--strategy=mirrored", "--replicas=2", THREADS]
        swept = run("sweep", *SMALL, *of, where, folder=folder)
        assert swept.returncode == 0, swept.stderr
    else:
        sizes += ["--model=mlp", "--data=synthetic", "--optimizer=sgd"]
    done = run(*given, *sizes, "--trials=2", where, folder=folder)
    assert done.returncode == 0, done.stderr
    [made] = tmp_path.glob("*-explain-*")
    for found in explanations_of(load_run(made)):
        assert found.blocks
        assert not found.lacking


def test_what_this_machine_can_do_is_measured_kept_and_measured_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.run.limits.BUDGET_S", 0.0)  # as few rounds as give an interval
    for number, command in enumerate(commands_of(SECTIONS["What this machine can do at most"]), start=1):
        done = run(*shlex.split(command)[3:], f"--results={tmp_path}", folder=folder)
        assert done.returncode == 0, done.stderr
        assert len(list(tmp_path.glob("limits-*.json"))) == number

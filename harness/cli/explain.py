"""`harness explain`: where the time of a step goes, and what binds it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli._completion import told_names
from harness.cli._flags import key_flags, keys_given, read_values, run_to_resume
from harness.cli._offered import RESULTS, argument, option, resume_option, with_names
from harness.spec.sweep import AXES, OF_STEP, sweep_from

if TYPE_CHECKING:
    from harness.run.kinds.explain import ExplainSettings

VERB = "explain"
HELP = "Say where the time of a step goes: input, communication, update, dispatch, contention or compute."
EXAMPLES = "Example: harness explain --strategy mirrored --replicas 2 --batch-size 32"
NOT_TAKEN = ("name", *OF_STEP)
"""Keys of a spec that have no meaning here."""
ONE = {"strategy": ["mirrored"], "replicas": [2], "batch_size": [32]}
"""The cell that is explained where nobody names an axis."""


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.cli._measuring import progress_for
    from harness.cli.show import tell
    from harness.record.reading import load_run
    from harness.run.kinds.explain import explain
    from harness.run.runner import resume

    flags = keys_given(given, without=NOT_TAKEN)
    progress = progress_for(given["quiet"], given["json"])
    earlier = run_to_resume(given)
    if earlier is None:
        settings = _settings(given["spec"], flags)
        path = explain(settings, given["results"], ["harness", *sys.argv[1:]], progress)
    else:
        resume("explain", path := earlier, progress)
    tell(load_run(path), given["results"], given["json"])
    return 0


def _settings(spec: Path | None, flags: dict[str, str]) -> "ExplainSettings":
    from harness.run.kinds.explain import SETTINGS, ExplainSettings
    from harness.run.request import asked_matrix
    from harness.spec.cell import trained

    values, source = read_values(spec, flags)
    sweep = sweep_from({**SETTINGS, **({} if AXES & values.keys() else ONE), **values}, source)
    matrix = asked_matrix(sweep)
    return ExplainSettings(sweep, [trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base])


COMMAND = with_names(told_names)
FLAGS = [
    argument("spec", Path | None, "A spec whose cells are explained.", "[SPEC.toml]", show_default=False),
    *key_flags(without=NOT_TAKEN),
    RESULTS,
    resume_option("Go on with a run that was stopped.", "explain"),
    option("quiet", bool, "Print the result only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]

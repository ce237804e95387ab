"""`harness validate`: the method measured on this machine, false alarms and power."""

import sys
from typing import TYPE_CHECKING, Any

from harness.cli._completion import told_names
from harness.cli._flags import key_flags, keys_given, run_to_resume
from harness.cli._options import RESULTS, option, resume_option, with_names
from harness.errors import NothingMeasured, UsageError
from harness.looks import MOST_BLOCKS, QUIET_BLOCKS, looks_within
from harness.spec.axes import NO_STRATEGY, TABLE, USUAL_STRATEGY
from harness.spec.cell import BASE
from harness.spec.sweep import OF_OTHER_WORK, OF_SWEEPS, sweep_from
from harness.spec.text import value_from
from harness.visible import json_text

if TYPE_CHECKING:
    from harness.run.kinds.validate import ValidateSettings

VERB = "validate"
HELP = "Measure the method itself here: false alarms, power, and the noise floor that compare and ab then use."
EXAMPLES = "Example: harness validate --quick"

NOT_TAKEN = ("name", *OF_OTHER_WORK, *OF_SWEEPS)
"""Keys of a spec that have no meaning here."""
DISTRIBUTING = frozenset(name for key in BASE for name in TABLE[key].kinds or (key,))
"""Keys of a spec that say how a training is distributed: with one of them the cells are the spec's own."""
BATCH_SIZE = [32]
"""Smaller steps are noisier: of 8 examples each a pair of windows scattered by 15 %, of 32 by 8 % (one replica)."""
MOST_ROUNDS = 1000
"""All are planned, and sealed, before the first; sixty take an hour."""
MOST = f"Most blocks of a decision. Default: {QUIET_BLOCKS}."


def command(**given: Any) -> int:
    """Run the verb."""
    flags = keys_given(given, without=NOT_TAKEN)
    earlier = run_to_resume(given)
    from harness.analysis.comparison.sides import check_records
    from harness.analysis.validation.summary import validation_of
    from harness.cli._measuring import progress_for
    from harness.cli._table import surface
    from harness.record.reading import load_run
    from harness.record.validation import recorded_validation, with_recorded_rules, write_validation
    from harness.report.kinds.validation import validation_text
    from harness.run.kinds.validate import validate
    from harness.run.resume import resume

    progress = progress_for(given["quiet"], given["json"])
    if earlier is None:
        path = validate(_settings(flags, given), given["results"], ["harness", *sys.argv[1:]], progress)
    else:
        resume("validation", path := earlier, progress)
    run = load_run(path)
    check_records(run)
    record = with_recorded_rules(validation_of(run), path)
    if record != recorded_validation(path):  # an earlier version's, or one that has lost it
        write_validation(path, record)
    text = json_text(record.model_dump(mode="json")) if given["json"] else validation_text(record, path, surface())
    print(text, end="")
    # invalid: no block had two good trials
    if run.manifest.status == "finished" and all(effect.verdicts.keys() <= {"invalid"} for effect in record.effects):
        raise NothingMeasured.of(f"{trial.status}: {trial.reason}" for trial in run.trials if not trial.measured)
    return 0


def _settings(flags: dict[str, str], given: dict[str, Any]) -> "ValidateSettings":
    from harness.analysis.comparison.margins import choose_margins, parse_share
    from harness.run.kinds.decision import WINDOWING, AbSettings
    from harness.run.kinds.validate import FULL_ROUNDS, QUICK_ROUNDS, ValidateSettings, equal_revision
    from harness.run.request import asked_matrix
    from harness.trial.engines import engines_that

    values: dict[str, Any] = {
        **WINDOWING,
        "batch_size": BATCH_SIZE,
        **{key: value_from(key, text) for key, text in flags.items()},
    }
    able = engines_that(lambda catalogue: catalogue.plants)
    if lacking := [engine for engine in values.get("engine", ()) if engine not in able]:
        raise UsageError(
            f"engine: given {lacking[0]!r}, expected {' or '.join(able)}: what validate plants is in its programs"
        )
    if DISTRIBUTING & flags.keys():
        matrix = asked_matrix(sweep_from(values, VERB))
        cells = [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    else:  # one replica and two, as the goals are stated
        cells = []
        for strategy, replicas in ((NO_STRATEGY, 1), (USUAL_STRATEGY, 2)):
            matrix = asked_matrix(sweep_from({**values, "strategy": [strategy], "replicas": [replicas]}, VERB))
            cells += [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]

    def share(key: str) -> float | None:
        return None if given[key] is None else parse_share(f"--{key}", given[key])

    rounds = given["rounds"] or (QUICK_ROUNDS if given["quick"] else FULL_ROUNDS)
    margins = choose_margins(None, unpaired=False, delta=share("delta"), epsilon=share("epsilon"))
    ab = AbSettings(margins, looks_within(given["max_blocks"] or QUIET_BLOCKS))
    sweep = sweep_from(values, VERB)
    return ValidateSettings(sweep, cells, ab, rounds, given["quick"], *equal_revision(sweep, cells))


COMMAND = with_names(told_names)
FLAGS = [
    *key_flags(without=NOT_TAKEN),
    option("quick", bool, "A few minutes: few rounds, wide limits.", False),
    option(
        "rounds", int | None, "Rounds; each decides A/A, every third a planted slow-down too.", min=1, max=MOST_ROUNDS
    ),
    option("delta", str | None, "Smallest difference that counts: 1%.", metavar="SHARE"),
    option("epsilon", str | None, "Margin of equivalence: 3%.", metavar="SHARE"),
    option("max_blocks", int | None, MOST, min=2, max=MOST_BLOCKS, metavar="BLOCKS"),
    RESULTS,
    resume_option("Go on with a validation that was stopped.", "validation"),
    option("quiet", bool, "Print the result only.", False),
    option("json", bool, "Print the record as JSON.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]

"""`harness explain`: where the time of a step goes, and what binds it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli._completion import told_names
from harness.cli._flags import OF_SWEEPS, key_flags, keys_given, run_to_resume
from harness.cli._options import RESULTS, argument, option, resume_option, with_names
from harness.errors import NothingMeasured, UsageError
from harness.spec.sweep import AXES, OF_OTHER_WORK, Sweep, load_sweep, sweep_from
from harness.spec.text import value_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.analysis.explain import Explanation
    from harness.analysis.tries import Try
    from harness.run.kinds.explain import ExplainSettings

VERB = "explain"
HELP = "Say where the time of a step goes: input, communication, update, dispatch, contention or compute."
EXAMPLES = "Examples: harness explain --strategy mirrored --replicas 2 --batch-size 32\n\nharness explain latest"
IGNORED = tuple(key for key in OF_SWEEPS if key not in ("trials", "trace"))
"""Keys of a spec that say how a sweep repeats its cells: of a spec that sweeps use too they are left out."""
NOT_TAKEN = ("name", "isolate", *OF_OTHER_WORK, *IGNORED)
"""Keys of a spec that have no meaning here."""
ONE = {"strategy": ["mirrored"], "replicas": [2], "batch_size": [32]}
"""The cell that is explained where nobody names an axis."""


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.analysis.explain import explanations_of
    from harness.cli._measuring import progress_for
    from harness.cli.show import tell
    from harness.record.reading import load_run
    from harness.report.words.brief import where_kept
    from harness.run.kinds.explain import explain
    from harness.run.resume import resume

    flags = keys_given(given, without=NOT_TAKEN)
    progress = progress_for(given["quiet"], given["json"])
    earlier = run_to_resume(given, "try_levers")
    if earlier is None:
        settings = _settings(given, flags)
        path = explain(settings, given["results"], ["harness", *sys.argv[1:]], progress)
    else:
        resume("explain", path := earlier, progress)
    tries = _try_levers(path, given) if given["try_levers"] else ()
    tell(run := load_run(path), given["results"], given["json"])
    if not given["json"]:
        print("\n".join(where_kept(path)))
    _refuse_nothing(explanations_of(run))
    if tries and not any(one.judged for one in tries):
        raise NothingMeasured(f"no lever could be measured: {tries[0].record.setting}: {tries[0].reason}")
    return 0


def _try_levers(path: Path, given: dict[str, Any]) -> "Sequence[Try]":
    from harness.cli._measuring import progress_for
    from harness.run.kinds.tries import try_levers
    from harness.run.progress.base import say_line

    silent = given["quiet"] or given["json"]
    return try_levers(
        path,
        lambda: progress_for(given["quiet"], given["json"]),
        lambda line: None if silent else say_line(line, sys.stderr),
    )


def _refuse_nothing(found: "Sequence[Explanation]") -> None:
    """NothingMeasured where no cell has a block in which all took turns."""
    if all(one.blocks == 0 for one in found):
        reasons = [reason for one in found for reason in one.lacking.values()]
        raise NothingMeasured(f"nothing was measured: {next(iter(reasons), 'no block is complete')}")


def _settings(given: dict[str, Any], flags: dict[str, str]) -> "ExplainSettings":
    spec: Path | None = given["spec"]
    keys = {key: value_from(key, text) for key, text in flags.items()}
    if spec is None or spec.suffix == ".toml" or _is_spec(spec):
        return _settings_of_spec(spec, keys)
    return _settings_of_run(spec, keys, given)


def _is_spec(path: Path) -> bool:
    """Whether it is there, and no folder or file of a run."""
    from harness.record.reading import MANIFEST_NAME

    try:
        return path.exists() and not (path.is_dir() or (path.parent / MANIFEST_NAME).is_file())
    except OSError:  # nothing can be called so; to look for a run of that name says why
        return False


def _settings_of_run(name: Path, keys: dict[str, Any], given: dict[str, Any]) -> "ExplainSettings":
    """Of the cells of a sweep that are worth it; a line says which these are."""
    from harness.record.reading import load_run, resolve_run
    from harness.report.words.choice import choice_words
    from harness.run.kinds.of_sweep import settings_of_sweep
    from harness.run.progress.base import say_line

    run = load_run(resolve_run(str(name), given["results"]))
    settings, choice = settings_of_sweep(run, keys)
    if not (given["quiet"] or given["json"]):
        say_line(choice_words(choice, run.manifest.run_id), sys.stderr)
    return settings


def _settings_of_spec(spec: Path | None, keys: dict[str, Any]) -> "ExplainSettings":
    from harness.run.kinds.explain import SETTINGS, ExplainSettings
    from harness.run.request import asked_matrix
    from harness.spec.cell import trained

    asked = ({} if spec is None else load_sweep(spec)) | keys
    source = VERB if spec is None else str(spec)
    for key in ("work", "step"):
        if asked.get(key, default := Sweep.model_fields[key].default) != default:
            raise UsageError(f"{source}: {key}: explain takes trainings of a model, whose steps it knows; leave it out")
    sweep = sweep_from({**SETTINGS, **({} if AXES & asked.keys() else ONE), **asked}, source, unused=IGNORED)
    matrix = asked_matrix(sweep)
    return ExplainSettings(sweep, [trained(cell) for cell in matrix.cells if cell.cell_id not in matrix.added_base])


_OF = "A spec whose cells are explained; or a sweep's run, of which those are that one asks about: the fastest first."
COMMAND = with_names(told_names)
FLAGS = [
    argument("spec", Path | None, _OF, "[SPEC.toml | RUN]", show_default=False),
    *key_flags(without=NOT_TAKEN),
    option("try_levers", bool, "Then measure up to three of the flags that fit, by ab.", False, flag="--try"),
    RESULTS,
    resume_option("Go on with a run that was stopped.", "explain"),
    option("quiet", bool, "Print the result only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]

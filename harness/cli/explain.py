"""`harness explain`: where the time of a step goes, and what binds it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli._completion import told_names
from harness.cli._flags import key_flags, keys_given, run_to_resume
from harness.cli._options import LIMITS_FIRST, RESULTS, argument, option, resume_option, with_names
from harness.spec.sweep import NOT_OF_EXPLAIN, OF_OTHER_WORK
from harness.spec.text import value_from

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.analysis.tries import Try
    from harness.run.kinds.explain import ExplainSettings

VERB = "explain"
HELP = "Say where the time of a step goes: input, communication, update, dispatch, contention or compute."
EXAMPLES = "Examples: harness explain --strategy mirrored --replicas 2 --batch-size 32\n\nharness explain latest"
NOT_TAKEN = ("name", *OF_OTHER_WORK, *NOT_OF_EXPLAIN)
"""Keys of a spec that have no meaning here."""


def command(**given: Any) -> int:
    """Run the verb."""
    from harness.analysis.explain import explanations_of
    from harness.analysis.tries import nothing_told
    from harness.cli._measuring import progress_for
    from harness.cli.show import tell
    from harness.record.reading import load_run
    from harness.report.words.brief import where_kept
    from harness.run.kinds.explain import explain
    from harness.run.limits import renew_limits
    from harness.run.resume import resume

    flags = keys_given(given, without=NOT_TAKEN)
    progress = progress_for(given["quiet"], given["json"])
    earlier = run_to_resume(given, "try_levers")
    if earlier is None:
        settings = _settings(given, flags)
        if given["limits"]:
            renew_limits(given["results"], given["quiet"] or given["json"])
        path = explain(settings, given["results"], ["harness", *sys.argv[1:]], progress)
    else:
        resume("explain", path := earlier, progress)
    tries = _try_levers(path, given) if given["try_levers"] else ()
    tell(run := load_run(path), given["results"], given["json"])
    if not given["json"]:
        print("\n".join(where_kept(path)))
    if (nothing := nothing_told(explanations_of(run), tries)) is not None:
        raise nothing
    return 0


def _try_levers(path: Path, given: dict[str, Any]) -> "Sequence[Try]":
    from harness.cli._measuring import progress_for
    from harness.run.kinds.tries import try_levers
    from harness.run.progress import say_line

    silent = given["quiet"] or given["json"]
    return try_levers(
        path,
        lambda: progress_for(given["quiet"], given["json"]),
        lambda line: None if silent else say_line(line, sys.stderr),
    )


def _settings(given: dict[str, Any], flags: dict[str, str]) -> "ExplainSettings":
    """Of the cells that are asked for; lines say which of a run these are, and what of a spec makes no sense."""
    from harness.report.words.choice import choice_words
    from harness.run.kinds.explain_settings import settings_asked
    from harness.run.progress import say_line

    keys = {key: value_from(key, text) for key, text in flags.items()}
    settings, choice = settings_asked(given["spec"], keys, given["results"])
    told = [f"left out: {item.words}" for item in settings.left_out] if choice is None else [choice_words(choice)]
    for line in told if not (given["quiet"] or given["json"]) else ():
        say_line(line, sys.stderr)
    return settings


_OF = "A spec whose cells are explained; or a sweep's run, of which those are that one asks about: the fastest first."
COMMAND = with_names(told_names)
FLAGS = [
    argument("spec", Path | None, _OF, "[SPEC.toml | RUN]", show_default=False),
    *key_flags(without=NOT_TAKEN),
    option("try_levers", bool, "Then measure up to three of the flags that fit, by ab.", False, flag="--try"),
    LIMITS_FIRST,
    RESULTS,
    resume_option("Go on with a run that was stopped.", "explain"),
    option("quiet", bool, "Print the result only.", False),
    option("json", bool, "Print one JSON object.", False),
]

__all__ = ["EXAMPLES", "FLAGS", "HELP", "VERB", "command"]

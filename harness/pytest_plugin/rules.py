"""By what the gate decides: the margins, and what is known of this machine."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.analysis.comparison_margins import choose_margins, parse_share
from harness.analysis.verdict import Margins
from harness.environment import Facts, facts
from harness.errors import UsageError
from harness.pytest_plugin.options import GateOptions
from harness.record.validation import ValidationRecord, find_validation


@dataclass(frozen=True)
class Rules:
    """The same for every cell of a run of pytest."""

    options: GateOptions
    margins: Margins
    validation: ValidationRecord | None
    """Of this machine, when there is one below the results."""
    machine: Facts
    command: Sequence[str]
    """The command line of pytest, for the records."""

    def place(self, folder: Path) -> str:
        """A folder as a person at the working folder would type it."""
        return str(folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder)

    @property
    def flags(self) -> str:
        """What another command on these records needs, each flag after a blank: where they are, and the margins."""
        given = {"delta": self.options.delta, "epsilon": self.options.epsilon}
        if self.options.results != Path.cwd() / "results":
            given["results"] = self.place(self.options.results)
        return "".join(f" --{key} {shlex.quote(value)}" for key, value in given.items() if value)


def rules_of(options: GateOptions, config: pytest.Config) -> Rules:
    """The rules of this run. UsageError, in one line that names the option, on a margin that is none."""
    machine = facts()
    identity = machine.get("machine.id")
    validation = find_validation(options.results, identity if isinstance(identity, str) else None)
    command = ["pytest", *map(str, config.invocation_params.args)]
    return Rules(options, _margins(options, validation), validation, machine, command)


def _margins(options: GateOptions, validation: ValidationRecord | None) -> Margins:
    """What was given, else from the noise floor: of sides at different times for a stored baseline."""
    delta, epsilon = (
        None if text is None else parse_share(f"gate_{key}", text)
        for key, text in (("delta", options.delta), ("epsilon", options.epsilon))
    )
    try:
        margins = choose_margins(validation, unpaired=options.mode == "baseline", delta=delta, epsilon=epsilon)
    except UsageError as error:
        raise UsageError(str(error).replace("--", "--gate-")) from None
    return margins if delta is None else replace(margins, source=margins.source.replace("the command line", "given"))

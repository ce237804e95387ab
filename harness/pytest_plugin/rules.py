"""By what the gate decides: the margins, and what is known of this machine."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.analysis.comparison.margins import choose_margins, parse_share
from harness.analysis.estimates.verdict import Margins
from harness.environment import Facts, facts
from harness.errors import UsageError
from harness.looks import QUIET_BLOCKS
from harness.pytest_plugin.options import GateOptions
from harness.record.validation import ValidationRecord, find_validation
from harness.run.kinds.decision import most_blocks

DRIFT = 0.10
"""What two runs at different times may differ by on a machine of which nothing is known. On two shared cores one cell
against itself scattered by 7 % one after the other (`benchmarks/goals/README.md`)."""


@dataclass(frozen=True)
class GateRules:
    """The same for every cell of a run of pytest."""

    options: GateOptions
    margins: Margins
    validation: ValidationRecord | None
    """Of this machine, when there is one below the results."""
    machine: Facts
    command: Sequence[str]
    """The command line of pytest, for the records."""

    @property
    def unknown_drift(self) -> Margins | None:
        """The margins that a difference from a stored baseline must go beyond to be a failure, unless a delta of the
        person's own allows for the machine's drift; None where delta is all. A validation tells what lies minutes
        apart, and a baseline is of another day."""
        if self.options.mode != "baseline" or self.options.delta is not None:
            return None
        delta = max(DRIFT, self.margins.delta)
        return Margins(delta, max(delta, self.margins.epsilon), "this machine's drift between days is not known")

    @property
    def most(self) -> int:
        """Blocks of a cell at most. A stored baseline has no looks: each of its cells takes so many trials."""
        if self.options.mode == "against":
            return self.options.blocks or self.options.max_blocks or most_blocks(self.validation)
        return self.options.blocks or self.options.max_blocks or QUIET_BLOCKS

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


def rules_of(options: GateOptions, config: pytest.Config) -> GateRules:
    """The rules of this run. UsageError, in one line that names the option, on a margin that is none."""
    machine = facts()
    validation = find_validation(options.results, machine.get("machine.id"))
    command = ["pytest", *map(str, config.invocation_params.args)]
    return GateRules(options, _margins(options, validation), validation, machine, command)


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

"""One run of pytest: which cells its gate tests name, what was measured of them, and how each test ends."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from harness.errors import HarnessError, Interrupted, UsageError
from harness.plan import estimate
from harness.pytest_plugin import words
from harness.pytest_plugin.marks import GateCell
from harness.pytest_plugin.options import GateOptions
from harness.pytest_plugin.result import GateResult, judged_together
from harness.pytest_plugin.rules import GateRules, rules_of
from harness.pytest_plugin.telling import progress_lines, teller
from harness.pytest_plugin.undecided import UndecidedGate
from harness.report.export.base import refuse_place
from harness.run.kinds.sides import Side
from harness.run.progress import Progress, duration
from harness.spec.cell import cell_names
from harness.visible import no_command, one_line, plural

if TYPE_CHECKING:
    from harness.pytest_plugin.baselines import Baseline


class GateSession:
    """The gate tests of a run. `settle` is called once they are selected, `result` when the first one runs."""

    def __init__(
        self,
        config: pytest.Config,
        options: GateOptions,
        items: Sequence[pytest.Item],
        cells: Mapping[str, GateCell],
    ) -> None:
        """`cells` are those of `items`, by node id."""
        self._config = config
        self._options = options
        self._cells = cells
        self._items = list(items)
        self._rules: GateRules | None = None
        self._sides: dict[str, tuple[Side, Side]] = {}
        self._without_sides: dict[str, str] = {}
        """Why a cell has none, by its key: it is skipped."""
        self._base: Baseline | None = None
        self._results: dict[str, GateResult] | None = None

    def settle(self) -> None:
        """Find the margins, and what is measured against, before anything is measured.

        pytest.UsageError, one line: a revision or a baseline that is not there, a margin that is none.
        """
        try:
            if self._options.json is not None:
                refuse_place(self._options.json, "FILE")
            self._rules = rules_of(self._options, self._config)
            if self._options.mode == "against":
                self._settle_sides(self._options.against or "")
            elif self._options.mode == "baseline":
                from harness.pytest_plugin.baselines import baseline

                self._base = baseline(self._rules)
        except HarnessError as error:
            raise pytest.UsageError(_of_file(error)) from None

    def _settle_sides(self, revision: str) -> None:
        from harness.pytest_plugin.against import check_revision, sides

        check_revision(revision)
        for cell in self._wanted().values():
            try:
                self._sides[cell.key] = sides(cell, revision)
            except UsageError as error:
                self._without_sides[cell.key] = str(error)

    def _wanted(self) -> dict[str, GateCell]:
        """The cells that will be judged: those of tests that a mark skips are not measured."""
        items = [item for item in self._items if not _is_skipped(item)]
        return {self._cells[item.nodeid].key: self._cells[item.nodeid] for item in items}

    def result(self, item: pytest.Item) -> GateResult:
        """What was found of the test's cell; the first call measures all of them."""
        if self._results is None:
            self._results = {}  # whatever comes of it, there is no second try
            try:
                with pytest.MonkeyPatch.context() as here:
                    for folder in reversed(self._config.getini("pythonpath")):  # which pytest adds to its own process
                        here.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
                    self._results = self._measure()
            except (Interrupted, KeyboardInterrupt) as error:
                pytest.exit(str(error) or "interrupted", returncode=Interrupted.exit_code)
        cell = self._cells[item.nodeid]
        missing = GateResult(cell.cell.label, "failed", "it was not measured: see the first test of the gate")
        return self._results.get(cell.key, missing)

    def judge(self, item: pytest.Item) -> None:
        """End the test by its cell's result: fail, skip or warn; nothing when it is no slower."""
        result = self.result(item)
        item.user_properties.extend(words.properties(result))
        said = words.undecided if result.end == "undecided" else words.failure
        if result.fails(self._options.strict):
            pytest.fail(no_command(said(result)), pytrace=False)
        if result.end == "skipped":
            pytest.skip(one_line(result.reason))
        if result.end == "undecided":
            item.warn(UndecidedGate(words.undecided(result)))

    def summarise(self, reporter: pytest.TerminalReporter) -> None:
        """The table of all tests that were judged."""
        if found := self._found():
            reporter.section(words.title(self._options), sep="=", bold=True)
            for line in words.table(found):
                reporter.write_line(line)

    def write_json(self) -> int:
        """Write the file that was asked for, if one was; the exit code, which is not 0 where it cannot be written."""
        from harness.pytest_plugin.as_json import write_json

        if self._rules is not None and self._results:
            try:
                write_json(self._rules, self._found())
            except HarnessError as error:
                teller(self._config)(f"ERROR: {_of_file(error)}")
                return error.exit_code
        return 0

    def _found(self) -> list[tuple[str, GateResult]]:
        """Each test that has a result, by its node id."""
        rows = [(item.nodeid, (self._results or {}).get(self._cells[item.nodeid].key)) for item in self._items]
        return [(test, result) for test, result in rows if result is not None]

    def _measure(self) -> dict[str, GateResult]:
        assert self._rules is not None
        cells = list(self._wanted().values())
        names = _names(cells)
        say = teller(self._config)
        say(f"\ntraining gate: {self._announcement(cells, self._rules)}{self._beside()}")
        progress = progress_lines(self._config, say)
        if self._options.mode == "against":
            results = self._measure_against(cells, names, self._rules, progress)
        else:
            results = self._measure_alone(cells, names, self._rules, progress)
        return dict(zip(results, judged_together(list(results.values())), strict=True))

    def _measure_against(
        self, cells: Sequence[GateCell], names: dict[str, str], rules: GateRules, progress: Progress
    ) -> dict[str, GateResult]:
        from harness.pytest_plugin.against import measure_against

        results, among = {}, sum(cell.key in self._sides for cell in cells)
        for cell in cells:
            name, both = names[cell.key], self._sides.get(cell.key)
            results[cell.key] = (
                GateResult(name, "skipped", self._without_sides[cell.key])
                if both is None
                else measure_against(cell, name, both, rules, among, progress)
            )
        return results

    def _measure_alone(
        self, cells: Sequence[GateCell], names: dict[str, str], rules: GateRules, progress: Progress
    ) -> dict[str, GateResult]:
        from harness.pytest_plugin import baselines

        if self._base is not None:
            return baselines.against_baseline(names, cells, self._base, rules, progress)
        measure = baselines.saved if self._options.mode == "save" else baselines.proved
        return measure(names, cells, rules, progress)

    def _announcement(self, cells: Sequence[GateCell], rules: GateRules) -> str:
        """How many cells, against what, and how long that takes on a machine that does nothing else."""
        count = plural(len(cells), "cell")
        if self._options.mode == "prove":
            return f"{count} proved, not timed"
        sides = 2 if self._options.mode == "against" else 1
        most = rules.most
        one_each = {cell.key: cell.sweep.model_copy(update={"trials": most}) for cell in cells}
        seconds = sum(estimate(one_each[cell.key], [cell.cell] * sides).seconds for cell in cells)
        to = {"against": f"against {self._options.against}", "baseline": f"against baseline {self._options.baseline}"}
        what = to.get(self._options.mode, f"for the baseline {self._options.save}")
        return f"measuring {count} {what}, at most {most} blocks each, about {duration(seconds)} if all are needed"

    def _beside(self) -> str:
        """What must be known beforehand of the other side."""
        from harness.pytest_plugin.against import same_code

        if self._base is not None and self._base.left_out:
            return f"; {self._base.left_out_words}"
        return same_code(self._options.against or "") if self._options.mode == "against" else ""


def _of_file(error: HarnessError) -> str:
    """What is said of the file, by the name of the option here."""
    return str(error).replace("--output", "--gate-json")


def _names(cells: Sequence[GateCell]) -> dict[str, str]:
    """What each cell is called, by its key: always with what is the user's own, which a label leaves out."""
    called = cell_names([cell.cell for cell in cells if not cell.is_own_step])
    names = {}
    for cell in cells:
        name, model = called.get(cell.cell.cell_id, cell.cell.subject), cell.cell.subject
        names[cell.key] = name if ":" not in model or model in name else f"{name}, {model}"
    return names


def _is_skipped(item: pytest.Item) -> bool:
    """Whether a mark is known to skip the test. A condition given as text is pytest's to evaluate, later."""
    if item.get_closest_marker("skip") is not None:
        return True
    conditions = (
        condition
        for mark in item.iter_markers("skipif")
        for condition in (*mark.args, mark.kwargs.get("condition", False))
    )
    return any(not isinstance(condition, str) and bool(condition) for condition in conditions)

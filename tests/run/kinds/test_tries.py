"""`explain --try`: levers measured by `ab`, each a run of its own that the run of `explain` names, on stand-ins."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.estimates.verdict import Margins
from harness.analysis.levers import LEVERS
from harness.analysis.tries import Try
from harness.errors import Interrupted, UsageError
from harness.protocol.messages import Outcome, Request
from harness.record.explain import EMPTY, NO_REDUCTION, ExplainPlan
from harness.record.manifest import ComparisonRecord
from harness.record.reading import Run, list_runs, load_manifest
from harness.record.store import RunStore
from harness.report.tables.tries import try_tables
from harness.run.kinds.decision import AbSettings
from harness.run.kinds.sides import sides_of
from harness.run.kinds.tries import MOST_TRIES, try_levers
from harness.spec.cell import TrainingCell
from harness.spec.work import Cell
from tests.comparisons import stored
from tests.explained import RATIOS, explain_run
from tests.run.benches import ExplainBench, press_ctrl_c
from tests.run.fakes import WELL, FakeZygote, Play

HIERARCHICAL, TO_ONE = "cross_device_op=hierarchical_copy", "cross_device_op=reduction_to_one_device"
BATCH, PACK = "batch_size=64", "bytes_per_pack=1048576"


def lever_of(cell: Cell) -> str:
    """What sets a cell apart from the one that is explained; empty for that one, and for its input by itself."""
    if not isinstance(cell, TrainingCell):
        return ""
    if cell.cross_device_op != "auto":
        return f"cross_device_op={cell.cross_device_op}"
    if cell.packing != "default":
        return cell.packing
    return BATCH if cell.batch_size == 64 else ""


class TryBench(ExplainBench):
    """Half of a step is communication; a lever takes so many times as long as the step without it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, patch)
        self.takes = {HIERARCHICAL: 1.0, TO_ONE: 0.8, BATCH: 3.0, PACK: 1.2}
        self.ends: dict[str, Outcome] = {}
        self.stops_in: str | None = None
        """The lever during one of whose trials Ctrl-C is pressed."""
        self.looks = (3,)
        self.well_before = 0
        """Trials of each lever that go well before it is stopped, or its end comes."""
        self._of_lever: Counter[str] = Counter()
        patch.setattr("harness.run.kinds.ab.side_zygotes", self._both)
        patch.setattr("harness.run.kinds.tries.settings_for", lambda _: AbSettings(Margins(), looks=self.looks))
        for name in ("WINDOWING", "OF_UNLIKE_STEPS"):
            patch.setattr(f"harness.run.kinds.sides.{name}", {"windows": 5, "max_warmup": 0, "window": 0.01})

    @contextlib.contextmanager
    def _both(self, *_: object) -> Iterator[dict[str, FakeZygote]]:
        with self._alive() as zygote:
            yield {"a": zygote, "b": zygote}

    def _plays(self, request: Request) -> Play:
        share = {NO_REDUCTION: 0.5, EMPTY: 0.01}.get(request.instrument, 1.0)
        lever = lever_of(request.cell) if request.task == "trial" else ""
        self._of_lever[lever] += 1
        is_well = self._of_lever[lever] <= self.well_before
        if lever and lever == self.stops_in and not is_well:
            self.stops_in = None
            return Play(1, press_ctrl_c)
        seconds = 0.1 * share * self.takes.get(lever, 1.0)
        outcome = WELL if is_well else self.ends.get(lever, WELL)
        return Play(seconds=lambda number: seconds + 1e-6 * (number % 2), outcome=outcome)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TryBench:
    return TryBench(tmp_path, monkeypatch)


def verdicts(tried: tuple[Try, ...]) -> dict[str, str]:
    return {one.record.setting: one.verdict for one in tried}


def test_three_levers_of_what_binds_the_step_are_measured_beside_the_cell_as_it_is(bench: TryBench) -> None:
    tried = try_levers(bench.begin())
    assert verdicts(tried) == {PACK: "slower", HIERARCHICAL: "equivalent", TO_ONE: "faster"}
    assert {one.record.part for one in tried} == {"communication"}
    assert [one.faster for one in tried] == [False, False, True]


def test_each_try_is_an_ab_run_that_the_run_of_explain_names(bench: TryBench) -> None:
    path = bench.begin()
    tried = try_levers(path)
    kept = load_manifest(path).part(ExplainPlan).tries
    assert [one.run_id for one in kept] == [one.record.run_id for one in tried]
    for record in kept:
        manifest = load_manifest(path.parent / str(record.run_id))
        a, b = manifest.part(ComparisonRecord).sides
        assert (manifest.status, manifest.looks and manifest.looks.after) == ("finished", [3])
        assert (a.cell_id, a.settings) == (record.cell_id, {})
        assert [f"{key}={value}" for key, value in b.settings.items()] == [record.setting]
        assert manifest.command[-2:] == ["--b", record.setting]


def test_a_lever_that_cannot_be_measured_leaves_its_place_to_the_next(bench: TryBench) -> None:
    bench.ends[HIERARCHICAL] = Outcome(status="unsupported", reason="no such op here")
    tried = try_levers(bench.begin())
    assert list(verdicts(tried)) == [PACK, HIERARCHICAL, TO_ONE, BATCH]
    assert sum(one.judged for one in tried) == MOST_TRIES
    assert "no such op here" in (tried[1].reason or "")


def test_a_lever_that_makes_no_sense_does_not_lose_the_rest(bench: TryBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(base: dict[str, Any], a: list[str], b: list[str], *, windowed: bool) -> Any:
        if b == [HIERARCHICAL]:
            raise UsageError("side b: it makes no sense")
        return sides_of(base, a, b, windowed=windowed)

    monkeypatch.setattr("harness.run.kinds.tries.sides_of", refusing)
    tried = try_levers(bench.begin())
    assert verdicts(tried) == {PACK: "slower", HIERARCHICAL: "not measured", TO_ONE: "faster", BATCH: "slower"}
    assert (tried[1].record.run_id, tried[1].reason) == (None, "side b: it makes no sense")


@pytest.mark.parametrize(("stopped", "well_before"), [(HIERARCHICAL, 0), (TO_ONE, 1)])
def test_tries_that_were_stopped_go_on_where_they_were(bench: TryBench, stopped: str, well_before: int) -> None:
    path = bench.begin()
    bench.stops_in, bench.well_before = stopped, well_before
    with pytest.raises(Interrupted, match="harness explain --try --resume"):
        try_levers(path)
    begun = [one.run_id for one in load_manifest(path).part(ExplainPlan).tries]
    tried = try_levers(path)
    assert [one.record.run_id for one in tried][: len(begun)] == begun
    assert verdicts(tried) == {PACK: "slower", HIERARCHICAL: "equivalent", TO_ONE: "faster"}
    assert len(list_runs(path.parent)) == 1 + MOST_TRIES
    assert try_levers(path) == tried


@pytest.mark.parametrize(("looks", "reason"), [((3,), "1 pair of trials"), ((6,), "no verdict before the first look")])
def test_a_lever_that_crashes_after_a_good_block_has_no_verdict_and_says_why(
    bench: TryBench, looks: tuple[int, ...], reason: str
) -> None:
    bench.looks, bench.well_before = looks, 1
    bench.ends[HIERARCHICAL] = Outcome(status="crashed", reason="it is gone")
    tried = try_levers(bench.begin())
    assert [one.record.setting for one in tried if not one.judged] == [HIERARCHICAL]
    [said] = [row[3] for row in try_tables(tried)[0].rows if row[1] == HIERARCHICAL]
    assert said.startswith(f"undecided: {reason}")
    assert sum(one.judged for one in tried) == MOST_TRIES


def test_a_lever_of_a_run_of_several_engines_is_tried_with_the_interpreter_of_its_own_alone(bench: TryBench) -> None:
    path = bench.begin()
    with RunStore.open_for_resume(path) as store:
        of_several = {"engine": ["tensorflow", "jax"], "engine_python": "jax=/no/such/python"}
        sweep = store.manifest.sweep.model_copy(update=of_several)
        store.update_manifest(store.manifest.model_copy(update={"sweep": sweep}))
    assert [one.reason for one in try_levers(path)] == [None] * MOST_TRIES


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (explain_run(crashed=dict.fromkeys(RATIOS, "no GPU")), "what binds the steps is not known"),
        (explain_run(), "no flag is left for what the steps are bound by"),
    ],
)
def test_where_nothing_is_tried_the_line_says_so_and_whether_what_binds_is_known(
    run: Run, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.analysis.advice.LEVERS", dict.fromkeys(LEVERS, ()))
    said: list[str] = []
    assert try_levers(stored(run, tmp_path), say=said.append) == ()
    assert said == [f"nothing to try: {why}"]


def test_a_line_announces_each_lever(bench: TryBench) -> None:
    said: list[str] = []
    path = bench.begin()
    try_levers(path, say=said.append)
    assert said[0] == f"trying {PACK} on mirrored ×2 b32, for its communication"
    assert len(said) == MOST_TRIES

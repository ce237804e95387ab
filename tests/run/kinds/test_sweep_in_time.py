"""A sweep with a limit on its time: as many blocks as should end within it, and two at least."""

from pathlib import Path
from typing import Any

import pytest

from harness.analysis.summary import summarise
from harness.record import load_run
from harness.report.words.brief import brief_lines
from harness.run.progress import Quiet
from tests.run.fakes import Bench
from tests.run.swept import CELLS


class SlowBlocks(Quiet):
    """The clock of a machine on which each block takes ten seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def block(self, number: int, blocks: int, trials: int) -> None:
        self.now += 10.0


@pytest.mark.parametrize(("seconds", "blocks"), [(0.0, 5), (1.0, 2), (29.0, 2), (30.0, 3), (45.0, 4), (3600.0, 5)])
def test_after_two_blocks_another_begins_only_if_it_should_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, blocks: int
) -> None:
    clock = SlowBlocks()
    monkeypatch.setattr("harness.run.kinds.sweep.time", clock)
    bench = Bench(tmp_path, CELLS, sweep={"trials": 5, "time": seconds}, progress=clock)
    run = bench.start()
    assert sorted((t.cell_id, t.block) for t in run.trials) == sorted(
        (item.cell_id, block) for item in CELLS for block in range(blocks)
    )
    assert clock.done == clock.total
    assert run.complete
    assert load_run(bench.path).manifest.status == "finished"
    summary = summarise(run.store.manifest, run.trials)
    assert (summary.blocks, summary.no_time_for) == (blocks, 5 - blocks)
    said = f"There was no time for {5 - blocks} of 5 blocks"
    assert [line.removeprefix(said) for line in brief_lines(summary) if line.startswith(said)] == {
        2: [" beside the two that an interval needs, which is wide then: give it a longer --time, or fewer cells."],
        5: [],
    }.get(blocks, ["."])


def test_blocks_come_in_the_order_that_they_have_without_a_limit_on_time(tmp_path: Path) -> None:
    def blocks(folder: str, **sweep: Any) -> list[list[list[str]]]:
        bench = Bench(tmp_path / folder, CELLS, sweep={"trials": 4, **sweep})
        return [block for plan in bench.start().store.manifest.plans for block in plan.blocks]

    assert blocks("limited", time=3600.0) == blocks("unlimited")


def test_a_finished_run_that_had_no_time_for_all_blocks_gets_no_more_when_it_is_resumed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, CELLS, sweep={"trials": 4, "time": 0.001})
    bench.start()
    assert bench.resume().complete
    assert len(load_run(bench.path).trials) == 2 * len(CELLS)

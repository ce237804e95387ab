"""Work that is counted in tokens or in bytes says so in every table, figure and export, and never says examples."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.analysis import summarise
from harness.analysis.comparison import compare_runs
from harness.analysis.estimates.verdict import Margins
from harness.analysis.history.series import history
from harness.record import Run
from harness.report.comparison.as_json import comparison_json
from harness.report.comparison.table import comparison_table
from harness.report.export import exporters
from harness.report.history.words import history_table
from harness.report.page.report import render
from harness.report.tables.cells import cell_frame
from harness.report.tables.frames import trial_frame, window_frame
from harness.report.terminal.interim import so_far
from harness.report.terminal.run import run_text
from harness.spec.collective import CollectiveCell
from harness.spec.quantity import Quantity, Work
from harness.spec.shape import Shape
from harness.spec.work import CELL_KINDS, Cell, OwnStepCell, kind_of_work
from tests.report.quantities import run_of
from tests.synthetic import make_cell, make_run

TOKENS = OwnStepCell(step="my_package.train:make_step", amount=4096, quantity="tokens")


@pytest.fixture
def transfer() -> Iterator[type[Cell]]:
    """A kind of work that exists for the length of a test: entering its class is all that it takes."""

    @kind_of_work("transfer")
    class TransferCell(Cell):
        kind: Literal["transfer"] = "transfer"
        op: str
        size: int
        workers: int = 2

        @property
        def work(self) -> Work:
            return Work(Quantity("bytes"), self.size)

        @property
        def subject(self) -> str:
            return self.op

        @property
        def label(self) -> str:
            return f"{self.op} {self.size} B"

        @property
        def shape(self) -> Shape:
            return Shape(workers=self.workers)

        @property
        def replicas_in_sync(self) -> int:
            return self.workers

    yield TransferCell
    del CELL_KINDS["transfer"]


def everything_said(run: Run, tmp_path: Path) -> dict[str, str]:
    """What every surface says of the run, by surface."""
    summary = summarise(run.manifest, run.trials)
    said = {
        "page": render(run.manifest, run.trials, summary),
        "show": run_text(run.manifest, run.trials, summary, 160, False)
        + run_text(run.manifest, run.trials, summary, 60, False),
        "interim": "\n".join(so_far(summary)),
        "frames": " ".join(
            [*trial_frame(run.trials).columns, *window_frame(run.trials).columns, *cell_frame([run]).columns]
        ),
        "history": str(history_table(history([run]))),
        "record": run.trials[0].model_dump_json(),
    }
    for name, exporter in exporters().items():
        target = tmp_path / name
        exporter.export(run, target)
        files = [target] if target.is_file() else [file for file in target.rglob("*") if file.is_file()]
        said[name] = "\n".join(file.read_bytes().decode("utf-8", "replace") for file in files)
    other = run_of(list(run.manifest.cells), tmp_path, seed=2)
    comparison = compare_runs(run, other, Margins())
    said["compare"] = str(comparison_table(comparison)) + json.dumps(comparison_json(comparison))
    return said


def test_no_surface_says_examples_of_work_that_is_counted_in_tokens(tmp_path: Path) -> None:
    said = everything_said(run_of([TOKENS, TOKENS.model_copy(update={"amount": 8192})], tmp_path), tmp_path)
    assert [name for name, text in said.items() if "example" in text.lower()] == []
    units = {"page", "show", "interim", "history", "compare", "markdown", "github-action-bigger"}
    assert [name for name in units if "tokens/s" not in said[name]] == []
    for name in ("csv", "cells", "windows", "frames", "compare"):
        assert "throughput_tokens_per_s" in said[name]


def test_a_training_of_a_model_of_text_is_told_in_tokens_everywhere(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"model": "gpt", "data": "text", "tokens": 32}
    cells = [make_cell("mirrored", n, batch, **keys) for n in (1, 2) for batch in (16, 64)]
    said = everything_said(run_of(cells, tmp_path), tmp_path)
    units = {"page", "show", "interim", "history", "compare", "markdown", "github-action-bigger"}
    assert [name for name in units if "tokens/s" not in said[name]] == []
    assert [name for name, text in said.items() if "examples/s" in text or "per_example" in text] == []


def test_a_kind_of_work_is_one_entry_and_its_unit_goes_everywhere(transfer: type[Cell], tmp_path: Path) -> None:
    cells = [transfer(op="all_reduce", size=2**size) for size in (20, 24)]
    run = run_of(cells, tmp_path)
    assert run.manifest.cells == cells
    said = everything_said(run, tmp_path)
    assert [name for name, text in said.items() if "example" in text.lower()] == []
    assert "bytes/s" in said["page"]
    assert "throughput_bytes_per_s" in said["csv"]
    assert "cell.op" in said["csv"]


def test_no_surface_says_examples_of_collectives_and_all_say_bytes(tmp_path: Path) -> None:
    keys: dict[str, Any] = {"device": "virtual-cpu", "collective": "all_reduce", "strategy": "mirrored", "replicas": 2}
    run = run_of([CollectiveCell(size=2**size, **keys) for size in (10, 20)], tmp_path)
    said = everything_said(run, tmp_path)
    assert [name for name, text in said.items() if "example" in text.lower()] == []
    assert [name for name in ("page", "history", "compare") if "bytes/s" not in said[name]] == []
    for name in ("csv", "cells", "windows", "frames", "compare"):
        assert "throughput_bytes_per_s" in said[name]
    assert "busbw GB/s" in said["show"]
    assert "busbw GB/s" in said["page"]
    assert "busbw GB/s" in said["markdown"]


def test_figures_of_different_units_stand_in_different_rankings_and_columns(tmp_path: Path) -> None:
    examples = OwnStepCell(step=TOKENS.step, amount=64)
    run = run_of([TOKENS, examples], tmp_path)
    summary = summarise(run.manifest, run.trials)
    assert [work.workload.quantity.many for work in summary.workloads] == ["tokens", "examples"]
    frame = trial_frame(run.trials)
    in_tokens = frame["cell.quantity"] == "tokens"
    assert frame.loc[in_tokens, "throughput_tokens_per_s"].notna().all()
    assert frame.loc[~in_tokens, "throughput_tokens_per_s"].isna().all()
    assert frame.loc[in_tokens, "throughput_examples_per_s"].isna().all()


def test_the_same_trials_are_as_many_tokens_a_second_as_a_step_has(tmp_path: Path) -> None:
    run = run_of([TOKENS], tmp_path)
    [cell] = summarise(run.manifest, run.trials).cells
    assert cell.measured is not None
    step = cell.measured.step_time_s.value
    assert cell.measured.throughput.value == pytest.approx(4096 / step)
    assert dataclasses.asdict(cell.trials.cell.work) == {"quantity": {"many": "tokens"}, "amount": 4096}


def test_while_an_own_step_is_measured_nothing_is_said_of_distributing(tmp_path: Path) -> None:
    run = run_of([TOKENS], tmp_path)
    [line] = so_far(summarise(run.manifest, run.trials))
    assert line.startswith(f"{TOKENS.label} ")
    assert " tokens/s" in line
    assert "distribut" not in line
    [line] = so_far(summarise(*make_run([make_cell()], faults=False)))
    assert "distribut" not in line, "there is nothing yet to compare with no strategy"

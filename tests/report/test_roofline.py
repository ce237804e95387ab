"""How far cells are from what their machine can do at most: rates below roofs, in words, table, figure and page."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from harness.analysis import RunSummary, summarise
from harness.analysis.limits import CellRate, cell_rates, limits_of, roofs_of
from harness.errors import UsageError
from harness.record.limits import LimitsRecord, keep_sheet
from harness.record.manifest import DeviceRecord, Machine
from harness.record.reading import load_run
from harness.report.comparison import Surface
from harness.report.export import exporters
from harness.report.figures import Picture, roofline_figure
from harness.report.kinds import PageRequest, presentation_of
from harness.report.limits import limit_rows, limits_table, rates_table, rates_words, uncounted
from harness.report.notebook import SweepResult
from harness.report.tables.cells import rate_frame
from harness.report.tables.subject_columns import RATE_COLUMNS
from harness.report.tables.sweep import ranking_table
from harness.report.words.text import share
from tests.comparisons import ab_run, as_run, stored
from tests.limits import MACHINE, limit, limits
from tests.report.rooflines import BYTES, FLOPS, counted, known, run
from tests.synthetic import make_cell, make_run


def rates(limits: LimitsRecord | None = None, **changes: Any) -> list[CellRate]:
    summary: RunSummary = summarise(*run(**changes))
    return cell_rates(summary.cells, limits or known())


def test_a_cells_rate_is_its_operations_by_its_step_time_and_both_ends_change_places() -> None:
    first = rates()[0]
    step = first.cell.measured.step_time_s  # type: ignore[union-attr]
    assert first.rate.value == pytest.approx(FLOPS / step.value)
    assert first.rate.low == pytest.approx(FLOPS / step.high)  # type: ignore[operator]
    assert first.intensity == 40


def test_a_cell_is_held_against_the_type_that_it_multiplied_and_not_the_one_that_was_asked_for() -> None:
    double = limit(type="float64", rates=[3e10] * 3)
    both = known().model_copy(update={"limits": [*known().limits, double]})
    [roof] = {rate.roof for rate in rates(both, product_types=["float64", "float32"])[:1]}
    assert roof is not None
    assert (roof.type, roof.compute) == ("float64", 3e10)
    assert {rate.share for rate in rates(known(), product_types=["float64"])} == {None}, "nobody measured that"


def test_code_of_ones_own_of_which_no_type_was_recorded_has_no_roof() -> None:
    own = make_cell("none", model="my.models:double", data="digits")
    for types, roofs in (([], [None]), (["float32"], [64e9])):
        made = make_run([own], faults=False, change=lambda trial, types=types: counted(trial, product_types=types))
        found = cell_rates(summarise(*made).cells, known())
        assert [one.roof and one.roof.compute for one in found] == roofs


def test_a_cell_is_held_against_as_many_threads_as_it_keeps_busy() -> None:
    one, two, all_of_them = (rate.roof for rate in rates())
    assert one is not None
    assert two is not None
    assert all_of_them is not None
    assert (one.place, one.compute, one.memory) == ("1 thread", 64e9, 13e9)
    assert (two.place, two.compute, two.memory) == ("2 threads", 128e9, 26e9)
    assert (all_of_them.place, all_of_them.compute, all_of_them.memory) == ("8 threads", 4e11, 6e10)


def test_whether_devices_are_processors_is_as_the_run_says_and_not_as_their_kind_is_called() -> None:
    whole = {"whole-cpu": DeviceRecord(on_processors=True)}
    places = [rate.roof.place for rate in rates(device="whole-cpu", devices=whole) if rate.roof]
    assert places == ["1 thread", "2 threads", "8 threads"]
    assert all(rate.roof is None for rate in rates(device="whole-cpu")), "no limits of a GPU are known"


def test_replicas_that_share_a_processor_have_the_limit_of_what_there_is() -> None:
    assert {rate.roof.place for rate in rates(physical=1) if rate.roof} == {"1 thread"}


def test_between_one_thread_and_all_no_more_is_expected_than_all_can_do() -> None:
    slow = known().model_copy(update={"limits": [*known().limits[:3], limit(
        quantity="memory", type="float64", threads=8, rates=[15e9], sizes=[1], repetitions=[1])]})  # fmt: skip
    [two] = [rate.roof for rate in rates(slow) if rate.roof and rate.roof.place == "2 threads"]
    assert two.memory == 15e9


def with_all_cores_at(products: float) -> LimitsRecord:
    """Limits of one thread and of all eight, which compute so fast."""
    one, *others = (limit for limit in known().limits if (limit.quantity, limit.threads) != ("products", 8))
    return limits(limits=[one, *others, limit(threads=8, rates=[products] * 3)])


def test_more_threads_can_do_what_fewer_came_to() -> None:
    found = {rate.roof.place: rate.roof.compute for rate in rates(with_all_cores_at(6e10)) if rate.roof}
    assert found == {"1 thread": 64e9, "2 threads": 64e9, "8 threads": 64e9}


def test_the_roof_is_memory_up_to_the_ridge_and_compute_from_there() -> None:
    roof = roofs_of(rates())[0]
    assert (roof.at(1), roof.at(1e6)) == (13e9, 64e9)
    assert rates(bytes_per_step=FLOPS)[0].bound == "memory"
    assert rates()[0].bound == "compute"


@pytest.mark.parametrize("lacking", ["flops_per_step", "bytes_per_step"])
def test_a_cell_whose_work_was_not_counted_is_on_no_roofline(lacking: str) -> None:
    manifest, trials = run()
    without = [
        trial.model_copy(update={"executed": trial.executed.model_copy(update={lacking: None})}) for trial in trials
    ]
    assert cell_rates(summarise(manifest, without).cells, known()) == []


def test_processes_elsewhere_and_types_that_were_not_measured_have_no_limit() -> None:
    found = cell_rates(summarise(*run()).cells, known(), launcher="slurm")
    assert [rate.share for rate in found] == [None] * 3
    assert {row[3:5] for row in rates_table(found).rows} == {("–", "not measured")}
    assert rates_words(found) == ""
    assert roofline_figure(found, "fig") is None
    double = limits(limits=[limit(type="float64")])
    assert [rate.roof for rate in rates(double)] == [None] * 3


def test_where_memory_is_the_limit_the_words_and_the_picture_tell_the_share_of_the_roof() -> None:
    found = rates(bytes_per_step=FLOPS)
    first = found[0]
    assert first.roof is not None
    assert first.of_roof is not None
    assert (first.bound, first.roof.at(1)) == ("memory", 13e9)
    assert first.of_roof.value == pytest.approx(first.rate.value / 13e9)
    assert f", and to {share(first.of_roof)} of what memory lets it do at 1.00 FLOP a byte." in rates_words(found[:1])
    picture = roofline_figure(found, "fig")
    assert picture is not None
    assert f"{share(first.of_roof)} of its roof" in picture.description
    assert "memory lets" not in rates_words(rates())


def test_the_words_name_the_closest_and_the_furthest_cell() -> None:
    words = rates_words(rates())
    assert words.startswith("Closest to its limit: ")
    assert ". Furthest from it: " in words
    assert rates_words(rates()[:1]).startswith("none ×1 b32 comes to ")


def test_of_gpus_the_share_is_told_to_be_what_is_called_mfu_and_of_processors_not() -> None:
    on_card = {"device": "gpu", "threads": 0}
    cards = [limit(**on_card), limit(quantity="memory", type="float64", sizes=[2**24] * 3, **on_card)]
    found = rates(limits(limits=cards), device="gpu")
    words, note = rates_words(found), rates_table(found).note
    assert re.search(r"comes to [\d.,]+ % \[[^]]+\] \(MFU\) of what 1 GPU can compute in float32", words)
    assert words.count("(MFU)") == 2
    assert "what is called MFU" in note
    assert "MFU" not in rates_words(rates()) + rates_table(rates()).note
    assert "MFU" not in rates_table(rates(device="gpu")).note, "no limits of a GPU are known"


def of_cards(arithmetic: str = "", **facts: Any) -> LimitsRecord:
    """The limits of a card, with facts of its machine."""
    on_card = {"device": "gpu", "threads": 0}
    cards = [limit(**on_card, arithmetic=arithmetic), limit(quantity="memory", type="float64", **on_card)]
    return limits(limits=cards, machine=Machine(facts={"machine.id": MACHINE, **facts}, warnings=[]))


AMPERE_CARD, TURING_CARD = {"gpu.0.compute_capability": "8.0"}, {"gpu.0.compute_capability": "7.5"}


@pytest.mark.parametrize(
    ("limits", "executed", "numbers"),
    [
        (of_cards("tf32"), "tf32", "float32 as TF32"),
        (of_cards("tf32"), "float32", None),
        (of_cards("tf32"), "", "float32 as TF32"),
        (of_cards("float32"), "float32", "float32"),
        (of_cards("float32"), "tf32", None),
        (of_cards(**AMPERE_CARD), "tf32", "float32 as TF32"),
        (of_cards(**AMPERE_CARD), "float32", None),
        (of_cards(**AMPERE_CARD, **{"env.NVIDIA_TF32_OVERRIDE": "0"}), "float32", "float32"),
        (of_cards(**TURING_CARD), "float32", "float32"),
    ],
)
def test_on_cards_float32_is_held_against_what_it_is_computed_in(
    limits: LimitsRecord, executed: str, numbers: str | None
) -> None:
    found = rates(limits, device="gpu", arithmetic=executed)
    assert [rate.roof and rate.roof.numbers for rate in found] == [numbers] * 3
    words = rates_words(found)
    assert f" can compute in {numbers}." in words if numbers else not words


def test_the_table_of_limits_says_what_a_card_computes_float32_in() -> None:
    for known_of, numbers in ((of_cards("tf32"), "float32 as TF32"), (of_cards(**TURING_CARD), "float32")):
        assert [row[1] for row in limits_table(known_of).rows] == [numbers, "float64"]


def test_of_several_cards_there_is_a_limit_only_where_they_are_of_one_kind() -> None:
    kinds = {"gpu.count": 3, "gpu.0.name": "one", "gpu.1.name": "another", "gpu.2.name": "one"}
    both, seen = of_cards(**kinds), of_cards(**kinds, **{"gpu.1.visible": False})
    busy = [min(rate.cell.trials.cell.replicas_in_sync, 8) for rate in rates(both, device="gpu")]
    assert [rate.roof is None for rate in rates(both, device="gpu")] == [count > 1 for count in busy]
    assert None not in {rate.roof for rate in rates(seen, device="gpu")}


def test_cells_whose_operations_nobody_counted_are_said_to_be_left_out_on_page_and_terminal(tmp_path: Path) -> None:
    manifest, trials = run()
    last = trials[-1].cell_id
    none = {"flops_per_step": None, "bytes_per_step": None}
    some = [
        trial.model_copy(update={"executed": trial.executed.model_copy(update=none)})
        if trial.cell_id == last
        else trial
        for trial in trials
    ]
    cells = summarise(manifest, some).cells
    said = "Left out, since their operations are not counted: 1 cell of tensorflow."
    assert uncounted(cells, cell_rates(cells, known())) == said
    assert uncounted(cells, []) == ""
    assert uncounted(summarise(manifest, trials).cells, rates()) == ""
    made = load_run(stored(as_run(manifest, some, manifest.run_id, {"machine.id": MACHINE}), tmp_path))
    keep_sheet(tmp_path, known())
    kind, page = presentation_of(made.manifest), tmp_path / "page.html"
    kind.write_page(made, PageRequest(page, tmp_path))
    assert said in page.read_text()
    assert said in " ".join(kind.text(made, tmp_path, Surface(width=160)).split())


def figure() -> Picture:
    made = roofline_figure(rates(), "fig")
    assert made is not None
    return made


def test_the_figure_tells_every_roof_and_every_cell_in_words() -> None:
    text = figure().description
    assert "limit of 1 thread, float32: 64.0 GFLOP/s from 4.92 FLOP a byte on, below that 13.0 GB/s" in text
    for rate in rates():
        assert f"{rate.cell.label}: " in text
    assert text.count("FLOP a byte,") == 3


def test_the_figures_csv_has_work_rate_share_and_limits_of_each_cell() -> None:
    first = figure().data[0]
    assert (first["flops_per_step"], first["bytes_per_step"], first["flop_per_byte"]) == (FLOPS, BYTES, 40)
    assert first["share_of_limit"] == pytest.approx(first["flop_per_s"] / first["limit_flop_per_s"])
    assert first["share_of_limit_low"] < first["share_of_limit"] < first["share_of_limit_high"]
    assert first["roof_flop_per_s"] == 64e9


def test_limits_of_the_machine_are_found_beside_the_run_for_page_and_terminal(tmp_path: Path) -> None:
    manifest, trials = run()
    kept = stored(as_run(manifest, trials, manifest.run_id, {"machine.id": MACHINE}), tmp_path)
    made = load_run(kept)
    kind, page = presentation_of(made.manifest), tmp_path / "page.html"
    kind.write_page(made, PageRequest(page, tmp_path))
    assert "Roofline of FLOP/s" not in page.read_text()
    assert "How far from the limit" not in kind.text(made, tmp_path, Surface(width=160))
    keep_sheet(tmp_path, known())
    kind.write_page(made, PageRequest(page, tmp_path))
    text = page.read_text()
    assert text.index("Closest to its limit: ") < text.index("Roofline of FLOP/s")
    assert "the compute limit" in kind.text(made, tmp_path, Surface(width=160))
    assert "of the limit" in kind.text(made, tmp_path, Surface(width=60))


def test_sides_of_a_comparison_are_held_against_the_limits_each_by_itself(tmp_path: Path) -> None:
    decided = ab_run([math.log(2)] * 3)
    frame = rate_frame([replace(decided, trials=[counted(trial) for trial in decided.trials])], tmp_path)
    assert list(frame["side"]) == ["a", "b"]
    slow, fast = frame["flop_per_s"]
    assert fast == pytest.approx(2 * slow)
    assert frame["run_id"].nunique() == 1
    assert rate_frame([as_run(*run(), "sweep-run", {})], tmp_path)["side"].isna().all()


def test_a_table_for_other_tools_has_the_limits_of_the_results_folder_and_without_them_what_was_counted(
    tmp_path: Path,
) -> None:
    manifest, trials = run()
    made = load_run(stored(as_run(manifest, trials, manifest.run_id, {"machine.id": MACHINE}), tmp_path))
    before = limit_rows(made, tmp_path)
    assert {row["limit_flop_per_s"] for row in before} == {None}
    assert {row["flops_per_step"] for row in before} == {FLOPS}
    keep_sheet(tmp_path, known())
    first, *_ = limit_rows(made, tmp_path)
    assert (first["limit_on"], first["limit_flop_per_s"]) == ("1 thread", 64e9)
    assert first["share_of_limit"] == pytest.approx(first["flop_per_s"] / 64e9)
    assert list(first) == [column.name for column in RATE_COLUMNS if column.name not in ("run_id", "side")]
    exported = presentation_of(made.manifest).exporters()["limits"].export(made, None) or ""
    assert exported.partition("\n")[0].split(",") == list(first)
    elsewhere = replace(made, results=tmp_path / "elsewhere")
    assert "64000000000" in exported
    assert "64000000000" not in (presentation_of(made.manifest).exporters()["limits"].export(elsewhere, None) or "")
    pd.testing.assert_frame_equal(
        rate_frame([made], tmp_path).drop(columns="run_id")[["flop_per_s"]],
        pd.DataFrame(limit_rows(made, tmp_path))[["flop_per_s"]],
    )


FACTS: dict[str, Any] = {"machine.id": MACHINE, "cpu.usable_cores": 2, "python.version": "3.11.7"}


@pytest.mark.parametrize("other", [{"cpu.usable_cores": 16}, {"python.version": "3.12.1"}])
def test_limits_that_were_measured_with_other_cores_or_versions_are_not_those_of_the_run(
    other: dict[str, Any], tmp_path: Path
) -> None:
    keep_sheet(tmp_path, known(machine=Machine(facts={**FACTS, **other}, warnings=[])))
    assert limits_of(FACTS, tmp_path) is None
    earlier = known(created_utc="2026-11-22T15:10:09+00:00", machine=Machine(facts=FACTS, warnings=[]))
    keep_sheet(tmp_path, earlier)
    assert limits_of(FACTS, tmp_path) == earlier


def test_cells_that_differ_in_what_a_label_leaves_out_have_names_of_their_own(tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell("none", model=model) for model in ("mlp", "lenet")], faults=False)
    made = load_run(stored(as_run(manifest, [counted(trial) for trial in trials], manifest.run_id), tmp_path))
    names = {row["cell"] for row in limit_rows(made, tmp_path)}
    assert len(names) == 2
    assert any("lenet" in str(name) for name in names)


def test_of_cells_whose_operations_nobody_counted_there_is_no_such_table(tmp_path: Path) -> None:
    manifest, trials = make_run([make_cell("none")], faults=False)
    made = load_run(stored(as_run(manifest, trials, manifest.run_id, {"machine.id": MACHINE}), tmp_path))
    with pytest.raises(UsageError, match="has no measured cell whose operations were counted"):
        limit_rows(made, tmp_path)


def test_the_ranking_has_a_column_of_shares_where_limits_are_known() -> None:
    summary = summarise(*run())
    [work] = summary.workloads
    found = cell_rates(work.cells, known())
    table = ranking_table(work, summary.noise, rates=found)
    assert table.columns[-1].name == "of the limit"
    shares = {rate.cell.label: share(rate.share) for rate in found if rate.share}
    assert {row[1]: row[-1] for row in table.rows} == shares
    assert len(ranking_table(work, summary.noise).columns) == len(table.columns) - 1


def test_terminal_markdown_and_notebook_have_that_column_where_limits_lie_beside_the_run(tmp_path: Path) -> None:
    manifest, trials = run()
    path = stored(as_run(manifest, trials, manifest.run_id, {"machine.id": MACHINE}), tmp_path)
    kind = presentation_of(manifest)

    def shown(width: int) -> str:
        return kind.text(load_run(path), tmp_path, Surface(width)).partition("How far from the limit")[0]

    def elsewhere() -> tuple[str, str]:
        made = load_run(path)
        return exporters()["markdown"].export(made, None) or "", SweepResult(made)._repr_html_()

    assert "of the limit" not in "".join((shown(240), *elsewhere()))
    keep_sheet(tmp_path, known())
    [first, *_] = [share(rate.share) for rate in rates() if rate.share]
    markdown, notebook = elsewhere()
    for text in (shown(240), markdown.replace("\\", ""), notebook):
        assert "of the limit" in text
        assert first in text
    assert "of the limit" in shown(200)
    narrower = " ".join(shown(199).split())
    assert "No room for 'of the limit': a terminal of 200 columns shows all" in narrower
    assert first not in narrower
    assert "'peak memory', 'trials' and 'of the limit'" in " ".join(shown(120).split())

"""Collectives as a reader of nccl-tests knows them, on the terminal and on the page."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis import RunSummary, summarise
from harness.analysis.collectives import collective_groups
from harness.errors import UsageError
from harness.record import Run
from harness.record.trial import CALL, TrialRecord
from harness.report.export import exporters
from harness.report.export.rows import trial_rows
from harness.report.figures import collective_figure
from harness.report.notebook import SweepResult
from harness.report.page.report import render
from harness.report.tables.collectives import (
    collective_rows,
    collective_tables,
    curve_rows,
    group_title,
    latency_table,
)
from harness.report.tables.subject_columns import COLLECTIVE_COLUMNS
from harness.report.terminal.interim import so_far
from harness.report.terminal.run import run_text
from harness.report.words.answer import answers
from harness.report.words.brief import brief_lines
from harness.report.words.collectives import collective_lines
from harness.spec import sweep_from
from harness.spec.collective import CollectiveCell
from tests.axes import KEYS_OF_COLLECTIVES, collectives_of
from tests.report.collectives import BETWEEN, KEYS, ON_ONE, RING, in_three_sizes
from tests.report.page.trials.planned import planned
from tests.report.quantities import run_of
from tests.synthetic import make_cell, make_run, unproved

GATHERED = CollectiveCell(collective="all_gather", size=65532, replicas=3, **KEYS)
SMALL = RING.model_copy(update={"size": 4})
WRONG = SMALL.model_copy(update={"cross_device_op": "hierarchical_copy"})
every_key = pytest.mark.parametrize("key", KEYS_OF_COLLECTIVES)


def found_wrong(record: TrialRecord) -> TrialRecord:
    """The record of a trial whose gate failed."""
    failed = {"status": "wrong_result", "reason": "reduction: the value of replica 1 is missing", "windows": None}
    none = dict.fromkeys(["step_time_s", "throughput_per_s", "cpu_seconds_per_unit"])
    checks = record.checks.model_copy(update={"reduction": False})
    return record.model_copy(update={**failed, **none, "checks": checks})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Five cells of which one is wrong."""
    made = run_of([RING, ON_ONE, SMALL, WRONG, GATHERED], tmp_path_factory.mktemp("run"))
    made.trials[:] = [found_wrong(trial) if trial.cell == WRONG else trial for trial in made.trials]
    return made


@pytest.fixture(scope="module")
def summary(run: Run) -> RunSummary:
    """What is read from its records."""
    return summarise(run.manifest, run.trials)


def test_there_is_a_table_for_each_collective_and_number_of_replicas(summary: RunSummary) -> None:
    reduced, gathered = collective_tables(summary)
    assert (reduced.title, gathered.title) == (
        "all_reduce, 2 replicas, virtual-cpu",
        "all_gather, 3 replicas, virtual-cpu",
    )
    assert [row[0] for row in reduced.rows] == ["4", "4", "1048576", "1048576"]
    assert gathered.rows[0][:5] == ("65532", "5461", "float32", "–", "auto")
    assert {row[2:4] for row in reduced.rows} == {("float32", "sum")}
    assert {row[4] for row in reduced.rows} == {"auto", "hierarchical_copy", "reduction_to_one_device"}


def test_bandwidths_are_the_size_over_the_time_and_the_bus_factor_over_that(summary: RunSummary) -> None:
    for group in collective_groups(summary):
        for one in group.figures:
            if one.time_s is not None and one.algbw is not None and one.busbw is not None:
                factor = 1.0 if group.collective == "all_reduce" else 2 / 3
                assert one.algbw.value == pytest.approx(one.cell.size / one.time_s.value)
                assert one.busbw.value == pytest.approx(factor * one.algbw.value)
                assert (one.busbw.low or 0) / (one.algbw.low or 1) == pytest.approx(factor)


def test_three_sizes_have_a_latency_and_a_bandwidth_and_two_have_none(tmp_path: Path, summary: RunSummary) -> None:
    assert latency_table(summary).rows == ()
    made = run_of([RING.model_copy(update={"size": 4 * 2**power}) for power in (0, 10, 20)], tmp_path)
    more = summarise(made.manifest, made.trials)
    [row] = latency_table(more).rows
    assert row[:3] == ("all_reduce", "2 replicas, virtual-cpu", "auto")
    assert row[7] == "4 B – 4 MiB"
    assert "range" not in latency_table(more).note
    assert "Latency and bandwidth" in run_text(made.manifest, made.trials, more, 160, False)
    assert "Latency and bandwidth" in render(made.manifest, made.trials, more)


def test_a_size_for_which_memory_had_no_room_in_most_blocks_is_on_no_line_and_named(tmp_path: Path) -> None:
    sizes = [4 * 2**power for power in (0, 10, 20, 24)]
    made = run_of([RING.model_copy(update={"size": size}) for size in sizes], tmp_path)
    ended = {"status": "out_of_memory", "reason": "it asked for more", "windows": None, "step_time_s": None}
    made.trials[:] = [
        trial.model_copy(update=ended) if trial.block and trial.cell.get("size") == sizes[-1] else trial
        for trial in made.trials
    ]
    found = summarise(made.manifest, made.trials)
    table = latency_table(found)
    assert [(row[4] == "no interval", row[7]) for row in table.rows] == [(False, "4 B – 4 MiB")]
    assert table.note.endswith(
        " Not fitted is what fewer than half of the blocks have: all_reduce, 2 replicas, virtual-cpu, auto, 64 MiB."
    )
    assert [(row["piece"], row["line_s"] is None) for row in collective_rows(made)] == [*[(1, False)] * 3, (None, True)]
    drawn = collective_figure(collective_groups(found)[0], "figure")
    assert drawn is not None
    assert "fitted to all sizes of an op, but for those that the table names; " in drawn.caption


@pytest.mark.parametrize("off", [0.998, 1.002])
def test_a_residual_that_rounds_to_nothing_has_no_sign(off: float, tmp_path: Path) -> None:
    """Times on a line, but for that of the middle size, which is off by two thousandths."""
    made = run_of(in_three_sizes(RING), tmp_path)

    def on_a_line(record: TrialRecord) -> TrialRecord:
        times = record.cell.get("size") * 1e-9 + 1e-4
        return record.model_copy(update={"step_time_s": times * (off if record.cell.get("size") == 2**21 else 1.0)})

    [row] = latency_table(summarise(made.manifest, [on_a_line(trial) for trial in made.trials])).rows
    assert any(text.startswith("0 % at ") for text in row)


def test_the_figure_has_time_and_bandwidth_against_size_in_words_too(tmp_path: Path, summary: RunSummary) -> None:
    sizes = [4 * 2**power for power in (0, 10, 20)]
    made = run_of([of.model_copy(update={"size": size}) for of in (RING, ON_ONE) for size in sizes], tmp_path)
    [group] = collective_groups(summarise(made.manifest, made.trials))
    drawn = collective_figure(group, "figure")
    assert drawn is not None
    assert "mathdefault" not in drawn.svg
    assert [(row["op"], row["size_bytes"]) for row in drawn.data] == [
        (op, size) for op in ("auto", "reduction_to_one_device") for size in sizes
    ]
    assert all(row["busbw_bytes_per_s_low"] and row["line_s"] and row["piece"] == 1 for row in drawn.data)
    assert "range" not in f"{drawn.svg} {drawn.caption} {drawn.description}"
    assert re.search(r"auto: .* GB/s at 4 B, .* at 4 KiB and .* at 4 MiB; reduction_to_one_device: ", drawn.description)
    gathered = collective_groups(summary)[1]
    assert collective_figure(gathered, "none") is None, "there is one size"


@pytest.fixture(scope="module")
def bent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """All-reduces of ten sizes, each eight times the one before while a time is next to twice the one before."""
    sizes = [4 * 8**power for power in range(10)]
    return run_of([RING.model_copy(update={"size": size}) for size in sizes], tmp_path_factory.mktemp("bent"))


def test_where_one_line_does_not_hold_each_range_of_sizes_has_a_row(bent: Run) -> None:
    found = summarise(bent.manifest, bent.trials)
    table = latency_table(found)
    assert len(table.rows) > 1
    assert {row[:3] for row in table.rows} == {("all_reduce", "2 replicas, virtual-cpu", "auto")}
    ranges = [row[7].split(" – ") for row in table.rows]
    assert (ranges[0][0], ranges[-1][1]) == ("4 B", "512 MiB")
    assert len({end for ends in ranges for end in ends}) == 2 * len(ranges)
    assert "α of the smallest is the latency" in table.note
    page = render(bent.manifest, bent.trials, found)
    said = run_text(bent.manifest, bent.trials, found, 120, False)
    assert all(f"{first} – {last}" in text for first, last in ranges for text in (page, said))


@pytest.mark.parametrize(
    ("width", "has", "has_not"), [(180, "β, 95 %", "nothing"), (110, "α, 95 %", "residual"), (76, "β", "95 %")]
)
def test_the_ranges_are_told_in_any_room(bent: Run, width: int, has: str, has_not: str) -> None:
    said = run_text(bent.manifest, bent.trials, summarise(bent.manifest, bent.trials), width, False)
    told = said[said.index("Latency and bandwidth") :]
    heads = told.partition("─")[0]
    assert "sizes" in heads
    assert has in heads
    assert has_not not in heads
    assert max(map(len, told.splitlines())) <= width


@pytest.mark.parametrize(
    ("off", "note"),
    [
        (1.0, "No line is contradicted."),
        (
            2.0,
            "The line does not hold of all_reduce, 2 replicas, virtual-cpu, reduction_to_one_device, 1 MiB – 4 MiB "
            "(at 2 MiB).",
        ),
    ],
)
def test_in_a_room_without_the_column_the_note_says_which_lines_do_not_hold(
    off: float, note: str, tmp_path: Path
) -> None:
    """Times on lines, but for one op's of the middle size."""
    made = run_of(in_three_sizes(RING, ON_ONE), tmp_path)
    bad = ON_ONE.model_copy(update={"size": 2**21})

    def timed(record: TrialRecord) -> TrialRecord:
        times = record.cell.get("size") * 1e-9 + 1e-4
        return record.model_copy(update={"step_time_s": times * (off if record.cell == bad else 1.0)})

    trials = [timed(trial) for trial in made.trials]
    found = summarise(made.manifest, trials)
    for width in (80, 110, 140, 180):
        said = run_text(made.manifest, trials, found, width, False)
        told = said[said.index("Latency and bandwidth") :]
        assert ("the line" in told.partition("─")[0]) != (note in " ".join(told.split())), width
        assert max(map(len, told.splitlines())) <= width


def test_the_figure_of_a_line_in_pieces_tells_them_in_picture_words_and_rows(bent: Run) -> None:
    [group] = collective_groups(summarise(bent.manifest, bent.trials))
    [curve] = group.curves
    assert curve.line is not None
    drawn = collective_figure(group, "figure")
    assert drawn is not None
    pieces = curve.line.pieces
    assert "a line for each range of sizes" in drawn.svg
    assert "in ranges where one line does not hold" in drawn.caption
    assert f"fitted in {len(pieces)} ranges: 4 B to " in drawn.description
    numbers = [row["piece"] for row in drawn.data]
    assert [numbers.count(number) for number in range(1, len(pieces) + 1)] == [len(of.residuals) for of in pieces]
    for row in drawn.data:
        assert row["alpha_s_low"] < row["alpha_s"] < row["alpha_s_high"]
        assert row["line_s"] == pytest.approx(row["alpha_s"] + row["seconds_a_byte"] * row["size_bytes"])


@every_key
def test_two_that_differ_in_one_key_have_rows_and_curves_of_their_own_by_name(key: str, tmp_path: Path) -> None:
    """What a figure is drawn of; that it has no other rows, a test of a figure sees."""
    cells = in_three_sizes(*collectives_of(key))
    made = run_of(cells, tmp_path)
    found = summarise(made.manifest, made.trials)
    rows = [(table.title, row[0], row[4]) for table in collective_tables(found) for row in table.rows]
    curves = [(group_title(of), curve) for of in collective_groups(found) for curve in of.curves if curve.figures[1:]]
    points = [(title, row["size_bytes"], row["op"]) for title, curve in curves for row in curve_rows(curve)]
    lines = [row[:3] for row in latency_table(found).rows]
    drawn = [cell for cell in cells if not cell.gradients]  # many tensors are on no line of buffers that are one
    assert len(set(rows)) == len(rows) == len(cells)
    assert len(set(points)) == len(points) == len(drawn)
    assert len(set(lines)) == len(lines) == (1 if key in CollectiveCell.TAKING_TURNS else 2)


@every_key
def test_each_key_has_a_column_of_its_own(key: str, tmp_path: Path) -> None:
    made = run_of([*collectives_of(key)], tmp_path)
    assert len({row[f"cell.{key}"] for row in trial_rows(made.trials)}) == 2


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=pytest.mark.tensorflow) if key == "gradients" else key for key in KEYS_OF_COLLECTIVES],
)  # whose bytes the command asks a process that imports TensorFlow for
def test_the_command_to_repeat_a_collective_gives_that_cell(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    for cell in collectives_of(key):
        [found] = planned(sweep_from({"work": "collective"}), capsys, cell)["cells"]
        assert found["cell_id"] == cell.cell_id


def test_the_strategy_is_named_where_there_are_several(tmp_path: Path) -> None:
    made = run_of(in_three_sizes(RING, BETWEEN), tmp_path)
    found = summarise(made.manifest, made.trials)
    names = {"mirrored auto", "multi_worker_mirrored auto"}
    [table] = collective_tables(found)
    assert {row[4] for row in table.rows} == {row[2] for row in latency_table(found).rows} == names
    assert re.search(r"at .+ \((multi_worker_)?mirrored auto\)", brief_lines(found)[0])
    alone = run_of(in_three_sizes(BETWEEN), tmp_path)
    [table] = collective_tables(summarise(alone.manifest, alone.trials))
    assert {row[4] for row in table.rows} == {"auto"}


def test_what_is_wrong_has_no_time_and_no_bandwidth(summary: RunSummary) -> None:
    [row] = [row for row in collective_tables(summary)[0].rows if row[4] == "hierarchical_copy"]
    assert row[5:] == ("–", "–", "–", "–", "wrong result")
    assert {row[-1] for row in collective_tables(summary)[0].rows} == {"none", "wrong result"}


def test_marked_are_those_that_may_be_the_fastest_of_their_size(summary: RunSummary) -> None:
    table = collective_tables(summary)[0]
    for size in ("4", "1048576"):
        assert any(row[0] == size and number in table.marked for number, row in enumerate(table.rows))


def test_a_size_with_one_row_is_not_marked(summary: RunSummary) -> None:
    assert collective_tables(summary)[1].marked == frozenset()


def test_each_table_says_what_a_call_is_of_its_own_engines_and_the_terminal_says_both(tmp_path: Path) -> None:
    other = GATHERED.model_copy(update={"engine": "jax"})
    made = run_of([RING, other], tmp_path)
    told = {"unlike": {CALL: "of a compiled program"}}
    trials = [
        trial.model_copy(update={"executed": trial.executed.model_copy(update=told)}) if trial.cell == other else trial
        for trial in made.trials
    ]
    found = summarise(made.manifest, trials)
    reduced, gathered = collective_tables(found)
    assert "that of one call of a traced function. wrong:" in reduced.note
    assert "that of one call of a compiled program (jax). wrong:" in gathered.note
    said = " ".join(run_text(made.manifest, trials, found, 300, False).split())
    assert "call of a traced function." in said
    assert "call of a compiled program (jax)." in said


@pytest.mark.parametrize(
    ("width", "has", "has_not"), [(160, "redop", "nothing"), (110, "algbw", "redop"), (70, "minutes", "algbw")]
)
def test_the_terminal_shows_as_many_columns_as_there_is_room_for(
    run: Run, summary: RunSummary, width: int, has: str, has_not: str
) -> None:
    said = run_text(run.manifest, run.trials, summary, width, False)
    heads = said[said.index("all_reduce") :].partition("─")[0]
    assert has in heads
    assert has_not not in heads
    assert max(map(len, said.splitlines())) <= width


def test_the_terminal_says_once_how_the_tables_read_and_names_what_failed(run: Run, summary: RunSummary) -> None:
    said = run_text(run.manifest, run.trials, summary, 160, False)
    assert len(re.findall("as in nccl-tests", said)) == 1
    assert "the value of replica 1 is missing" in said
    assert "Of 5 cells, without a throughput: 1 wrong." in said
    assert "moves\nnone" in said or "moves none" in said


def test_markdown_and_a_notebook_have_these_tables_and_no_ranking_for_each_size(bent: Run) -> None:
    markdown = (exporters()["markdown"].export(bent, None) or "").replace("\\", "")
    notebook = SweepResult(bent)._repr_html_()
    for text in (markdown, notebook):
        assert "busbw GB/s" in text
        assert "β GB/s" in text
        assert "% of fastest" not in text
    titles = [line for line in markdown.splitlines() if line.startswith("## ")]
    [table] = collective_tables(summarise(bent.manifest, bent.trials))
    assert titles == [f"## {table.title}", "## Latency and bandwidth"]
    latencies = latency_table(summarise(bent.manifest, bent.trials))
    assert re.findall("<caption>(.*?)</caption>", notebook) == [table.title, latencies.title]
    assert notebook.count("<table>") == 2
    assert all(f"<p>{html.escape(of.note)}</p>" in notebook for of in (table, latencies))


def test_markdown_says_once_how_the_tables_read_and_has_what_is_wrong_and_unproved(run: Run) -> None:
    def export(trials: list[TrialRecord]) -> str:
        return (exporters()["markdown"].export(replace(run, trials=trials), None) or "").replace("\\", "")

    said = export(run.trials)
    assert said.count("as in nccl-tests") == 1
    assert "## Without a throughput" in said
    assert "the value of replica 1 is missing" in said
    assert "left out of the ranking" not in said
    assert "## Unproved, and left out of the ranking" in export(
        [unproved(trial) for trial in run.trials if trial.measured]
    )


def test_markdown_that_is_too_long_for_a_pull_request_says_which_format_has_the_rest(
    bent: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    markdown = exporters()["markdown"]
    largest = len(markdown.export(bent, None) or "") - 1
    monkeypatch.setattr("harness.report.export.as_markdown.LARGEST", largest)
    said = markdown.export(bent, None) or ""
    assert len(said) <= largest
    assert "7 more rows are left out here: `python -m harness export RUN --format collectives` has them." in said


def test_of_one_cell_there_is_a_sentence_and_its_ranking_is_folded(tmp_path: Path) -> None:
    def ranking_of(*cells: CollectiveCell, blocks: int = 1000) -> str:
        made = run_of(list(cells), tmp_path / f"{len(cells)}-{blocks}")
        trials = [trial for trial in made.trials if trial.block < blocks]
        page = render(made.manifest, trials, summarise(made.manifest, trials))
        return page[page.index('<section id="ranking"') :].partition("</section>")[0]

    one, two = ranking_of(RING), ranking_of(RING, ON_ONE)
    said = (
        r"<p>One cell was measured, so there is nothing to rank: all_reduce 1 MiB mirrored ×2 does [\d,]+ bytes/s, \["
    )
    assert re.search(said, one)
    assert re.search(r"\] in these minutes; [\d.]+ .?s a step, .* of CPU a byte, .*; \d trials\.</p>", one)
    assert re.search(r"bytes/s, no interval; .*; 1 trial\.</p>", ranking_of(RING, blocks=1))
    folded = re.sub(r"<details>\n<summary>All numbers: .*?</details>", "", one, flags=re.DOTALL)
    assert ("<table" in one, "<table" in folded, "<svg" in one) == (True, False, False)
    assert ("nothing to rank" in two, "<table" in two) == (False, True)


def test_while_collectives_are_measured_their_rankings_are_not_told_one_by_one(summary: RunSummary) -> None:
    assert so_far(summary) == ()


def test_the_answer_is_the_most_that_each_moves_and_the_least_that_it_takes(run: Run, summary: RunSummary) -> None:
    reduced, gathered, rest = brief_lines(summary)
    most = r"all_reduce, 2 replicas, virtual-cpu: busbw [\d.,]+ GB/s ± [\d.]+ % at most, at 1 MiB \(.+\); "
    assert re.fullmatch(most + r"[\d.]+ .?s ± [\d.]+ % at least, at .+ \(.+\), in these minutes\.", reduced)
    assert gathered.startswith("all_gather, 3 replicas, virtual-cpu: busbw ")
    assert rest == "Without a throughput: 1 wrong."
    assert gathered in run_text(run.manifest, run.trials, summary, 300, False).replace("\n    ", " ")


@pytest.mark.parametrize(("left_out", "told"), [(RING, "reduction_to_one_device"), (ON_ONE, "auto")])
def test_what_is_unproved_is_not_the_answer_while_anything_is_proved(
    left_out: CollectiveCell, told: str, tmp_path: Path
) -> None:
    made = run_of([RING, ON_ONE], tmp_path)
    some = [unproved(trial) if trial.cell == left_out else trial for trial in made.trials]
    [line] = collective_lines(summarise(made.manifest, some))
    assert line.count(f"at 1 MiB ({told})") == 2
    [line] = collective_lines(summarise(made.manifest, [unproved(trial) for trial in made.trials]))
    assert line.count("(unproved)") == 2


def test_the_page_begins_with_that_once_and_has_the_tables(run: Run, summary: RunSummary) -> None:
    page = render(run.manifest, run.trials, summary)
    [answer] = answers(summary)
    assert [answer.headline, answer.fastest] == list(brief_lines(summary)[:2])
    assert page.count('<h2 class="headline">') == 1
    assert 'id="collectives"' in page
    assert "busbw GB/s" in page


def test_a_run_of_trainings_has_none_of_it() -> None:
    manifest, trials = make_run()
    summary = summarise(manifest, trials)
    assert collective_tables(summary) == ()
    assert 'id="collectives"' not in render(manifest, trials, summary)


def test_a_table_for_other_tools_has_a_row_a_size_with_its_line_and_what_was_not_measured_too(
    run: Run, tmp_path: Path
) -> None:
    by_op = {(row["op"], row["size_bytes"]): row for row in collective_rows(run) if row["collective"] == "all_reduce"}
    assert by_op["hierarchical_copy", 4]["status"] == "wrong_result"
    assert by_op["hierarchical_copy", 4]["time_s"] is None
    assert by_op["auto", 4]["alpha_s"] is None, "two sizes have no line"
    three = collective_rows(run_of([RING.model_copy(update={"size": 4 * 2**power}) for power in (0, 10, 20)], tmp_path))
    assert [row["size_bytes"] for row in three] == [4, 4096, 4 * 2**20]
    assert {row["piece"] for row in three} == {1}
    assert all(
        row["line_s"] == pytest.approx(row["alpha_s"] + row["size_bytes"] * row["seconds_a_byte"]) for row in three
    )
    columns = [column.name for column in COLLECTIVE_COLUMNS if column.name not in ("run_id", "side")]
    assert [list(row) for row in three] == [columns] * 3, "the frame's columns are the CSV's"


def test_a_run_without_collectives_has_no_such_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no collectives; measure some with sweep --work collective"):
        collective_rows(run_of([make_cell()], tmp_path))

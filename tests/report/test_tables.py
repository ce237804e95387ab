"""Tables and numbers as a reader sees them."""

import re

import pytest

from harness.analysis import Interval, summarise
from harness.analysis.comparison import compare_along
from harness.analysis.estimates.verdict import Margins
from harness.report.figures import efficiency_figure, throughput_figure
from harness.report.tables.sweep import failed_table, ops_table, phases_table, ranking_table, scaling_table
from harness.report.tables.table import Head, Table
from harness.report.terminal.run import run_text
from harness.report.terminal.table import table_text
from harness.report.words.answer import answers
from harness.report.words.method import windows_words
from harness.report.words.text import (
    bounds,
    describe,
    listed,
    names_apart,
    plus_minus,
    plus_minus_now,
    ratio,
    seconds,
    share,
    shortened,
    significant,
    size,
)
from harness.spec.axes import TABLE
from harness.spec.naming import sayings
from harness.spec.work import Cell
from harness.visible import printable
from tests.axes import pair_of
from tests.comparisons import sweep_run
from tests.synthetic import make_cell, make_run


def test_the_ranking_has_what_is_ok_and_the_other_table_what_has_no_throughput() -> None:
    summary = summarise(*make_run())
    ranking, without = ranking_table(summary.workloads[0], summary.noise), failed_table(summary)
    assert [row[0] for row in ranking.rows] == [str(rank) for rank in range(1, 22)]
    assert ranking.rows[0][1] == "mirrored ×2 b128 reduction_to_one_device"
    assert ranking.marked == {0, 1, 2, 3}
    assert len(without.rows) == 13
    assert ("wrong result", "4 of 4") in [row[1:3] for row in without.rows]


def test_every_row_is_as_wide_as_its_table() -> None:
    summary = summarise(*make_run())
    work = summary.workloads[0]
    ranking = ranking_table(work, summary.noise)
    for table in (ranking, failed_table(summary), scaling_table(work), ops_table(work), phases_table(work)):
        assert {len(row) for row in table.rows} == {len(table.columns)}
        assert not any(text in ("None", "nan", "") for row in table.rows for text in row)


def test_cells_on_shared_processors_carry_the_label() -> None:
    rows = scaling_table(summarise(*make_run()).workloads[0]).rows
    labelled = {row[0] for row in rows if "not hardware scaling" in row[-1]}
    assert labelled
    assert all("×3" in label for label in labelled)


def test_ops_say_what_ran_and_what_is_the_same_experiment() -> None:
    rows = {row[:2]: row for row in ops_table(summarise(*make_run()).workloads[0]).rows}
    row = rows["mirrored, 2 replicas, batch 32", "hierarchical_copy"]
    assert row[3] in ("faster", "slower", "equivalent", "undecided")
    assert "differs from the request: hierarchical_copy ran as reduction to one device" in row[5]
    assert row[6] == "mirrored ×2 b32 reduction_to_one_device"
    assert rows["mirrored, 2 replicas, batch 32", "nccl"][2] == "not supported here"


@pytest.mark.parametrize(
    ("asked", "axes"),
    [
        ([("auto", "default"), ("nccl", "default")], "cross_device_op"),
        ([("nccl", "num_packs=0"), ("nccl", "num_packs=2")], "num_packs"),
        ([("auto", "bytes_per_pack=0"), ("auto", "bytes_per_pack=65536")], "bytes_per_pack"),
        ([("nccl", "default"), ("nccl", "num_packs=2")], "packing"),
        ([("auto", "default"), ("nccl", "default"), ("nccl", "num_packs=0"), ("nccl", "num_packs=2")], None),
        ([("auto", "default"), ("nccl", "num_packs=2")], ""),
    ],
)
def test_what_would_decide_between_ops_is_asked_along_what_they_differ_in(
    asked: list[tuple[str, str]], axes: str | None
) -> None:
    cells = [make_cell(), *(make_cell("mirrored", 2, op=op, packing=packing) for op, packing in asked)]
    run = sweep_run("run-a", cells)
    note = ops_table(summarise(run.manifest, run.trials).workloads[0]).note
    if axes is None:
        assert "compare RUN --along cross_device_op or num_packs or packing says what would decide" in note
    elif axes:
        assert f"compare RUN --along {axes} says what would decide" in note
        assert len(compare_along(run, axes, Margins()).rows) == len(asked) - 1
    else:
        assert "--along" not in note


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567.0, "1,230,000"), (99.96, "100"), (9.996, "10.0"), (0.01234, "0.0123"), (1e-9, "1.00e-09")],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_what_is_not_known_is_said_and_never_made_up() -> None:
    alone = Interval(5.0, None, None)
    assert bounds(alone) == plus_minus(alone) == "no interval"
    assert seconds(None) == size(None) == "–"
    useless = Interval(1.0, 1e-30, 1e30)
    assert bounds(useless) == "[wider than 100-fold]"
    assert plus_minus(useless) == "[wider than 100-fold]"


def test_plus_or_minus_is_said_of_an_interval_that_lies_evenly_about_its_value_and_of_no_other() -> None:
    assert plus_minus(Interval(9910.0, 8800.0, 11160.0)) == "± 12 %"
    assert plus_minus(Interval(9910.0, 5780.0, 17000.0)) == "[5,780 – 17,000]"
    assert plus_minus_now(Interval(1.0, 0.2, 5.0)) == "[0.200 – 5.00] in these minutes"


def test_units_follow_the_size() -> None:
    assert [seconds(value) for value in (2.5, 0.0123, 0.0000456)] == ["2.50 s", "12.3 ms", "45.6 µs"]
    assert [size(value) for value in (12, 2048, 3 * 2**20, 2**30)] == ["12 B", "2.00 KiB", "3.00 MiB", "1.00 GiB"]


def test_long_names_lose_their_middle_and_control_characters() -> None:
    short = shortened("module.path:" + "x" * 300 + "_end")
    assert len(short) == 120
    assert short.startswith("module.path:")
    assert short.endswith("_end")
    assert printable("a\x00b\x1bc\ud800\u202e") == "a\ufffdb\ufffdc\ufffd\ufffd"


def test_long_names_side_by_side_lose_what_all_share_and_nothing_that_tells_them_apart() -> None:
    short = ["none ×1 b32 jax", "mirrored ×2 b32 jax"]
    assert names_apart(short, 20) == short, "there is room for them"
    engines = ["none ×1 b32 data_parallel keras", "distribution batch:1 b32 data_parallel keras", "none ×1 b32 jax"]
    assert names_apart(engines, 42) == [name.replace(" b32", "") for name in engines]
    of_inputs = "prefetch 8 cache none parallel_calls 4 interleave 2 shards 4"
    apart = names_apart([f"none ×1 b64 XLA 2 threads {of_inputs}", f"mirrored ×2 b64 XLA {of_inputs}"], 56)
    assert apart == ["none ×1 2 threads", "mirrored ×2"]
    caches = [
        f"mirrored ×2 b64 XLA prefetch {n} cache {cache} parallel_calls {12 - n}"
        for n, cache in ((8, "none"), (4, "file"))
    ]
    assert names_apart(caches, 40) == [name.replace("mirrored ×2 b64 XLA ", "") for name in caches]
    same = ["module.path:" + "x" * 60 + seed + "y" * 60 for seed in ("one", "two", "one")]
    assert len({shortened(name, 46) for name in same}) == 1
    first, second, third = names_apart(same, 46)
    assert first == third != second
    assert max(map(len, (first, second))) <= 46
    assert re.fullmatch(r"module\.path:x+…one…y+", first)
    assert names_apart(["a b" * 30], 40) == [shortened("a b" * 30, 40)]
    assert names_apart([], 40) == []


def said_of(key: str) -> list[str]:
    """How labels say an axis at its two values; empty where one says nothing."""
    others = [other for other in TABLE if other != key]
    return [" ".join(sayings(cell, without=others)) for cell in pair_of(key)]


@pytest.mark.parametrize("key", TABLE)
def test_a_long_name_says_of_an_axis_all_its_words_or_none_of_them(key: str) -> None:
    shared = list(filter(None, (said for other in TABLE if other != key for said in dict.fromkeys(said_of(other)))))
    before, behind = " ".join(shared[::2]), " ".join(shared[1::2])
    a, b = said_of(key)
    names = [f"none ×1 {before} b64 {a} {behind}", f"mirrored ×2 {before} b64 {b} {behind}"]
    assert names_apart(names, 56) == [f"none ×1 {a}".strip(), f"mirrored ×2 {b}".strip()]


def test_numbers_of_a_long_name_keep_what_they_are_of() -> None:
    rest = "prefetch 8 cache none parallel_calls 4 interleave 2 shards 4"
    called = [
        f"parameter_server 2 workers 1 ps b64 XLA {steps} steps a call {threads} threads {rest}"
        for steps, threads in ((8, 2), (8, 4), (4, 4))
    ]
    assert names_apart(called, 56) == [
        "8 steps a call 2 threads",
        "8 steps a call 4 threads",
        "4 steps a call 4 threads",
    ]
    assert names_apart([f"mirrored ×1 b64 {n} threads {rest}" for n in (1, 2)], 56) == ["1 threads", "2 threads"]
    servers = [f"parameter_server {n} workers {s} ps b64 {rest}" for n, s in ((2, 1), (2, 2), (3, 2))]
    assert names_apart(servers, 56) == [
        "parameter_server 2 workers 1 ps",
        "parameter_server 2 workers 2 ps",
        "parameter_server 3 workers 2 ps",
    ]
    scripts = [f"train.py --epochs {n} --depth 3 --{'x' * 60} b64" for n in (3, 4)]
    assert names_apart(scripts, 56) == ["--epochs 3", "--epochs 4"]
    rates = [
        f"train.py --learning-rate {r} --weight-decay 1e-4 --opt adam --depth 18 --width 64 b64"
        for r in ("1e-3", "1e-4")
    ]
    assert names_apart(rates, 56) == ["--learning-rate 1e-3", "--learning-rate 1e-4"]
    series = [f"multi_worker_mirrored, mixed_bfloat16, XLA, rate=100mbit,delay=3ms, {n} a worker" for n in (1, 2)]
    assert names_apart(series, 56) == ["1 a worker", "2 a worker"]
    counted = [f"package.module:function_{'x' * 60} {n} images" for n in (8, 16)]
    assert [name[-10:] for name in names_apart(counted, 56)] == ["x 8 images", " 16 images"]


def test_the_mark_of_what_is_unproved_stays_in_every_name() -> None:
    rest = "prefetch 8 cache none parallel_calls 4 interleave 2 shards 4 (unproved)"
    assert names_apart([f"{of} b64 XLA {rest}" for of in ("none ×1", "mirrored ×2")], 56) == [
        "none ×1 (unproved)",
        "mirrored ×2 (unproved)",
    ]
    names = [f"{'x' * 90}{seed}{'y' * 90} (unproved)" for seed in ("one" * 9, "two" * 9)]
    one, both = names_apart([names[0].removesuffix(" (unproved)"), *names[1:]], 56), names_apart(names, 40)
    assert [name.endswith(" (unproved)") for name in (*one, *both)] == [False, True, True, True]
    assert max(map(len, one)) <= 56
    assert max(map(len, both)) <= 40


def test_long_names_that_differ_at_both_ends_or_in_several_places_are_short_too() -> None:
    ends = [f"ab{seed}{'x' * 260}{seed}cd" for seed in ("one", "two")]
    first, second = names_apart(ends, 56)
    assert first != second
    assert max(map(len, (first, second))) <= 56
    many = [
        f"ab{a}{'x' * 90}{b}{'y' * 90}{c}cd" for a in ("one", "two") for b in ("three", "four") for c in ("five", "six")
    ]
    apart = names_apart(many, 56)
    assert len(set(apart)) == len(many)
    assert max(map(len, apart)) <= 56


def test_lists_read_as_english() -> None:
    assert [listed(names) for names in ([], ["a"], ["a", "b"], list("abc"))] == ["", "a", "a and b", "a, b and c"]
    assert listed(list("abcdefg")) == "a, b, c and 4 more"


def note_of(**run: float) -> str:
    summary = summarise(*make_run(**run))  # type: ignore[arg-type]
    return ranking_table(summary.workloads[0], summary.noise).note


def test_comparisons_are_called_more_exact_only_in_a_run_where_they_are() -> None:
    assert "and are more exact than the throughputs: such comparisons vary by 0." in note_of(drift=0.08)
    assert "that made them no more exact here" in note_of(drift=0.0, noise=0.03)
    assert "exact" not in note_of(blocks=1)


def test_the_ranking_says_for_how_many_comparisons_its_intervals_allow() -> None:
    assert "The interval of '% of fastest' allows for 20 comparisons" in note_of()
    two = summarise(*make_run([make_cell("none", 1, size) for size in (32, 128)]))
    assert "corrected" not in ranking_table(two.workloads[0], two.noise).note


def test_a_cell_with_servers_is_described_by_its_workers_servers_and_how_they_are_used() -> None:
    cell = make_cell("parameter_server", 1, workers=2, ps=1, global_batch_size=32)
    assert describe(cell) == "parameter_server, 2 workers, 1 parameter server, batch 32 a worker"
    more = cell.model_copy(update={"ps": 2, "partitioner": "min_size", "updates": "keras"})
    assert describe(more).endswith("2 parameter servers, batch 32 a worker, partitioner min_size, keras updates")


def test_a_mesh_is_described_once_before_the_batch_and_a_loop_by_its_name() -> None:
    cell = make_cell("dtensor", 2, mesh="batch:2,model:2")
    assert describe(cell) == "dtensor, 2 replicas, a mesh of batch:2,model:2, batch 32 a replica"
    assert describe(make_cell("mirrored", 2, loop="in_graph")).endswith("batch 32 a replica, loop in_graph")
    assert describe(make_cell("mirrored", 2, loop="fit")).endswith("batch 32 a replica, Model.fit")


def test_in_a_sentence_what_has_no_interval_says_so_in_brackets() -> None:
    alone = Interval(0.908, None, None)
    assert (ratio(alone), share(alone)) == ("0.908× (no interval)", "90.8 % (no interval)")


def heads_and_words(cells: list[Cell]) -> tuple[set[str], str]:
    """Heads of the tables of ratios, and what is said of them on the page and on terminals of three widths."""
    manifest, trials = make_run(cells, faults=False)
    summary = summarise(manifest, trials)
    [work] = summary.workloads
    tables = ranking_table(work, summary.noise), scaling_table(work)
    said = [run_text(manifest, trials, summary, width, False) for width in (160, 120, 90)]
    figures = filter(None, (throughput_figure(work, "t"), efficiency_figure(work, "e")))
    words = [*(table.note for table in tables), *said, *(figure.caption for figure in figures)]
    [text] = answers(summary)
    words += [figure.name for figure in text.figures]
    return {column.name for table in tables for column in table.columns}, " ".join(" ".join(words).split())


def test_windows_are_as_long_as_they_lasted_not_as_was_asked_for() -> None:
    manifest, trials = make_run()
    summary = summarise(manifest, trials)
    medians = [cell.measured.windows.window_s for cell in summary.cells if cell.measured and cell.measured.windows]
    lasted = f"which lasted {seconds(min(medians))} to {seconds(max(medians))} (medians of cells)"
    said = f"10 windows each, sized for 100 ms, {lasted}; "
    assert windows_words(manifest, summary) + "; " == said
    assert said in " ".join(run_text(manifest, trials, summary, 100, False).split())
    nothing = summarise(*make_run(change=lambda _: None))
    assert windows_words(manifest, nothing) == "10 windows each, sized for 100 ms"
    one = summarise(*make_run([make_cell()], faults=False))
    assert re.search(r", which lasted [\d.]+ ms \(median\)$", windows_words(manifest, one))


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160])
def test_a_terminal_of_any_width_shows_the_intervals_and_names_the_columns_that_it_has_no_room_for(width: int) -> None:
    manifest, trials = make_run()
    summary = summarise(manifest, trials)
    [work] = summary.workloads
    table, said = ranking_table(work, summary.noise), run_text(manifest, trials, summary, width, False)
    assert max(map(len, said.splitlines())) <= width
    assert table.rows[0][3].startswith("[")
    assert all(row[3] in said for row in table.rows)
    heads = " ".join(said[said.index(table.title[:40]) :].partition("──")[0].split())
    absent = re.search("No room for (.*?): a terminal of 160 columns shows all, and so does", " ".join(said.split()))
    named = re.findall("'(.*?)'", absent[1]) if absent else []
    assert set(named) <= {*(column.name for column in table.columns), "windows"}
    assert bool(named) == (width < 160)
    assert ("trials" in heads, "windows" in heads) == ("trials" not in named, "windows" not in named)
    assert ("Windows: speed in each" in said) == ("windows" in heads)


def test_where_there_is_little_room_heads_are_broken_before_names_and_numbers() -> None:
    heads = (Head("cell", False), Head("95 % in these minutes"))
    table = Table("t", heads, (("mirrored ×3 b128", "[12,900 – 13,400]"),), marked=frozenset({0}))
    lines = table_text(table, 45).splitlines()
    assert [line.split() for line in lines if "minutes" in line] == [["cell", "minutes"]]
    assert "  * mirrored ×3 b128   [12,900 – 13,400]" in lines
    assert max(map(len, lines)) <= 45
    assert "95 % in these minutes" in table_text(table, 46)


def test_ratios_are_named_by_the_device_that_they_are_over_where_the_whole_machine_is_a_base_case_too() -> None:
    cells = [make_cell(), make_cell("mirrored", 1), make_cell("mirrored", 2), make_cell("mirrored", 3)]
    heads, words = heads_and_words(cells)
    assert {"× no strategy", "E", "E_r"} <= heads
    assert words.count("× no strategy") >= 3
    assert "one device at the same batch" not in words
    heads, words = heads_and_words([*cells, make_cell(intra_op_threads=2)])
    assert {"× one device", "E, one device", "E_r, one device"} <= heads
    assert not {"× no strategy", "E", "E_r"} & heads
    assert words.count("× one device") >= 3
    assert "'% of fastest' and '× one device' compare" in words
    assert "E: efficiency over no strategy on one device at the same batch." in words
    assert "copies of no strategy on one device would have" in words
    assert "Each point is no strategy on one device times the cell's speed-up" in words
    assert "of what its processors allow" not in words, "no tile has the efficiency of another cell than its own"
    assert "'× no strategy'" not in words

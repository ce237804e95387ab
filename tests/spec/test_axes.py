"""The table of keys: whatever axis there is keeps its cells apart, by name and wherever cells are grouped.

Each test goes over the table, so an axis that is added is held to it without a line here.
"""

import itertools
import re
import shlex
import typing
from collections.abc import Iterable

import pytest
from pydantic import BaseModel

from harness.analysis.batch import batch_curves
from harness.analysis.comparison.axis import along, value_of
from harness.analysis.history.series import Series
from harness.analysis.ranking import RankingScope
from harness.analysis.summary import RunSummary, summarise
from harness.errors import UsageError
from harness.plan.blocks import make_plan
from harness.record.imported import PublishedFigure
from harness.record.trial import Executed, Resources, TrialRecord
from harness.report.export.rows import trial_rows
from harness.report.figures.curves import throughput_figure
from harness.report.history.names import names_in
from harness.report.page.trials.columns import labels_of
from harness.report.page.trials.command import repeat_commands
from harness.report.tables.overlay import series_of
from harness.report.words.names import names_of
from harness.report.words.text import describe
from harness.spec import sweep_from
from harness.spec.axes import TABLE, Axes
from harness.spec.cell import LATER, TrainingCell, cell_names
from harness.spec.entry import KEEP, unlabelled
from harness.spec.grouping import BESIDE_PROGRAM, SIZE, experiment, family, lies_in_family_on_curve, own_curve
from harness.spec.naming import value_words
from harness.spec.sweep import ASKED, AXES, HELP, OF_OTHER_WORK
from harness.spec.text import text_of
from harness.spec.text import value_from as read
from tests.axes import only_cell, pair_of, spec_of
from tests.synthetic import make_run

every_axis = pytest.mark.parametrize("key", TABLE)


def measured(key: str, fingerprint: str | None = None) -> tuple[RunSummary, tuple[TrainingCell, TrainingCell]]:
    """A run of the two cells of an axis and their bases; `fingerprint` is what all of them traced to."""

    def traced(record: TrialRecord) -> TrialRecord:
        if fingerprint is None:
            return record
        same = record.executed.model_copy(update={"fingerprint": fingerprint})
        threads = getattr(record.cell, "intra_op_threads", 0)
        on = record.resources.model_copy(update={"intra_op_threads": threads})
        return record.model_copy(update={"executed": same, "resources": on})

    a, b = pair_of(key)
    cells = dict.fromkeys([a, b, a.base, b.base])
    return summarise(*make_run(list(cells), faults=False, change=traced)), (a, b)


def together(groups: Iterable[Iterable[str]], a: TrainingCell, b: TrainingCell) -> bool:
    """Whether some group holds both cells."""
    return any({a.cell_id, b.cell_id} <= set(group) for group in groups)


@every_axis
def test_two_values_of_an_axis_are_two_cells(key: str) -> None:
    a, b = pair_of(key)
    assert a.cell_id != b.cell_id


@every_axis
def test_an_axis_of_later_versions_leaves_cells_of_earlier_runs_as_they_were(key: str) -> None:
    assert TABLE[key].later == (key in LATER)
    if TABLE[key].later:
        cell = only_cell(sweep_from({"model": "mlp", "strategy": "none", "replicas": 1}))
        assert getattr(cell, key) == Axes.model_fields[key].default
        written = cell.model_dump()
        del written[key]
        assert TrainingCell.model_validate(written).cell_id == cell.cell_id


@every_axis
def test_the_base_case_has_the_cells_own_value_unless_the_entry_resets_it(key: str) -> None:
    a, b = (cell.base for cell in pair_of(key))
    assert (a == b) == (TABLE[key].base is not KEEP)


@every_axis
def test_one_ranking_holds_two_values_only_where_the_entry_says_that_they_compete(key: str) -> None:
    summary, (a, b) = measured(key)
    holding = [{cell.cell_id for cell in work.cells} for work in summary.workloads]
    assert any({a.cell_id, b.cell_id} <= ids for ids in holding) == TABLE[key].competes
    names = [work.workload.label for work in summary.workloads]
    assert len(set(names)) == len(names) == (1 if TABLE[key].competes else 2)


@every_axis
def test_an_axis_whose_values_are_ranked_apart_says_why(key: str) -> None:
    assert bool(TABLE[key].apart) != TABLE[key].competes


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if axis.told])
def test_the_name_of_a_ranking_says_which_values_it_holds_of_an_axis_that_is_told(key: str) -> None:
    a, b = (value_words(cell, key) for cell in pair_of(key))
    summary, (cell, _) = measured(key)
    [both] = summary.workloads
    assert f"{a} and {b}" in both.workload.label
    assert both.workload.get(key) is None
    alone = RankingScope.of([cell])
    assert f", {a}, " in alone.label
    assert alone.get(key) == getattr(cell, key)


@every_axis
def test_cells_of_one_ranking_have_labels_of_their_own_and_words_too(key: str) -> None:
    a, b = pair_of(key)
    assert (a.label != b.label) == (TABLE[key].label is not unlabelled)
    if TABLE[key].competes:
        assert describe(a) != describe(b)
        assert describe(a.base) != describe(b.base) or a.base == b.base


@every_axis
def test_names_for_tables_other_tools_and_histories_tell_two_values_apart(key: str) -> None:
    a, b = pair_of(key)
    all_names = (
        list(cell_names([a, b]).values()),
        labels_of([a, b]),
        names_of([a, b]),
        [a.full_name, b.full_name],
    )
    for names in all_names:
        assert len(set(names)) == 2
        assert not any(cell.cell_id in name for cell, name in zip((a, b), names, strict=True))


@every_axis
def test_a_published_figure_of_another_value_has_another_label(key: str) -> None:
    needed = ("strategy", "replicas", "model", "batch_size")
    values = [{**{name: getattr(cell, name) for name in needed}, key: getattr(cell, key)} for cell in pair_of(key)]
    a, b = (PublishedFigure(row=2, keys=keys, throughput_examples_per_s=1.0) for keys in values)
    assert a.label != b.label


def test_no_two_published_figures_that_each_give_another_axis_have_the_same_label() -> None:
    shared = {"strategy": "mirrored", "replicas": 2, "model": "mlp"}
    numbers = [key for key, field in Axes.model_fields.items() if key not in shared and field.annotation is int]
    given = [(key, 4) for key in numbers]
    given += [(key, getattr(cell, key)) for key in TABLE if key not in (*shared, *numbers) for cell in pair_of(key)]
    labels = [
        PublishedFigure(row=2, keys={**shared, key: value}, throughput_examples_per_s=1.0).label
        for key, value in given
        if value != ""  # which a table says that has no such column
    ]
    assert len({*labels}) == len(labels)
    assert {"mirrored ×2 mlp 4 micro-batches", "mirrored ×2 mlp any order", "mirrored ×2 mlp no XLA"} < {*labels}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"global_batch_size": 16}, False),
        ({"global_batch_size": 32, "workers": 2}, False),
        ({"global_batch_size": 8, "batch_scope": "global"}, False),
        ({"global_batch_size": 8, "workers": 2, "ps": 1}, False),
        ({"global_batch_size": 8}, True),
    ],
)
def test_a_published_figures_label_says_the_global_batch_where_its_batch_does_not_tell_it(
    given: dict[str, str | int], told: bool
) -> None:
    keys = {"strategy": "mirrored", "replicas": 2, "model": "mlp", "batch_size": 8, **given}
    figure = PublishedFigure(row=2, keys=keys, throughput_examples_per_s=1.0)
    assert ("global_batch_size" in figure.label) == told
    assert "batch_scope" not in figure.label


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if not axis.along_curve or axis.on_curve])
def test_a_published_series_is_of_one_value_of_an_axis_and_its_caption_says_which(key: str) -> None:
    shared = {"strategy": "mirrored", "model": "mlp", "batch_size": 8}
    values = [{**shared, key: getattr(cell, key)} for cell in pair_of(key)]
    each = [{**keys, "replicas": n} for keys in values for n in (1, 2)]
    found = series_of([PublishedFigure(row=2, keys=keys, throughput_examples_per_s=1.0) for keys in each])
    # a series of a fixed global batch is none: its efficiency is another thing
    assert len({series.words for series in found}) == len(found) == (1 if key == "batch_scope" else 2)


@every_axis
def test_a_scaling_curve_joins_two_values_only_along_itself(key: str) -> None:
    a, b = pair_of(key)
    varies = TABLE[key].along_curve and TABLE[key].on_curve is None
    for point, cell in ((a, b), (b, a)):
        assert (family(point) == family(cell) and lies_in_family_on_curve(point, cell)) == varies
    assert ((family(a), own_curve(a)) == (family(b), own_curve(b))) == varies


def test_an_axis_that_labels_leave_out_is_told_on_the_page_and_in_histories_without_a_list_of_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = pair_of("partitioner")
    monkeypatch.setattr("harness.spec.cell.UNLABELLED", ("partitioner",))
    monkeypatch.setattr(TrainingCell, "label", "mirrored ×2 b8")
    assert labels_of([a, b]) == ["mirrored ×2 b8, none", "mirrored ×2 b8, fixed"]
    series = [Series("machine", "cpu", cell, "throughput", (), (), ()) for cell in (a, b)]
    names = names_in(series)
    assert len({names.of(one) for one in series}) == 2


def with_curve(cell: TrainingCell) -> list[TrainingCell]:
    """`cell`, its base cases, on one device and on the whole machine, and a curve over that: the same on one and two
    replicas."""
    base = cell.base
    more = 1 if base.batch_scope == "global" else 2
    one = base.model_copy(update={"strategy": "mirrored"})
    two = one.model_copy(update={"replicas": 2, SIZE: more * base.batch_size})
    return [cell, base, base.model_copy(update={"intra_op_threads": 2}), one, two]


@every_axis
def test_a_panel_of_curves_has_its_points_apart_and_the_lines_of_their_own_base_cases(key: str) -> None:
    cells = dict.fromkeys(of for cell in pair_of(key) for of in with_curve(cell))
    summary = summarise(*make_run(list(cells), faults=False))
    rates = {c.cell_id: c.measured.throughput.value for c in summary.cells if c.measured}
    on_all_cores = [c.cell_id for c in summary.cells if c.trials.all_cores > 1]
    figures = [figure for work in summary.workloads if (figure := throughput_figure(work, "f"))]
    assert len(figures) == len(summary.workloads)
    for figure in figures:
        assert len({(row["panel"], row["curve"], row["replicas"]) for row in figure.data}) == len(figure.data)
        for row in figure.data:
            [cell] = [cell for cell in cells if cell.cell_id == row["cell_id"]]
            base = cell.base
            assert row["ideal"] == pytest.approx(cell.devices_in_sync * rates[base.cell_id])
            at = {"batch_size": base.batch_size, SIZE: base.batch_size, "intra_op_threads": base.intra_op_threads}
            whole = [rates[c] for c in on_all_cores if summary.by_id[c].trials.cell.model_copy(update=at) == base]
            assert row["whole_machine"] == (pytest.approx(max(whole), rel=1e-6) if whole else None)


def on_twice_the_replicas(cell: TrainingCell) -> TrainingCell:
    """A cell like it that has something to reduce."""
    strategy = "mirrored" if cell.strategy == "none" else cell.strategy
    return cell.model_copy(update={"strategy": strategy, "replicas": 2 * cell.replicas, SIZE: 2 * cell.get(SIZE)})


@every_axis
def test_the_table_of_ops_sets_nothing_else_side_by_side(key: str) -> None:
    a, b = map(on_twice_the_replicas, pair_of(key))
    summary = summarise(*make_run([a, b], faults=False))
    groups = [[result.cell_id for result in group.results] for work in summary.workloads for group in work.ops]
    assert together(groups, a, b) == TABLE[key].side_by_side


@every_axis
def test_a_batch_curve_joins_nothing_but_batch_sizes(key: str) -> None:
    summary, (a, b) = measured(key)
    curves = [curve for work in summary.workloads for curve in batch_curves([c.trials for c in work.cells], ())]
    groups = [[point.cell.cell_id for point in curve.points] for curve in curves]
    assert together(groups, a, b) == (key == "batch_size")


@every_axis
def test_one_program_is_the_same_experiment_only_where_the_program_shows_the_axis(key: str) -> None:
    summary, (a, b) = measured(key, fingerprint="one program")
    twins = summary.by_id[a.cell_id].same_experiment_as
    shown = TABLE[key].in_program and getattr(a, SIZE) == getattr(b, SIZE)
    assert (experiment(a) == experiment(b)) == shown
    assert (b.cell_id in twins) == (shown and TABLE[key].competes)


@every_axis
@pytest.mark.parametrize("recorded", [True, False])
def test_an_axis_beside_the_program_that_took_no_hold_by_the_record_makes_one_experiment(
    key: str, recorded: bool
) -> None:
    """Of the axes beside the program and the curve, those whose evidence a record has: threads, prefetch and XLA."""

    def alike(record: TrialRecord) -> TrialRecord:
        input_ops = ["TensorSlice", "Repeat"] if recorded else []
        trained_by = "jax" if recorded else ""
        told = {"packs": "joined in one way"} if recorded else {}
        shown = {"input": input_ops, "xla_clusters": int(recorded), "engine": trained_by, "unlike": told}
        shown |= {"steps_a_call": 5 if recorded else None}
        ran = Executed(fingerprint="one program", **shown)
        on = Resources(logical_devices=["CPU:0"], intra_op_threads=1 if recorded else 0)
        return record.model_copy(update={"executed": ran, "resources": on})

    a, b = pair_of(key)
    twins = summarise(*make_run([a, b], faults=False, change=alike)).by_id[a.cell_id].same_experiment_as
    by_program = TABLE[key].in_program and getattr(a, SIZE) == getattr(b, SIZE)
    places = BESIDE_PROGRAM.get(key, ())
    by_evidence = recorded and bool(places) and not any(place.startswith("cluster.") for place in places)
    assert (b.cell_id in twins) == (TABLE[key].competes and (by_program or by_evidence))
    assert by_evidence or key not in ("prefetch", "intra_op_threads", "xla") or not recorded


@every_axis
def test_only_values_that_would_be_compared_take_turns(key: str) -> None:
    a, b = pair_of(key)
    axis = TABLE[key]
    plan = make_plan([a, b, a.base, b.base], 1, seed=1, live={})
    may = axis.competes if axis.takes_turns is None else axis.takes_turns
    assert together(itertools.chain.from_iterable(plan.blocks), a, b) == may


@every_axis
def test_a_comparison_along_an_axis_pairs_its_values_and_no_other_axis_does(key: str) -> None:
    a, b = pair_of(key)
    manifest, _ = make_run([a, b], faults=False)
    if a.work.quantity != b.work.quantity:
        with pytest.raises(UsageError, match=r"^--along: one is counted in .* which do not compare"):
            along(manifest, [a, b], key)
        return
    [pair] = along(manifest, [a, b], key).pairs
    assert {cell.cell_id for cell in pair} == {a.cell_id, b.cell_id}
    for other in TABLE:
        assert other == key or value_of(a, other) == value_of(b, other)


@every_axis
def test_a_comparison_along_another_axis_pairs_no_two_values(key: str) -> None:
    other = "precision" if key != "precision" else "loop"
    a, b = pair_of(key)
    cells = [a, b.model_copy(update={other: TABLE[other].tried[1]})]
    manifest, _ = make_run(cells, faults=False)
    with pytest.raises(UsageError, match=f"no cell at another {other} equals one at {other} "):
        along(manifest, cells, other)


@every_axis
def test_an_axis_has_a_column_of_its_own(key: str) -> None:
    _, trials = make_run(list(pair_of(key)), faults=False, blocks=1)
    assert len({row[f"cell.{key}"] for row in trial_rows(trials)}) == 2


@every_axis
def test_the_command_to_repeat_a_cell_gives_that_cell(key: str) -> None:
    for cell in pair_of(key):
        manifest, _ = make_run([cell], faults=False, blocks=1)
        [command] = repeat_commands([cell], manifest)
        assert command is not None
        words = shlex.split(command)[4:]
        flags = {
            flag.removeprefix("--").replace("-", "_"): text
            for flag, text in itertools.pairwise(words)
            if flag.startswith("--")
        }
        values = {name: [True] if text.startswith("--") else read(name, text) for name, text in flags.items()}
        assert only_cell(sweep_from(values)).cell_id == cell.cell_id


@pytest.mark.parametrize("key", [key for key in ASKED if key not in OF_OTHER_WORK])
def test_a_key_of_a_spec_has_a_flag_with_help_whose_text_is_read_back(key: str) -> None:
    assert key in AXES
    assert HELP[key]
    axis = next(name for name, axis in TABLE.items() if key == name or key in axis.kinds)
    given = getattr(spec_of(axis, TABLE[axis].tried[0]), key) or [1]
    assert read(key, text_of(key, given)) == given


@every_axis
def test_an_entry_names_a_place_in_the_record_that_shows_the_axis(key: str) -> None:
    assert TABLE[key].shown_by
    for place in TABLE[key].shown_by:
        model: type[BaseModel] = TrialRecord
        for part in place.split("."):
            assert part in model.model_fields, f"'{place}' is no place in a record"
            kinds = typing.get_args(model.model_fields[part].annotation) or (model.model_fields[part].annotation,)
            model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), BaseModel)


@pytest.mark.parametrize("key", [key for key, axis in TABLE.items() if axis.own[0]])
def test_a_value_that_names_a_function_is_code_of_the_users_own(key: str) -> None:
    cell, name = pair_of(key)[0], "pkg.module:function"
    assert re.fullmatch(TABLE[key].own[1], name)
    assert cell.own_code == {}
    assert cell.model_copy(update={key: name}).own_code == {key: name}


def test_a_data_set_by_its_name_is_no_code() -> None:
    assert re.fullmatch(TABLE["data"].own[1], "tfds:mnist/a:1.0.0")
    assert pair_of("data")[0].model_copy(update={"data": "tfds:mnist"}).own_code == {}


def test_an_axis_of_which_nothing_is_said_keeps_cells_apart() -> None:
    class Wider(TrainingCell):
        added: int = 0

    a, b = (Wider(**only_cell(sweep_from({"strategy": "none", "replicas": 1})).model_dump(), added=n) for n in (0, 1))
    assert family(a) != family(b)
    assert experiment(a) != experiment(b)
    assert a.base != b.base
    plan = make_plan([a, b], 1, seed=1, live={})
    assert not together(itertools.chain.from_iterable(plan.blocks), a, b)

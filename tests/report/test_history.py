"""A history as a reader meets it: series and machines that can be told apart, and the rate of false alarms."""

import re

import pytest

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.history.false_alarms import false_alarms
from harness.analysis.history.series import Series, history
from harness.report.history import (
    change_lines,
    false_alarm_line,
    history_json,
    history_page,
    history_table,
    summary_lines,
)
from tests.histories import nights
from tests.synthetic import make_cell

TWO_MODELS = [make_cell(model=model, xla=xla) for model in ("mnist_cnn", "mlp") for xla in (False, True)]


def two_machines() -> tuple[Series, ...]:
    """The same two cells on two machines; on one of them TensorFlow changes and the mirrored cell gets slower."""
    quick = nights(14, machine="aaaa", processor="A quick one", slower_from=7)
    return history([*quick, *nights(3, machine="bbbb", processor="A slow one")])


def column(series: tuple[Series, ...], name: str) -> list[str]:
    table = history_table(series)
    place = [one.name for one in table.columns].index(name)
    return [row[place] for row in table.rows]


def test_cells_that_share_a_label_are_named_by_what_differs() -> None:
    series = history(nights(2, TWO_MODELS))
    assert column(series, "cell") == [
        "none ×1 b32, mnist_cnn",
        "none ×1 b32 XLA, mnist_cnn",
        "none ×1 b32, mlp",
        "none ×1 b32 XLA, mlp",
    ]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("none ×1 b32, mlp", ["mlp"]),
        ("none x1 b32, mlp", ["mlp"]),
        ("mlp", ["mlp", "mlp XLA"]),
        ("none x1 b32", ["mnist_cnn", "mlp"]),
        ("none x1", ["mnist_cnn", "mnist_cnn XLA", "mlp", "mlp XLA"]),
        (TWO_MODELS[3].full_name, ["mlp XLA"]),
        (TWO_MODELS[3].cell_id, ["mlp XLA"]),
        ("resnet20", []),
    ],
)
def test_a_cell_is_found_by_the_name_that_is_printed_and_else_by_a_part_of_it(given: str, found: list[str]) -> None:
    cells = [one.cell for one in history(nights(2, TWO_MODELS), [given])]
    assert [f"{cell.subject}{' XLA' if 'XLA' in cell.label else ''}" for cell in cells] == found


def test_as_json_every_cell_has_a_name_of_its_own() -> None:
    rows = history_json(history(nights(2, TWO_MODELS)), {}, 2, None)["series"]
    assert [row["name"] for row in rows] == [cell.full_name for cell in TWO_MODELS]


def test_one_machine_needs_no_column_and_several_have_one() -> None:
    assert "machine" not in [column.name for column in history_table(history(nights(2))).columns]
    series = two_machines()
    assert list(dict.fromkeys(column(series, "machine"))) == ["A quick one (aaaa)", "A slow one (bbbb)"]
    rows = list(zip(column(series, "machine"), column(series, "cell"), strict=True))
    assert len(set(rows)) == len(rows) == 6


def test_with_several_machines_every_sentence_says_on_which() -> None:
    series = two_machines()
    changes = [line for line in change_lines(series, {}) if not line.startswith(" ")]
    assert changes
    assert all(" on A quick one (aaaa): −" in line for line in changes)
    assert "on A quick one (aaaa) and A slow one (bbbb)." in summary_lines(series, 17)[0]
    assert "mirrored ×2 b32 on A quick one (aaaa)" in summary_lines(series, 17)[2]


def test_a_history_is_headed_by_direction_size_date_and_what_differs() -> None:
    series = history(nights(14, slower_from=7))
    told = summary_lines(series, 14)[1]
    assert re.fullmatch(
        r"Slower by up to 9\.\d\d % since 2026-11-08 in 2 series; "
        r"package\.tensorflow and sweep\.seed differ\.",
        told,
    )
    assert f'<p class="headline">{told}</p>' in history_page(series, {}, 14, None)
    assert not any("since" in line for line in summary_lines(history(nights(14)), 14))


def test_the_page_heads_each_figure_with_a_name_of_its_own_and_its_title_with_every_machine() -> None:
    page = history_page(two_machines(), {}, 17, None)
    assert "<title>History of A quick one (aaaa) and A slow one (bbbb)</title>" in page
    headings = [part.partition("</h3>")[0] for part in page.split('<h3 class="unseen">')[1:]]
    assert len(set(headings)) == len(headings) == 6
    assert "Runs and levels of mirrored ×2 b32, × no strategy on A slow one (bbbb)" in page


def test_the_page_states_how_many_false_alarms_were_counted_on_the_series_own_scatter() -> None:
    series = history(nights(12))
    alarms = false_alarms(series, 40)
    assert alarms is not None
    assert f"of 40 series drawn from the scatter of these runs, in which nothing changes, {alarms.count} would be" in (
        history_page(series, {}, 12, alarms)
    )


def test_the_rate_is_said_with_its_limits_beside_what_is_promised() -> None:
    line = false_alarm_line(clopper_pearson(3, 200))
    assert "3 would be marked: 1.5 % [0.31 – 4.3]; the test promises 1 %." in line
    assert false_alarm_line(None) == ""

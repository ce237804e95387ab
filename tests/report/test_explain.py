"""The sentence that says why a step is not faster."""

from collections.abc import Mapping, Sequence

from harness.analysis.explain import explanations_of
from harness.report.tables.explain import explain_lines, explain_tables
from tests.explained import RATIOS, STEADY, explain_run

QUIET = dict.fromkeys(["whole", "no_input", "no_reduction", "no_update", "forward_backward"], 1.0)


def said(ratios: Mapping[str, float] = RATIOS, noise: Sequence[float] = STEADY) -> str:
    return explain_lines(explanations_of(explain_run(ratios, noise)))[0]


def test_what_binds_a_step_is_said_with_how_much_there_is_to_win_and_what_to_try() -> None:
    text = said()
    assert "is communication-bound: 30.0 % [" in text
    assert "at most 1.4" in text
    assert "--cross-device-op" in text


def test_a_step_that_computes_is_told_that_nothing_else_takes_a_tenth() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.02, "alone": 0.98})
    assert "is compute-bound" in text
    assert "nothing else takes 10%" in text


def test_several_parts_are_all_named() -> None:
    text = said(RATIOS | {"no_input": 0.8, "no_reduction": 0.8})
    assert "bound by several parts" in text
    assert "input 20" in text
    assert "communication 20" in text


def test_where_nothing_is_decided_the_parts_that_may_count_are_named_with_their_intervals() -> None:
    text = said(QUIET | {"forward": 0.3, "empty": 0.13, "alone": 0.98}, [0.1, -0.1, 0.12, -0.12, 0.0])
    assert ": undecided. Of its step" in text
    assert "more --trials" in text


def test_an_arm_that_gave_nothing_is_named_with_its_reason() -> None:
    lines = explain_lines(explanations_of(explain_run(crashed={"empty": "it computes 1 MatMul"})))
    assert any("'empty'" in line and "it computes 1 MatMul" in line for line in lines)


def test_the_table_has_a_row_for_each_part_and_marks_what_binds() -> None:
    [table] = explain_tables(explanations_of(explain_run()))
    names = [row[0] for row in table.rows]
    assert names[:7] == ["input", "communication", "update", "dispatch", "contention", "compute", "unexplained"]
    assert [names[number] for number in table.marked] == ["communication"]

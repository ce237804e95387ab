"""A validation as tables and sentences: what is promised beside what was found, and nothing that was not measured."""

from typing import Any

import pytest

from harness.analysis.estimates.power import clopper_pearson
from harness.record.validation import Effect, Floor, Rate, Rule, ValidationRecord
from harness.report.tables.table import Table
from harness.report.tables.validation import (
    effects_table,
    goals_table,
    pooled,
    rate,
    summary_words,
    tools_table,
    validation_lines,
    validation_tables,
)
from harness.report.words.text import NOTHING
from tests.comparisons import MIRRORED, validation
from tests.synthetic import make_cell

ONE = make_cell("none", 1)


def effect(
    slower: int = 0,
    of: int = 20,
    plant: str | None = None,
    share: float = 0.0,
    faster: int = 0,
    undecided: int = 0,
    **changes: Any,
) -> Effect:
    """Decisions of which so many were slower, faster and undecided, the rest equivalent."""
    same = of - slower - faster - undecided
    values: dict[str, Any] = {
        "cell": MIRRORED,
        "plant": plant,
        "share": share,
        "verdicts": {"slower": slower, "faster": faster, "undecided": undecided, "equivalent": same},
        "slower": clopper_pearson(slower, of),
        "equivalent": clopper_pearson(same, of),
        "false_alarms": None if plant else clopper_pearson(slower + faster, of),
        "measured": 0.0,
        "blocks_median": 6,
        "blocks_most": 12,
        "seconds_median": 60.0,
        "seconds_most": 120.0,
    }
    return Effect(**{**values, **changes})


def planted(slower: int, of: int = 20, share: float = 0.05, kind: str = "device_work", **changes: Any) -> Effect:
    return effect(slower, of, kind, share, **changes)


def record(*effects: Effect, **changes: Any) -> ValidationRecord:
    return validation(effects=list(effects), **changes)


def column(table: Table, name: str) -> list[str]:
    place = [one.name for one in table.columns].index(name)
    return [row[place] for row in table.rows]


def goals(*effects: Effect) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in goals_table(record(*effects)).rows}


# goals


@pytest.mark.parametrize(("slower", "faster", "met"), [(0, 0, "met"), (1, 2, "met"), (2, 2, "NOT MET")])
def test_false_alarms_of_all_cells_stand_beside_their_goal_with_the_upper_limit(
    slower: int, faster: int, met: str
) -> None:
    found = goals(effect(slower, 30, faster=faster), effect(0, 30, cell=ONE))["A/A, false alarms"]
    count = slower + faster
    assert found[0] == "≤ 5%"
    assert found[1].startswith(f"{count} of 60 [")
    assert found[2] == met
    if not count:
        assert "at most 4.9% (one-sided 95 %)" in found[1]


@pytest.mark.parametrize(("undecided", "met"), [(0, "met"), (4, "met"), (5, "NOT MET")])
def test_how_often_the_same_thing_is_called_equivalent_is_a_goal(undecided: int, met: str) -> None:
    assert goals(effect(of=20, undecided=undecided))["A/A, called equivalent"][2] == met


@pytest.mark.parametrize(
    ("share", "slower", "met"),
    [(0.05, 19, "met"), (0.05, 18, "NOT MET"), (0.03, 18, "met"), (0.03, 17, "NOT MET")],
)
def test_the_goal_of_a_size_is_over_all_kinds_and_cells(share: float, slower: int, met: str) -> None:
    half = [planted(10, 10, share), planted(slower - 10, 10, share, "slow_replica", cell=ONE)]
    found = goals(*half)[f"{share:.0%} planted, called slower"]
    assert found[1].startswith(f"{slower} of 20 [")
    assert found[2] == met


def test_sizes_without_a_goal_and_what_was_not_measured_have_no_row() -> None:
    assert "2% planted, called slower" not in goals(planted(3, share=0.02))
    assert "A/A, false alarms" not in goals(planted(3))
    assert goals_table(record()).rows == ()


@pytest.mark.parametrize(("longest", "met"), [(179.0, "met"), (180.0, "NOT MET")])
def test_the_time_of_a_decision_is_the_longest_of_all(longest: float, met: str) -> None:
    found = goals(effect(), planted(3, seconds_median=90.0, seconds_most=longest))["time of a decision"]
    assert found[1:] == (f"90.0 s at the slowest cell, {longest:.0f} s at most", met)


# cells and plants


def test_every_cell_and_plant_is_a_row_with_its_counts_and_limits() -> None:
    table = effects_table(record(effect(1, 20, undecided=3), planted(19, deviation=0.0123, blocks_median=7.5)))
    assert column(table, "planted") == ["the same twice (A/A)", "device work 5%"]
    assert column(table, "decisions") == ["20", "20"]
    assert column(table, "slower") == ["1 of 20 [0 – 25 %]", "19 of 20 [75 – 100 %]"]
    assert column(table, "false alarms") == ["1 of 20 [0 – 25 %]", NOTHING]
    assert column(table, "undecided") == ["3", "0"]
    assert column(table, "paired sd") == [NOTHING, "1.2%"]
    assert column(table, "blocks") == ["6.0 (≤ 12)", "7.5 (≤ 12)"]


def test_what_was_measured_is_the_change_of_the_step_time_as_a_share() -> None:
    """−ln 1.1, −ln 1.12 and −ln 1.08, so that a step takes 10 %, 12 % and 8 % longer."""
    logs = {"measured": -0.09531, "measured_low": -0.11333, "measured_high": -0.07696}
    table = effects_table(record(planted(20, share=0.1, **logs), planted(0, measured=0.1)))
    assert column(table, "step time, measured") == ["+10.0% [+8.0%, +12.0%]", "-9.5%"]


# other tools


def rule(tool: str, count: int, share: float = 0.0, apart: bool = False, of: int = 20) -> Rule:
    plant = "device_work" if share else None
    alarms = clopper_pearson(count, of)
    return Rule(
        tool=tool, rule=f"{tool}'s rule", cell_id=MIRRORED.cell_id, plant=plant, share=share, apart=apart, alarms=alarms
    )


def test_other_tools_stand_below_ours_on_the_same_decisions() -> None:
    alarms = clopper_pearson(3, 10)
    table = tools_table(
        record(
            effect(1),
            planted(18, share=0.03),
            planted(19, share=0.05),
            floors=[Floor(cell=MIRRORED, paired=0.01, unpaired_false_alarms=alarms)],
            rules=[
                rule("pyperf", 9),
                rule("pyperf", 15, apart=True),
                rule("pyperf", 20, 0.03),
                rule("pyperf", 20, 0.05),
                rule("asv", 0),
                rule("asv", 0, apart=True),
                rule("asv", 1, 0.03),
                rule("asv", 2, 0.05),
            ],
        )
    )
    assert column(table, "tool") == ["this project", "pyperf", "asv"]
    counts = [[text.partition(" [")[0] for text in row[2:]] for row in table.rows]
    assert counts == [
        ["3 of 10", "1 of 20", "18 of 20", "19 of 20"],
        ["15 of 20", "9 of 20", "20 of 20", "20 of 20"],
        ["0 of 20", "0 of 20", "1 of 20", "2 of 20"],
    ]
    assert [one.name for one in table.columns][3:] == [
        "taking turns, A/A: false alarms",
        "3% planted: found",
        "5% planted: found",
    ]


def test_a_validation_that_holds_no_other_tool_has_no_table_of_them() -> None:
    assert len(validation_tables(record(effect(1)))) == 2


def test_rules_of_several_cells_and_kinds_are_one_rate() -> None:
    table = tools_table(record(effect(0), rules=[rule("asv", 2), rule("asv", 5, of=10)]))
    assert table.rows[1][3].startswith("7 of 30 [")


def test_every_row_of_every_table_has_a_text_for_every_column() -> None:
    for one in (record(), record(effect(1)), record(effect(1), planted(2), rules=[rule("asv", 1)])):
        for table in validation_tables(one):
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert all(isinstance(text, str) and text for row in table.rows for text in row)


# sentences


def test_the_floors_and_the_smallest_effect_are_sentences() -> None:
    floors = [
        Floor(cell=MIRRORED, paired=0.0061, unpaired=0.0823, smallest_effect=0.024),
        Floor(cell=ONE, paired=0.004),
    ]
    first, second = validation_lines(record(effect(), floors=floors))
    assert first == (
        f"{MIRRORED.label}: noise floor for δ 0.6% taking turns, 8.2% for runs at different times; "
        "smallest slow-down found with 90 % power: 2.4%"
    )
    assert second == f"{ONE.label}: noise floor for δ 0.4% taking turns; " + (
        "smallest slow-down found with 90 % power: not reached"
    )


def test_what_is_not_complete_or_quick_says_so_and_how_to_go_on() -> None:
    said = " ".join(validation_lines(record(effect(), complete=False, quick=True, floors=[])))
    assert "python -m harness validate --resume validation-run" in said
    assert "quick" in said
    assert validation_lines(record(effect(), floors=[])) == ()


def test_a_comparison_cites_false_alarms_with_their_limit() -> None:
    words = summary_words(record(effect(of=30), effect(of=30, cell=ONE), planted(3)))
    assert "0 false alarms in 60 decisions" in words
    assert "at most 4.9%" in words
    assert "run validation-run" in words


def test_a_rate_of_nothing_is_nothing() -> None:
    assert rate(Rate(count=0, of=0, low=0, high=1)) == NOTHING
    assert rate(clopper_pearson(58, 60)) == "58 of 60 [88 – 100 %]"
    assert pooled([None, clopper_pearson(1, 4), clopper_pearson(2, 6)]) == clopper_pearson(3, 10)
    assert pooled([None]).of == 0

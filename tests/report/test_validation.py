"""A validation as tables and sentences: what is promised beside what was found, and nothing that was not measured."""

from dataclasses import replace

import pytest

from harness.analysis.estimates.power import clopper_pearson
from harness.analysis.validation.summary import validation_of
from harness.record.validation import Effect, Floor, PlantSize, Rule, Spread
from harness.report.tables.table import Table
from harness.report.tables.validation import (
    effects_table,
    goals_table,
    tools_table,
    validation_lines,
    validation_tables,
)
from harness.report.words.text import NOTHING
from tests.comparisons import MIRRORED
from tests.synthetic import make_cell
from tests.validations import Arm, Round, effect, planted, record, validation_run

ONE = make_cell("none", 1)


def column(table: Table, name: str) -> list[str]:
    place = [one.name for one in table.columns].index(name)
    return [row[place] for row in table.rows]


def goals(*effects: Effect) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in goals_table(record(*effects)).rows}


# goals


@pytest.mark.parametrize(("slower", "faster", "met"), [(0, 0, "met"), (0, 1, "not shown"), (4, 4, "NOT MET")])
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


@pytest.mark.parametrize(("undecided", "met"), [(0, "met"), (1, "not shown"), (6, "not shown"), (8, "NOT MET")])
def test_how_often_the_same_thing_is_called_equivalent_is_a_goal(undecided: int, met: str) -> None:
    assert goals(effect(of=20, undecided=undecided))["A/A, called equivalent"][2] == met


@pytest.mark.parametrize(
    ("share", "slower", "of", "met"),
    [
        (0.05, 60, 60, "met"),
        (0.05, 39, 39, "not shown"),  # at least 92.6 %
        (0.05, 30, 40, "NOT MET"),
        (0.03, 37, 40, "not shown"),  # at least 81.7 %
        (0.03, 40, 40, "met"),
        (0.03, 30, 40, "NOT MET"),
    ],
)
def test_a_size_meets_its_goal_by_the_lower_limit_of_its_rate_over_all_kinds_and_cells(
    share: float, slower: int, of: int, met: str
) -> None:
    half = [planted(10, 10, share), planted(slower - 10, of - 10, share, "slow_replica", cell=ONE)]
    found = goals(*half)[f"{share:.0%} planted, called slower"]
    assert found[1].startswith(f"{slower} of {of} [")
    assert found[2] == met


@pytest.mark.parametrize(
    ("inside", "of", "met"),
    [
        (108, 108, "NOT MET"),
        (103, 108, "not contradicted"),
        (285, 300, "met"),
        (97, 108, "NOT MET"),
        (0, 108, "NOT MET"),
        (9, 10, "not contradicted"),
    ],
)
def test_intervals_that_hold_0_are_as_many_as_they_say_or_the_goal_is_missed(inside: int, of: int, met: str) -> None:
    found = goals(effect(of=of, holds=clopper_pearson(inside, of)))["A/A, intervals that hold 0"]
    assert found[0] == "95%, within 90% – 99%"
    assert found[1].startswith(f"{inside} of {of} [")
    assert found[2] == met


@pytest.mark.parametrize(
    ("ratio", "low", "high", "met"),
    [
        (1.1, 0.9, 1.35, "met"),
        (1.1, 0.8, 1.5, "not contradicted"),
        (1.37, 0.62, 3.86, "not contradicted"),  # as wide as this it holds nearly anything
        (1.6, 1.2, 2.2, "NOT MET"),
        (0.5, 0.3, 0.9, "NOT MET"),
    ],
)
def test_the_spread_of_decisions_is_held_against_what_their_blocks_predict(
    ratio: float, low: float, high: float, met: str
) -> None:
    spread = Spread(zygotes=1, decisions=60, observed=0.005, predicted=0.005, ratio=ratio, low=low, high=high)
    table = goals_table(record(effect(), spreads=[spread, spread.model_copy(update={"zygotes": 2})]))
    one, two = (row for row in table.rows if "spread" in row[0])
    assert one == (
        "A/A, spread² ÷ predicted, one zygote",
        "1, within 0.7 – 1.4",
        f"{ratio:.2f} [{low:.2f} – {high:.2f}], 60 decisions",
        met,
    )
    assert two[0].endswith(", two zygotes")


def test_two_equal_revisions_are_judged_by_themselves_beside_all_others() -> None:
    zygotes = Spread(zygotes=2, decisions=15, observed=0.005, predicted=0.005, ratio=1.0, low=0.5, high=2.0)
    told = {"revisions": True, "holds": clopper_pearson(9, 15), "false_alarms": clopper_pearson(3, 15)}
    own = zygotes.model_copy(update=told)
    all_of_them = effect(of=60, slower=3, holds=clopper_pearson(54, 60))
    rows = {row[0]: row for row in goals_table(record(all_of_them, spreads=[zygotes, own])).rows}
    alarms = rows["A/A of two equal revisions, false alarms"]
    assert alarms[2].startswith("3 of 15 [")
    assert alarms[3] == "NOT MET"
    assert rows["A/A, false alarms"][2].startswith("3 of 60 [")
    held = rows["A/A of two equal revisions, intervals that hold 0"]
    assert (held[2][:7], held[3]) == ("9 of 15", "NOT MET")
    assert rows["A/A, intervals that hold 0"][3] == "not contradicted"
    assert "A/A, spread² ÷ predicted, two equal revisions" in rows
    without = [row[0] for row in goals_table(record(all_of_them, spreads=[zygotes])).rows]
    assert not any("revisions" in name for name in without)


def test_why_two_equal_revisions_were_not_compared_is_a_sentence() -> None:
    found = record(effect(), floors=[], revisions_left_out="the working folder is in no git working tree")
    assert validation_lines(found) == (
        "Two equal revisions were not compared: the working folder is in no git working tree.",
    )


def test_a_plant_that_missed_its_size_is_not_counted_with_the_others_and_says_so() -> None:
    right = PlantSize(plant="input_stall", decisions=20, ratio=1.01, low=0.97, high=1.05, holds=clopper_pearson(19, 20))
    wrong = PlantSize(plant="device_work", decisions=20, ratio=0.85, low=0.73, high=0.96, holds=clopper_pearson(9, 20))
    found = record(planted(2, kind="device_work"), planted(19, kind="input_stall"), plants=[wrong, right])
    [row] = [row for row in goals_table(found).rows if row[0].startswith("5%")]
    assert row[2].startswith("19 of 20 [")
    said = validation_lines(found)
    assert said[0] == (
        "device work came to 0.850 [0.730 – 0.960] of what was stated, over 20 decisions; "
        "that is another size, so these are not counted with the others"
    )
    assert said[1].endswith("over 20 decisions")


def sized(low: float | None, high: float | None) -> PlantSize:
    return PlantSize(plant="slow_replica", decisions=2, ratio=1.05, low=low, high=high, holds=clopper_pearson(1, 2))


@pytest.mark.parametrize(
    ("low", "high", "counted"),
    [
        (0.9, 1.2, True),
        (0.5, 1.5, True),
        (-0.380, 2.482, False),
        (0.9, 1.6, False),
        (1.01, 1.1, False),
        (None, None, False),
    ],
)
def test_a_plant_counts_where_its_size_is_known_to_be_about_what_was_stated(
    low: float | None, high: float | None, counted: bool
) -> None:
    found = record(planted(2, 2, kind="slow_replica"), planted(18, kind="input_stall"), plants=[sized(low, high)])
    [row] = [row for row in goals_table(found).rows if row[0].startswith("5%")]
    assert row[2].startswith("20 of 22 [" if counted else "18 of 20 [")
    assert ("not counted with the others" in validation_lines(found)[0]) != counted


def test_a_size_of_which_nothing_counts_is_a_goal_that_is_not_shown() -> None:
    found = record(planted(2, 2, kind="slow_replica"), plants=[sized(-0.38, 2.48)])
    [row] = [row for row in goals_table(found).rows if row[0].startswith("5%")]
    assert row[1:] == ("≥ 95%", NOTHING, "not shown")


def test_what_does_not_count_is_not_counted_for_other_tools_either() -> None:
    missed = sized(0.7, 0.9).model_copy(update={"plant": "device_work"})
    effects = (effect(1), planted(18, share=0.03), planted(9, 10, share=0.03, kind="input_stall"))
    rules = [rule("asv", 5, 0.03), rule("asv", 0)]
    table = tools_table(record(*effects, plants=[missed], rules=rules))
    assert column(table, "3% planted: found") == ["9 of 10 [55 – 100 %]", NOTHING]


def test_sizes_without_a_goal_and_what_was_not_measured_have_no_row() -> None:
    assert "2% planted, called slower" not in goals(planted(3, share=0.02))
    assert "A/A, false alarms" not in goals(planted(3))
    assert goals_table(record()).rows == ()


def test_a_validation_that_has_not_come_to_its_end_meets_and_misses_no_goal() -> None:
    unfinished = record(effect(4), planted(20), planted(0, share=0.03), complete=False)
    assert set(column(goals_table(unfinished), "met")) == {NOTHING}
    assert any("Not judged" in line for line in validation_lines(unfinished))


@pytest.mark.parametrize(("longest", "met"), [(179.0, "met"), (180.0, "NOT MET")])
def test_the_time_of_a_decision_is_the_longest_of_all(longest: float, met: str) -> None:
    found = goals(effect(), planted(3, seconds_median=90.0, seconds_most=longest))["time of a decision"]
    assert found[1:] == (f"90.0 s at the slowest cell, {longest:.0f} s at most", met)


# cells and plants


def test_every_cell_and_plant_is_a_row_with_its_counts_and_limits() -> None:
    again = effect(1, 20, undecided=3, holds=clopper_pearson(19, 20))
    table = effects_table(record(again, planted(19, deviation=0.0123, blocks_median=7.5)))
    assert column(table, "planted") == ["the same twice (A/A)", "device work 5%"]
    assert column(table, "decisions") == ["20", "20"]
    assert column(table, "slower") == ["1 of 20 [0 – 25 %]", "19 of 20 [75 – 100 %]"]
    assert column(table, "intervals that hold it") == ["19 of 20 [75 – 100 %]", NOTHING]
    assert column(table, "undecided") == ["3", "0"]
    assert column(table, "paired sd") == [NOTHING, "1.2%"]
    assert column(table, "blocks") == ["6.0 (≤ 12)", "7.5 (≤ 12)"]


def test_the_smallest_slow_down_that_is_found_stands_with_the_decisions_that_it_follows_from() -> None:
    floors = [Floor(cell=MIRRORED, paired=0.006, smallest_effect=0.024), Floor(cell=ONE, paired=0.004)]
    table = effects_table(record(effect(), planted(3), effect(cell=ONE), floors=floors))
    assert column(table, "90 % power from") == ["2.4%", NOTHING, NOTHING]


def test_what_was_measured_is_the_change_of_the_step_time_as_a_share() -> None:
    """−ln 1.1, −ln 1.12 and −ln 1.08, so that a step takes 10 %, 12 % and 8 % longer."""
    logs = {"measured": -0.09531, "measured_low": -0.11333, "measured_high": -0.07696}
    table = effects_table(record(planted(20, share=0.1, **logs), planted(0, measured=0.1)))
    assert column(table, "step time, measured") == ["+10.0% [+8.0%, +12.0%]", "-9.5%"]


def test_a_change_that_rounds_to_nothing_has_no_sign() -> None:
    table = effects_table(record(effect(measured=0.0002, measured_low=-0.0001, measured_high=0.0004)))
    assert column(table, "step time, measured") == ["0.0% [0.0%, 0.0%]"]


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


def test_cells_of_which_a_trial_was_unproved_are_marked_with_what_that_means() -> None:
    run = validation_run([Round([Arm([0.0, 0.001, -0.001 * number] * 2)]) for number in range(20)])
    first = run.trials[0].model_copy(update={"status": "unproved", "reason": "sight"})
    blind = validation_of(replace(run, trials=[first, *run.trials[1:]]))
    assert blind.unproved == [MIRRORED.cell_id]
    name = f"{MIRRORED.label} (unproved)"
    table = effects_table(blind)
    assert [row[0] for row in table.rows] == [name]
    assert table.note.startswith("Unproved: it was measured and nothing was found wrong, but")
    assert any(line.startswith(f"{name}: noise floor") for line in validation_lines(blind))
    plain = validation_of(run)
    assert [row[0] for row in effects_table(plain).rows] == [MIRRORED.label]
    assert effects_table(plain).note == ""


def test_rules_of_several_cells_and_kinds_are_one_rate() -> None:
    table = tools_table(record(effect(0), rules=[rule("asv", 2), rule("asv", 5, of=10)]))
    assert table.rows[1][3].startswith("7 of 30 [")


def test_every_row_of_every_table_has_a_text_for_every_column() -> None:
    for one in (record(), record(effect(1)), record(effect(1), planted(2), rules=[rule("asv", 1)])):
        for table in validation_tables(one):
            assert all(len(row) == len(table.columns) for row in table.rows)
            assert all(isinstance(text, str) and text for row in table.rows for text in row)

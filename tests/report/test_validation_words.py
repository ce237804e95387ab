"""What a validation found, in sentences: on the page, in the terminal, and where a comparison cites it."""

from dataclasses import replace

from harness.analysis import summarise
from harness.analysis.estimates.power import clopper_pearson
from harness.record.validation import Floor, Rate, TurnCost
from harness.report.tables.sweep import ranking_table
from harness.report.tables.validation import (
    pooled_rate,
    rate,
    summary_words,
    validation_lines,
)
from harness.report.words.method import validated
from harness.report.words.text import NOTHING
from tests.comparisons import MIRRORED
from tests.synthetic import make_cell, make_run
from tests.validations import effect, planted, record

ONE = make_cell("none", 1)


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
        "smallest slow-down found with 90 % power: not known"
    )


def test_what_a_turn_costs_is_said_in_the_findings_and_beside_absolute_throughputs() -> None:
    cost = TurnCost(cell=MIRRORED, trials=300, longer=0.027, low=0.025, high=0.03)
    found = record(effect(), floors=[], turns=[cost])
    [said] = validation_lines(found)
    assert f"by {MIRRORED.label} +2.7% [+2.5%, +3.0%]: absolute throughputs are lower by up to as much" in said
    assert said[1:] in validated(found).here
    assert "follows another" not in validated(record(effect())).here
    summary = summarise(*make_run())
    work, noise = summary.workloads[0], replace(summary.noise, turn=None)
    assert (
        f"this run does not tell: too few windows came after one of the same trial. 'validate' found here: {said}"
        in (ranking_table(work, noise, found).note)
    )
    assert "'validate' measures it." in ranking_table(work, noise, record(effect())).note


def test_a_turn_is_said_to_cost_a_throughput_only_of_cells_of_which_that_was_shown() -> None:
    costs = TurnCost(cell=MIRRORED, trials=300, longer=0.027, low=0.025, high=0.03)
    open_one = TurnCost(cell=ONE, trials=300, longer=-0.004, low=-0.012, high=0.003)
    [both] = validation_lines(record(effect(), floors=[], turns=[open_one, costs]))
    assert f"by {MIRRORED.label} +2.7% [+2.5%, +3.0%]: absolute throughputs are lower by up to as much" in both
    assert f"no cost of following another trial's window was shown of {ONE.label} -0.4% [-1.2%, +0.3%]" in both
    [alone] = validation_lines(record(effect(), floors=[], turns=[open_one]))
    assert alone.startswith("no cost of following another trial's window was shown of ")
    assert "absolute throughputs are lower" not in alone


def test_what_rounds_to_nothing_has_no_sign() -> None:
    nothing = TurnCost(cell=ONE, trials=300, longer=-0.0001, low=-0.0003, high=0.0002)
    [said] = validation_lines(record(effect(), floors=[], turns=[nothing]))
    assert said.endswith(f"{ONE.label} 0.0% [0.0%, 0.0%]")


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
    assert "hold 0" not in words
    counted = summary_words(record(effect(of=108, holds=clopper_pearson(103, 108))))
    assert "103 of 108 [89.5 – 98.5 %] intervals hold 0, as 95 % should" in counted


def test_a_rate_of_nothing_is_nothing() -> None:
    assert rate(Rate(count=0, of=0, low=0, high=1)) == NOTHING
    assert rate(clopper_pearson(58, 60)) == "58 of 60 [88 – 100 %]"
    assert pooled_rate([None, clopper_pearson(1, 4), clopper_pearson(2, 6)]) == clopper_pearson(3, 10)
    assert pooled_rate([None]).of == 0

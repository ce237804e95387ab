"""What docs/verdicts.md states is what the code does, and its pictures are what its script draws."""

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from benchmarks.goals.other_tools import RULES
from harness.analysis.estimates import verdict
from harness.analysis.estimates.intervals import t_quantile
from harness.analysis.estimates.looks import Looks
from harness.analysis.estimates.power import clopper_pearson, upper_limit
from harness.environment import advice
from harness.environment.advice import warnings
from harness.environment.fact import Fact
from harness.looks import MAX_BLOCKS, QUIET_BLOCKS, looks_within
from harness.report.export.as_markdown import escape
from harness.report.tables.validation import ALARM_GOAL, DECISION_GOAL_S, EQUIVALENT_GOAL, GOALS
from harness.run.kinds.decision import OF_UNLIKE_STEPS, WINDOWING
from harness.run.kinds.validate import FULL_ROUNDS, SLOW_DOWNS
from harness.run.turns import steps
from harness.trial import clock
from tests.docs import stated
from tests.docs.stated import percent, states

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "verdicts.md").read_text(encoding="utf-8")
FOUND = (ROOT / "results" / "validation" / "README.md").read_text(encoding="utf-8")
"""What the kept validations found."""
BAD: dict[str, tuple[Fact, str]] = {
    "load.1min": (9.0, f"{advice.MOST_LOAD_PER_CORE:g} a core"),
    "cpu.usable_cores": (2, f"{advice.FEW_CORES} cores"),
    "cpu.steal_fraction": (0.2, percent(advice.MOST_STEAL)),
    "cpu.quota_cores": (1.0, "quota"),
    "memory.available_bytes": (2**20, f"{advice.LEAST_MEMORY_BYTES / 2**30:g} GiB"),
    "memory.swap_used_bytes": (2**30, "Swapped"),
    "cpu.governor": ("powersave", "governor"),
    "cpu.turbo": (True, "Turbo"),
    "cpu.smt": (True, "SMT"),
    "power.on_battery": (True, "Battery"),
    "cpu.hypervisor": (True, "A virtual machine"),
    "clock.source": ("hpet", "hpet"),
    "env.TF_CONFIG": ("(set)", "TF_CONFIG"),
    "env.CUDA_LAUNCH_BLOCKING": ("1", "CUDA_LAUNCH_BLOCKING"),
    "env.TF_DETERMINISTIC_OPS": ("1", "TF_DETERMINISTIC_OPS"),
    "env.TF_DUMP_GRAPH_PREFIX": ("x", "TF_DUMP_GRAPH_PREFIX"),
    "env.NCCL_DEBUG": ("INFO", "NCCL_DEBUG"),
    "env.MALLOC_PERTURB_": ("1", "MALLOC_PERTURB_"),
}
"""What is wrong with a machine that has everything wrong but a GPU, and its limit, or its name, as the page has it."""


@pytest.fixture(scope="module")
def simulated() -> Iterator[ModuleType]:
    """`docs/verdict_simulations.py`, found as when a script in docs/ is run."""
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("verdict_simulations")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def drawn(simulated: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every picture as the script draws it now, by file name."""
    pictures = importlib.import_module("verdict_pictures")
    assert pictures.simulated is simulated
    paths = pictures.draw(tmp_path_factory.mktemp("pictures"))
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


# what the words mean


def test_every_verdict_is_explained_with_what_it_does_not_mean() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)
    explained = {name for name, means, means_not in rows if len(means) > 20 and len(means_not) > 15}
    assert explained >= set(get_args(verdict.Verdict))


def section(title: str) -> str:
    """What stands below a heading of the page, on one line."""
    return stated.section(PAGE, title)


def test_the_page_states_the_margins_and_the_plan_of_the_code(simulated: ModuleType) -> None:
    delta, epsilon = section("Two margins").split("**ε (epsilon)**")
    assert states(delta, percent(verdict.DELTA))
    assert states(epsilon, percent(verdict.EPSILON))
    assert states(section("The five verdicts"), f"{100 * verdict.ALPHA / 2:g} times", f"{100 * verdict.ALPHA:g} times")
    assert simulated.LOOKS.after == looks_within(MAX_BLOCKS)
    looks = section("Looks, and no peeking")
    assert states(looks, *map(str, simulated.LOOKS.after), str(QUIET_BLOCKS))
    assert states(looks, f"p of {simulated.LOOKS.different[0]:.4f}", f"{verdict.ALPHA / 2:g}")
    windows = section("Why many short windows")
    assert states(windows, f"{WINDOWING['window']:g} s", f"{WINDOWING['windows']} windows")
    assert states(windows, f"{clock.SYNC_MULTIPLE} synchronisations", percent(1 / clock.SYNC_MULTIPLE))
    alike = section("Why both sides have the same number of steps a window")
    assert states(alike, f"{steps.ALIKE} times", f"{OF_UNLIKE_STEPS['windows']} of {OF_UNLIKE_STEPS['window']:g} s")


@pytest.mark.parametrize("most", [QUIET_BLOCKS, MAX_BLOCKS])
def test_the_protocol_states_the_boundaries(most: int) -> None:
    looks, protocol = Looks.planned(looks_within(most)), (DOCS / "protocol.md").read_text(encoding="utf-8")
    words = [", ".join(f"{limit:.4f}" for limit in limits) for limits in (looks.different, looks.equivalent)]
    assert f"| {', '.join(map(str, looks.after))} | {words[0]} | {words[1]} |" in protocol


def test_the_page_states_students_factors() -> None:
    halves = {count: t_quantile(count - 1) / count**0.5 for count in (2, 3, 6, 12)}
    answer = section("Questions").partition("**Why are three trials too few?**")[2].partition("![")[0]
    stated = [float(number) for number in re.findall(r"\d+\.\d", answer)]
    assert stated == [round(halves[count], 1) for count in (3, 6, 12, 2)]


# what a validation says


def test_every_goal_of_a_validation_is_in_the_table() -> None:
    goals = [
        ("A/A, false alarms", f"≤ {ALARM_GOAL:.0%}"),
        ("A/A, called equivalent", f"≥ {EQUIVALENT_GOAL:.0%}"),
        ("time of a decision", f"< {DECISION_GOAL_S:.0f} s"),
    ]
    goals += [(f"{share:.0%} planted, called slower", f"≥ {goal:.0%}") for share, goal in GOALS.items()]
    for figure, goal in goals:
        assert f"| {figure} | {escape(goal)} |".replace("%", " %") in FOUND


@pytest.mark.parametrize("script", ["validation_tables", "platform_tables"])
def test_what_pages_say_was_found_is_what_the_kept_records_say(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    tables = importlib.import_module(script)
    for path, words, marks in tables.pages():
        page = path.read_text(encoding="utf-8")
        assert tables.written(page, words, marks) == page, f"python docs/{script}.py writes it anew"


def test_every_rule_of_another_tool_and_every_plant_is_named() -> None:
    assert all(f"| {escape(rule.name)} |" in FOUND for rule in RULES)
    assert all(f"(`{kind}`)" in PAGE for kind in SLOW_DOWNS)


def test_how_to_states_how_much_a_full_validation_does() -> None:
    assert f"{FULL_ROUNDS} rounds" in (DOCS / "how-to.md").read_text(encoding="utf-8")


def test_the_limits_that_are_given_as_examples_are_right() -> None:
    one, none = clopper_pearson(1, 60), clopper_pearson(0, 4)
    rows = dict(re.findall(r"^\| (.+) \| (.+) \|$", PAGE, re.MULTILINE))
    assert states(rows[f"`1 of 60 [0 – {100 * one.high:.0f} %]`"], "0 of 4", f"[0 – {100 * none.high:.0f} %]")
    assert one.low < 0.005, "which is 0 there"
    assert any(states(row, "0 of 60", f"{100 * upper_limit(0, 60):.1f} %") for row in rows.values())


# a quieter machine


def test_everything_that_doctor_looks_at_is_in_a_line_of_the_page_with_its_limit() -> None:
    facts = {name: value for name, (value, _) in BAD.items()} | {"cpu.affinity_cores": 2}
    assert len(warnings(facts)) == len(advice._RULES), "a rule that finds nothing wrong here is not looked up below"
    lines = PAGE.partition("## A quieter machine\n")[2].partition("\n## ")[0].split("\n- ")[1:]
    holding = {term: [line for line in lines if states(line, term)] for _, term in BAD.values()}
    assert {term: len(found) for term, found in holding.items()} == dict.fromkeys(holding, 1)
    [of_gpus] = set(lines) - {line for [line] in holding.values()}
    assert "GPU" in of_gpus


# the simulations


def test_an_example_of_the_first_picture_ends_as_its_words_say(simulated: ModuleType) -> None:
    by_words = {example.words: example.judgement.verdict for example in simulated.EXAMPLES}
    assert list(by_words.values()) == [
        "slower",
        "faster",
        "faster",
        "equivalent",
        "equivalent",
        "undecided",
        "undecided",
    ]
    for words, ended in (
        ("beyond 0, not beyond δ, within ε", "equivalent"),
        ("beyond 0, not beyond δ, not within ε", "undecided"),
    ):
        [example] = [item for item in simulated.EXAMPLES if item.words == words]
        ratio = example.judgement.ratio
        assert ratio is not None
        assert ratio.high < 1, "the whole interval lies beyond 0"
        assert ratio.high > 1 / 1.01, "and not beyond δ"
        assert by_words[words] == ended


def test_the_simulated_plan_decides_as_the_real_one_does(simulated: ModuleType) -> None:
    numpy = importlib.import_module("numpy")
    repetitions, deviation, change = 150, 0.016, -0.02
    chance = numpy.random.default_rng([7, round(1e6 * deviation)])
    ended, blocks, looks = [], [], simulated.LOOKS
    for row in chance.normal(0.9 * numpy.log1p(change), deviation, (repetitions, looks.after[-1])).tolist():
        for number, after in enumerate(looks.after, start=1):
            found = verdict.judge(looks.estimate(row[:after], number), simulated.MARGINS).verdict
            if found != "undecided" or number == len(looks.after):
                ended.append(found)
                blocks.append(after)
                break
    found = simulated.rates(deviation, change, repetitions)
    for name in ("slower", "undecided", "equivalent", "faster"):
        assert getattr(found, name) == pytest.approx(ended.count(name) / repetitions), name
    assert found.blocks == pytest.approx(numpy.mean(blocks))
    assert len(set(ended)) == 3
    assert set(blocks) == set(looks.after)


def test_the_page_states_what_is_to_be_expected(simulated: ModuleType) -> None:
    expected = section("What to expect")
    quiet, noisy = simulated.rates(0.008, -0.03), simulated.rates(0.02, -0.03)
    assert quiet.slower > 0.998
    assert states(expected, f"{quiet.blocks:.1f} blocks", f"{100 * noisy.slower:.0f} times", f"{noisy.blocks:.1f}"), (
        "of a true 3 %"
    )
    quiet, noisy = simulated.rates(0.008, -0.02), simulated.rates(0.02, -0.02)
    shares = (quiet.slower, quiet.equivalent, noisy.undecided)
    assert states(expected, *(f"{100 * share:.0f} times" for share in shares)), "of a true 2 %"
    for deviation in (0.008, 0.02):
        nothing, at_delta = simulated.rates(deviation, 0.0), simulated.rates(deviation, -0.01)
        assert nothing.slower + nothing.faster < 0.001, "at most once in 1,000"
        assert at_delta.slower < 0.025, "at most 2.5 times in 100"
    each = replace(simulated.LOOKS, different=(0.025,) * 4)
    nothing, at_delta = (simulated.rates(0.02, change, 20_000, each) for change in (0.0, -0.01))
    assert nothing.slower + nothing.faster > 0.001, "looks that each err as all of them may would be found out"
    assert at_delta.slower > 0.025


def test_the_page_states_what_it_costs_to_reckon_with_windows_that_are_not_all_steps(simulated: ModuleType) -> None:
    told, longer = simulated.LOOKS, replace(simulated.LOOKS, steps=0.98)
    whole = replace(told, steps=1.0)
    blocks = [simulated.rates(*of).blocks for of in ((0.016, 0, 20_000, told), (0.016, 0, 20_000, whole))]
    blocks.append(simulated.rates(0.032, 0, 20_000, longer).blocks)
    said = section("Why both sides have the same number of steps a window")
    assert states(said, f"{blocks[0]:.1f} blocks", f"{blocks[1]:.1f}", "1.6 %", f"{blocks[2]:.1f}")


def test_the_page_states_what_the_simulations_give(simulated: ModuleType) -> None:
    turns = section("Why they take turns")
    assert all(f"{100 * scatter:.1f} %" in turns for scatter in simulated.turns_scatter())
    blocks, found = section("Why fresh processes, and why a block counts once"), simulated.blocks()
    for bound in (*found.from_windows, *found.from_blocks):
        assert f"{100 * bound:.1f}".replace("-", "−") in blocks
    for held in simulated.blocks_coverage():
        assert f"{100 * held:.0f} times" in blocks
    assert f"{100 * simulated.peeking(10):.0f} %" in section("Looks, and no peeking")
    assert simulated.peeking(1) == pytest.approx(0.05, abs=0.005)
    assert all(f"{100 * simulated.any_of(count):.0f} %" in section("Many comparisons") for count in (20, 40))


def test_two_of_forty_stand_out_by_chance_and_none_once_they_are_judged_together(simulated: ModuleType) -> None:
    alone, together = simulated.many()
    assert sum(item.verdict in ("slower", "faster") for item in alone) == 2
    assert not any(item.verdict in ("slower", "faster") for item in together)
    assert sum(high >= 1 for _, _, high in simulated.best()) + 1 == 3


def test_stragglers_show_in_the_mean_and_nowhere_else(simulated: ModuleType) -> None:
    a, b = simulated.stragglers()
    assert b.mean() / a.mean() == pytest.approx(1.05, abs=0.01)
    assert b.min() / a.min() == pytest.approx(1, abs=0.005)


# the pictures


def test_the_pictures_in_the_repository_are_what_the_script_draws(drawn: dict[str, str]) -> None:
    kept = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "images").glob("verdicts-*.svg")}
    assert kept.keys() == drawn.keys()
    for name, svg in kept.items():
        assert words_of(svg) == words_of(drawn[name]), f"{name} is stale: python docs/verdict_pictures.py"


def test_the_page_shows_every_picture_and_says_what_is_on_it(drawn: dict[str, str]) -> None:
    shown = dict(re.findall(r"!\[([^\]]+)\]\(images/(verdicts-\w+\.svg)\)", PAGE))
    assert sorted(shown.values()) == sorted(drawn)
    assert all(len(text) > 40 for text in shown)


def words_of(svg: str) -> list[str]:
    """All text of a picture."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)

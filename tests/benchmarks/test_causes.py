"""Planted causes: what counts as found and as wrongly named, and that instruments with one in them are not refused."""

import json
import random
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.parts import part_weights
from harness.record.explain import (
    ALONE,
    BARRIER,
    EMPTY,
    FORWARD_BACKWARD,
    NO_PULL,
    NO_PUSH,
    NO_REDUCTION,
    NO_UPDATE,
    WHOLE,
    FamilyRecord,
)
from harness.record.trial import Plant
from harness.run.kinds.base import Arm
from harness.run.kinds.explain import ExplainRun
from tests.explained import one_block_each
from tests.goals import load
from tests.undisturbed import undisturbed

Preloaded = Callable[[], AbstractContextManager[None]]
causes = load("causes")
of = sys.modules["cause_cases"]
ARMS = {
    "whole": 1.0,
    "no_input": 0.9,
    "no_update": 0.95,
    "forward_backward": 0.6,
    "empty": 0.05,
    "no_reduction": 0.8,
    "barrier": 0.85,
    "no_pull": 0.9,
    "no_push": 0.8,
    "alone": 0.5,
}
GROWS = {
    "input": ("whole", "no_update", "no_reduction"),
    "dispatch": tuple(ARMS),
    "compute": tuple(arm for arm in ARMS if arm != "empty"),
    "update": ("whole", "no_input", "no_reduction"),
    "communication": ("whole", "no_input", "no_update"),
    "wait": ("whole", "no_input", "no_update", "barrier"),
    "pull": ("whole", "no_input", "no_push"),
    "push": ("whole", "no_input", "no_pull"),
}
"""The arms that hold something which is in a part."""
SLEPT_S, IN_TURN_S = 0.15, 0.2
"""Much against what an update or a step of these takes on an idle machine, and against what other work makes of it."""


def case(cause: str = "input_stall", share: float = 0.2, replicas: int = 2) -> Any:
    apart = cause in of.OF_WORKERS | of.OF_SERVERS
    return of.CauseCase(cause, share, replicas, 0, replicas if apart else 1, cause in of.OF_SERVERS)


def blocks(planted: float, *arms: str, noise: float = 0.004) -> list[dict[str, float]]:
    """Steps of 10 ms, in which each of `arms` takes `planted` of it longer."""
    chance, found = random.Random(3), []
    for _ in range(5):
        plain = {arm: 0.01 * (share + chance.gauss(0, noise)) for arm, share in ARMS.items()}
        longer = {arm: 0.01 * (ARMS[arm] + planted * (arm in arms) + chance.gauss(0, noise)) for arm in ARMS}
        found.append(plain | {of.PLANTED + arm: seconds for arm, seconds in longer.items()})
    return found


@pytest.mark.parametrize(
    ("cause", "part", "replicas"),
    [
        (cause, part, count)
        for cause, part in of.CAUSES.items()
        for count in of.REPLICAS
        if cause in of.OF_REPLICAS or count > 1
    ],
)
def test_a_cause_that_is_in_the_arms_of_its_part_is_found_and_nothing_else_is_named(
    cause: str, part: str, replicas: int
) -> None:
    found = of.result_of(case(cause, replicas=replicas), blocks(0.2, *GROWS[part]), each=0.002)
    assert found.found
    assert found.seen
    assert found.wrong == []
    assert found.parts[part].value == pytest.approx(0.2, abs=0.03)


def test_a_cause_that_is_in_the_arms_of_another_part_is_wrongly_named() -> None:
    found = of.result_of(case("slow_update"), blocks(0.2, *GROWS["compute"]), each=0.0)
    assert (found.found, found.seen) == (False, False)
    assert found.wrong == ["compute"]


def test_a_part_that_did_not_grow_beyond_doubt_is_not_found_however_wide_its_interval() -> None:
    blind = of.result_of(case(), blocks(0.2, *GROWS["input"], noise=0.5), each=0.002)
    assert blind.off_planted.holds(0.0)
    assert (blind.seen, blind.found) == (False, False)


def test_what_was_planted_and_how_much_longer_the_step_became_are_both_told() -> None:
    behind = of.result_of(case("host_delay"), blocks(0.12, *ARMS, noise=0.0005), each=0.002)
    assert behind.planted.value == pytest.approx(0.2, abs=0.001)
    assert behind.longer.value == pytest.approx(0.12, abs=0.001)
    assert (behind.off_planted.holds(0.0), behind.off_longer.holds(0.0)) == (False, True)
    passes = of.result_of(case("slow_update"), blocks(0.12, *GROWS["update"], noise=0.0005), each=400.0)
    assert passes.planted.value == 0.2, "what a pilot says that so many passes take"
    served = of.result_of(case("slow_push"), blocks(0.1, *GROWS["push"], noise=0.0005), each=0.002)
    assert served.planted.value == pytest.approx(0.1, abs=0.001), "two workers make an update each in that time"


def test_what_explain_says_of_a_step_is_asked_without_the_cause_and_with_it() -> None:
    asked = case("input_stall", replicas=1)
    plain = {"whole": 1.0, "no_input": 0.99, "no_update": 0.98, "forward_backward": 0.95, "empty": 0.03}
    planted = {arm: share + (0.3 if arm in GROWS["input"] else 0.0) for arm, share in plain.items()}
    seconds = plain | {of.PLANTED + arm: share for arm, share in planted.items()}
    assert causes.verdicts(asked, [seconds] * 3) == ("compute", "input")
    assert causes.verdicts(asked, [seconds]) == ("undecided", "undecided")


def test_what_no_arm_lacks_is_unexplained_and_that_names_nothing() -> None:
    found = of.result_of(case("slow_update"), blocks(0.2, "whole", "no_input", "no_update", "no_reduction"), each=0.0)
    assert found.wrong == []
    assert not found.seen
    assert found.parts["unexplained"].value == pytest.approx(0.2, abs=0.03)


def test_after_a_pause_of_the_host_a_step_is_slower_itself_and_after_one_of_the_input_it_is_not() -> None:
    longer_than_planted = blocks(0.22, *ARMS, noise=0.0005)
    assert of.result_of(case("host_delay"), longer_than_planted, each=0.002).found
    input_alone = blocks(0.22, *GROWS["input"], noise=0.0005)
    assert not of.result_of(case("input_stall"), input_alone, each=0.002).found


def test_nothing_planted_grows_by_nothing() -> None:
    found = of.result_of(case(of.NOTHING, 0.0), blocks(0.0), each=0.0)
    assert all(abs(part.value) < 0.02 for part in found.parts.values())


def test_there_are_forty_judged_cases_of_every_cause_at_one_and_two_replicas_two_workers_and_with_a_server() -> None:
    every = of.cases()
    assert len({one.key for one in every}) == len(every)
    assert [of.CauseCase.of(one.key) for one in every] == every
    judged = [one for one in every if one.share >= of.JUDGED]
    assert len(judged) >= 40
    assert {(one.cause, one.replicas, one.share) for one in judged if one.workers == 1} == {
        (cause, replicas, share) for cause in of.OF_REPLICAS for replicas in (1, 2) for share in (0.1, 0.2)
    }
    for served, causes_of in ((False, of.OF_REPLICAS | of.OF_WORKERS), (True, of.OF_SERVERS)):
        assert {(one.cause, one.share) for one in judged if one.workers == 2 and one.served == served} == {
            (cause, share) for cause in causes_of for share in (0.1, 0.2)
        }


def test_what_was_measured_is_shown_with_its_limits_and_a_line_that_was_cut_off_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "causes.jsonl"
    lacking = {"alone": "crashed: so"}
    kept = {"key": "input_stall/0.2/2/0", "each": 0.002, "blocks": blocks(0.2, *GROWS["input"]), "lacking": lacking}
    file.write_text(f"{json.dumps(kept)}\n" + '{"key": "slow_update/0.2')
    causes.show(causes.read(file))
    said = capsys.readouterr().out
    assert "input_stall/0.2/2/0  5       +20" in said
    rates = " ".join(said.split())
    assert "found: grew beyond doubt, and by what it is to 1 of 1 100% 3% – 100% at least 90 %" in rates
    assert "grew by what was planted 1 of 1" in rates
    assert "grew by how much longer the step became 1 of 1" in rates
    assert "the step is said to be bound by it 1 of 1" in rates
    assert "communication input yes" in rates
    assert "alone: crashed: so" in said


def test_a_case_is_kept_with_what_explain_says_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_in, asked = tmp_path / "causes.jsonl", case()
    monkeypatch.setattr(causes, "measured", lambda *_: (blocks(0.2, *GROWS["input"]), {}))
    causes.run([asked], kept_in)
    kept = causes.read(kept_in)
    assert kept[asked.key]["bound_by"] == ["communication", "input"]
    assert [key for key, line in kept.items() if "bound_by" not in line] == ["device_work/0/2/-1"], "the pilot"


@pytest.fixture
def one_short_block(
    preloaded: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> Preloaded:
    """Entered while it is measured: of two blocks one, of small steps. No arm here is about input, and with data that
    lie on the device no steps, which sleep here, are taken to tell whether they wait for it."""
    monkeypatch.setattr(causes, "SWEEP", {"window": 0.005, "windows": 5, "max_warmup": 0})
    # a turn of each, also where busy cores make a step look twice as long
    monkeypatch.setattr(causes, "OF_SLOW_WORKERS", {"window": 4 * IN_TURN_S})
    monkeypatch.setattr(causes, "BATCH_SIZE", 8)
    monkeypatch.setattr(causes, "cell", partial(causes.cell, model="mlp", data="synthetic", optimizer="sgd"))
    one_block_each(monkeypatch)
    return preloaded


PLAIN = (WHOLE, NO_UPDATE, FORWARD_BACKWARD, ALONE)
SHOWN = {f"device_work {arm}": arm for arm in PLAIN} | {f"slow_update {WHOLE}": WHOLE}
"""Arms that take longer than others, by what is planted in them."""
LONG, SOME = 1_000.0, 100.0
"""Passes of work: several times as long as a step of these, and as many as make the same program."""


class OfTwoCauses(ExplainRun):
    """A run whose family has arms without a cause in them, and arms with the one whose name precedes theirs."""

    def _arm(self, family: FamilyRecord, name: str) -> Arm:
        cause, _, bare = name.rpartition(" ")
        arm = super()._arm(family, bare)
        each = LONG if name in SHOWN else SOME if cause else 0.0
        plant = Plant(kind=cause or "device_work", share=0.0, each=each)
        return replace(arm, name=name, request=arm.request.model_copy(update={"plant": plant}))


@pytest.mark.slow
@pytest.mark.measures
def test_instruments_of_a_step_with_work_in_it_are_not_refused(one_short_block: Preloaded) -> None:
    beside = [f"slow_update {arm}" for arm in (NO_UPDATE, FORWARD_BACKWARD, ALONE)]
    arms = [*PLAIN, *SHOWN, *beside]

    def measured() -> Any:
        asked = causes._cell_of(case("device_work"))
        with one_short_block():
            return causes.trials_of_arms(asked, arms, 2, 1, causes.SWEEP, OfTwoCauses)

    def shows_the_work(trials: Any) -> None:
        assert {trial.side: trial.reason for trial in trials if not trial.measured} == {}
        fastest = {trial.side: min(trial.windows.seconds) / trial.windows.steps_per_window for trial in trials}
        assert set(fastest) == set(arms)
        for with_work, without in SHOWN.items():
            assert fastest[with_work] > fastest[without]

    shows_the_work(undisturbed(measured, shows_the_work))


@pytest.mark.slow
@pytest.mark.measures
def test_workers_that_are_slow_by_turns_are_found_in_the_wait_for_the_slowest(one_short_block: Preloaded) -> None:
    slow, arms = case(of.SLOW_WORKER), [WHOLE, BARRIER, NO_REDUCTION]

    def growth() -> tuple[dict[str, float], dict[str, str]]:
        with one_short_block():
            found, lacking = causes.measured(slow, 2, arms, causes._plants(slow, IN_TURN_S))
        [seconds] = found or [{}]
        return {arm: seconds[of.PLANTED + arm] - seconds[arm] for arm in arms if seconds}, lacking

    def is_the_wait(measured: tuple[dict[str, float], dict[str, str]]) -> None:
        grew, lacking = measured
        assert not lacking, lacking
        wait = grew[BARRIER] - grew[NO_REDUCTION]
        assert wait > IN_TURN_S / 2, "as long as the workers sleep alike nobody waits"
        assert wait > 2 * abs(grew[WHOLE] - grew[BARRIER]), "what else communication takes"
        assert wait > 2 * abs(grew[NO_REDUCTION]), "all that is no communication"

    is_the_wait(undisturbed(growth, is_the_wait))


@pytest.mark.slow
@pytest.mark.measures
@pytest.mark.parametrize(("cause", "part"), of.OF_SERVERS.items())
def test_what_servers_send_or_get_late_is_the_largest_part(cause: str, part: str, one_short_block: Preloaded) -> None:
    arms, asked = [WHOLE, NO_PULL, NO_PUSH, EMPTY], causes._cell_of(case(cause))
    plant = Plant(kind=cause, share=0.0, each=SLEPT_S)
    driver = partial(causes.PlantedRun, plants=(plant, plant), planted=asked)
    made_of = part_weights(FamilyRecord(cell_id="", arms=arms, alone="", at_once=2))

    def measured() -> dict[str, float]:
        with one_short_block():
            trials = causes.trials_of_arms(asked, arms, 2, 1, causes.SWEEP, driver)
        [seconds] = causes._times(trials, arms) or [{}]
        return {
            name: sum(weight * seconds[arm] for arm, weight in weights.items())
            for name, weights in made_of.items()
            if set(weights) <= set(seconds)
        }

    def is_the_largest(parts: dict[str, float]) -> None:
        assert set(parts) == {"pull", "push", "dispatch"}
        assert max(parts, key=parts.__getitem__) == part
        assert parts[part] > SLEPT_S / 2 / 2, "two workers make an update each in that time"

    is_the_largest(undisturbed(measured, is_the_largest))

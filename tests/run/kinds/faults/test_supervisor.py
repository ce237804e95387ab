"""The supervisor against scripted processes: what it notices, what it starts again, and that it always ends."""

from collections.abc import Callable
from typing import Any

import pytest

from harness.errors import Interrupted
from harness.run.interrupts import Interrupts
from harness.run.kinds.faults.history import History
from harness.run.kinds.faults.supervisor import MOST_RESTARTS, START_LIMIT_S, Rules, Strike, Supervisor
from harness.run.network import NetworkError
from tests.run.kinds.faults.fakes import FakeCrew, Says, crew_of, serves

STEPS = 10
UNAVAILABLE = "UnavailableError: Connection reset by peer"


def nothing(_: FakeCrew) -> None:
    """A fault that changes nothing."""


def trains(name: str, again_from: int = 0, stops_at: int = STEPS) -> Says:
    """Trains to the last step in its first life, and from `again_from` on in later ones."""

    def play(crew: FakeCrew, life: int) -> None:
        first = 0 if life == 1 else again_from
        crew.steps(name, first, stops_at, after_s=0.5)
        if stops_at == STEPS:
            crew.job(name, 0.6 + STEPS - first, "done", STEPS)
            crew.ends(name, 0.7 + STEPS - first)

    return play


def supervised(
    crew: FakeCrew, strike: Strike | None, stall_s: float = 5.0, limit_s: float = 100.0, engine: Any = "tensorflow"
) -> History:
    return Supervisor(crew, Rules(stall_s, limit_s, engine), strike, Interrupts(), clock=crew.clock).run()


def strike(does: Callable[[FakeCrew], None], *targets: str, step: int = 4, **more: Any) -> Strike:
    return Strike(step, does, targets=targets, **more)  # type: ignore[arg-type]


def test_an_undisturbed_job_is_done_and_told_to_leave() -> None:
    crew = crew_of({"the process": trains("the process")})
    history = supervised(crew, None)
    assert (history.end, history.detections, history.restarted) == ("done", [], [])
    assert crew.starts == ["the process", "leave"]


def test_a_process_that_ends_is_noticed_and_started_again_from_where_its_checkpoint_is() -> None:
    crew = crew_of({"the process": trains("the process", again_from=2)})
    history = supervised(crew, strike(lambda c: c.dies("the process"), "the process"))
    assert history.end == "done"
    assert [(d.by, d.who, d.said) for d in history.detections] == [("process_end", "the process", "ended by SIGKILL")]
    assert history.restarted == ["the process"]
    assert (history.fault_step, history.resumed_from, history.steps_lost) == (4, 2, 2)
    parts = history.interruption
    assert parts is not None
    assert history.useful_s is not None
    whole = parts.detection_s + parts.restart_s + parts.replay_s
    assert whole == pytest.approx(history.after_fault(history.useful_s))
    assert parts.replay_s == pytest.approx(3.0)  # steps 3 and 4 again, then step 5


def test_when_one_of_two_workers_ends_both_are_started_again_once_the_other_has_said_what_it_noticed() -> None:
    crew = crew_of({name: trains(name, again_from=2) for name in ("worker 0", "worker 1")})

    def kill(c: FakeCrew) -> None:
        c.dies("worker 1")
        c.silence("worker 0")
        c.ends("worker 0", 0.2, "crashed", UNAVAILABLE)

    history = supervised(crew, strike(kill, "worker 1"))
    assert history.end == "done"
    assert [(d.by, d.who) for d in history.detections] == [("process_end", "worker 1"), ("tensorflow", "worker 0")]
    assert history.detections[1].said == UNAVAILABLE
    assert history.restarted == ["worker 0", "worker 1"]


def test_a_peer_that_the_runtime_ends_counts_as_noticed_by_tensorflow() -> None:
    crew = crew_of({name: trains(name) for name in ("worker 0", "worker 1")})

    def freeze(c: FakeCrew) -> None:
        c.silence("worker 1")
        c.dies("worker 0")

    history = supervised(crew, strike(freeze, "worker 1"))
    assert [(d.by, d.who) for d in history.detections] == [("tensorflow", "worker 0")]


def test_what_another_engine_says_is_recorded_as_an_engines_word() -> None:
    crew = crew_of({name: trains(name, again_from=2) for name in ("worker 0", "worker 1")})

    def kill(c: FakeCrew) -> None:
        c.dies("worker 1")
        c.silence("worker 0")
        c.ends("worker 0", 0.2, "crashed", UNAVAILABLE)

    history = supervised(crew, strike(kill, "worker 1"), engine="engine")
    assert [d.by for d in history.detections] == ["process_end", "engine"]


def test_a_job_without_steps_is_started_again_after_the_stall_limit() -> None:
    crew = crew_of({"the process": trains("the process", again_from=4)})
    history = supervised(crew, strike(lambda c: c.silence("the process"), "the process"), stall_s=5.0)
    assert history.end == "done"
    assert history.detections[0].by == "stalled_steps"
    assert 4.9 <= history.detections[0].after_s <= 5.5


def served(**plays: Says) -> FakeCrew:
    usual = {
        "coordinator": trains("coordinator", again_from=2),
        "worker 0": serves("worker 0"),
        "worker 1": serves("worker 1"),
        "ps 0": serves("ps 0"),
    }
    return crew_of({**usual, **plays})


def test_a_coordinators_worker_is_replaced_alone_and_training_never_begins_again() -> None:
    crew = served()
    history = supervised(crew, strike(lambda c: c.dies("worker 1"), "worker 1"))
    assert history.end == "done"
    assert history.restarted == ["worker 1"]
    assert crew.starts.count("coordinator") == 1
    assert (history.interruption, history.steps_lost) == (None, 0)
    assert history.back_s is not None
    assert history.after_fault(history.back_s) == pytest.approx(0.6, abs=0.2)


def test_without_its_parameter_server_everything_is_started_again() -> None:
    crew = served()
    history = supervised(crew, strike(lambda c: c.dies("ps 0"), "ps 0"))
    assert history.end == "done"
    assert history.restarted == ["coordinator", "worker 0", "worker 1", "ps 0"]
    assert history.resumed_from == 2


def test_a_silent_server_is_blamed_for_a_stall_and_replaced_alone() -> None:
    crew = served()

    def freeze(c: FakeCrew) -> None:
        c.silence("worker 1")
        c.silence("coordinator")
        c.silent.discard("coordinator")

    def goes_on(c: FakeCrew, life: int) -> None:
        serves("worker 1")(c, life)
        if life == 2:
            c.steps("coordinator", 4, STEPS, after_s=1.0)
            c.ends("coordinator", 8.0)

    crew.plays["worker 1"] = goes_on
    history = supervised(crew, strike(freeze, "worker 1"), stall_s=5.0)
    assert [(d.by, d.who) for d in history.detections] == [("heartbeat", "worker 1")]
    assert history.restarted == ["worker 1"]
    assert history.end == "done"


def test_a_preempted_job_waits_until_every_worker_has_saved() -> None:
    crew = crew_of({name: trains(name, again_from=5) for name in ("worker 0", "worker 1")})

    def sigterm(c: FakeCrew) -> None:
        for name, after_s in (("worker 0", 0.1), ("worker 1", 3.0)):
            c.silence(name)
            c.job(name, after_s, "preempted", 5)
            c.say(name, after_s + 0.1, None)

    history = supervised(crew, strike(sigterm, "worker 1"), stall_s=10.0)
    assert [(d.by, d.who) for d in history.detections] == [
        ("preemption_handler", "worker 0"),
        ("preemption_handler", "worker 1"),
    ]
    assert history.restarted == ["worker 0", "worker 1"]
    assert history.resumed_from == 5
    assert history.steps_lost == 0


def test_an_outage_ends_after_its_time_when_nobody_minded() -> None:
    crew, healed = crew_of({"the process": trains("the process")}), []
    hit = strike(nothing, "the process", outage_s=2.0, heals=lambda c: healed.append(c.clock()))  # type: ignore[attr-defined]
    history = supervised(crew, hit)
    assert history.end == "done"
    assert history.detections == []
    assert history.after_fault(healed[0]) == pytest.approx(2.0, abs=0.2)


def test_an_outage_ends_before_anything_is_started_again() -> None:
    crew, healed = crew_of({"the process": trains("the process")}), []
    hit = strike(
        lambda c: c.silence("the process"),
        "the process",
        outage_s=90.0,
        heals=lambda c: healed.append(len(c.starts)),  # type: ignore[attr-defined]
    )
    assert supervised(crew, hit).end == "done"
    assert healed == [1]


def test_a_job_that_goes_nowhere_ends_at_its_limit_with_the_stacks() -> None:
    crew = crew_of({"the process": trains("the process", stops_at=6)})
    history = supervised(crew, None, stall_s=500.0, limit_s=20.0)
    assert history.end == "hung"
    assert history.evidence == "stacks"
    assert history.reason == "not done within 20 s; the last step was 6"
    assert ("the process", 10) in crew.signals


def test_a_job_that_fails_again_and_again_is_given_up() -> None:
    def play(crew: FakeCrew, life: int) -> None:
        crew.steps("the process", 0, 5, after_s=0.5)
        if life > 1:
            crew.ends("the process", 2.0, "crashed", UNAVAILABLE)

    crew = crew_of({"the process": play})
    history = supervised(crew, strike(lambda c: c.dies("the process"), "the process"))
    assert history.end == "failed"
    assert history.reason == f"still failing after {MOST_RESTARTS} restarts: the process: {UNAVAILABLE}"
    assert len(history.restarted) == MOST_RESTARTS


def test_an_error_before_the_fault_is_no_recovery() -> None:
    crew = crew_of({"the process": lambda c, _: c.ends("the process", 1.0, "crashed", "ValueError: no")})
    history = supervised(crew, strike(nothing, "the process"))
    assert (history.end, history.reason) == ("failed", "the process, before any fault: ValueError: no")


def test_what_tensorflow_refuses_is_unsupported_with_its_words() -> None:
    crew = crew_of({"the process": lambda c, _: c.ends("the process", 1.0, "unsupported", "does not support")})
    history = supervised(crew, strike(nothing, "the process"))
    assert (history.end, history.reason) == ("unsupported", "does not support")


def test_a_process_that_never_starts_is_started_again_and_then_given_up() -> None:
    crew = crew_of({"the process": lambda c, life: c.steps("the process", 0, 5) if life == 1 else None})
    history = supervised(crew, strike(lambda c: c.dies("the process"), "the process"), limit_s=10 * START_LIMIT_S)
    assert history.end == "failed"
    assert "still failing" in (history.reason or "")


@pytest.mark.parametrize("step", [STEPS, STEPS + 1], ids=["after the last step", "never"])
def test_a_job_that_is_done_before_its_fault_says_so(step: int) -> None:
    crew = crew_of({"the process": trains("the process")})
    history = supervised(crew, strike(nothing, "the process", step=step))
    assert (history.end, history.reason) == ("failed", "done before the fault came; more steps help")


def test_a_network_that_breaks_under_the_job_leaves_none_of_its_processes() -> None:
    crew = crew_of({name: trains(name) for name in ("worker 0", "worker 1")})

    def cut(_: FakeCrew) -> None:
        raise NetworkError("the process that holds a network namespace is gone")

    with pytest.raises(NetworkError, match="is gone"):
        supervised(crew, strike(cut, "worker 1", heals=cut, outage_s=2.0))
    assert [hand.child for hand in crew.hands] == [None, None]


def test_ctrl_c_during_an_outage_is_heeded_although_the_outage_cannot_be_taken_back() -> None:
    crew, interrupts = crew_of({"the process": trains("the process")}), Interrupts()

    def cut(c: FakeCrew) -> None:
        c.silence("the process")
        interrupts.asked = True

    def gone(_: FakeCrew) -> None:
        raise NetworkError("the process that holds a network namespace is gone")

    job = strike(cut, "the process", heals=gone, outage_s=90.0)
    with pytest.raises(Interrupted):
        Supervisor(crew, Rules(5.0, 100.0), job, interrupts, clock=crew.clock).run()
    assert crew.hands[0].child is None

"""Agents preload an engine once a run asks for it, from the interpreter that their host has for it."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.run.launchers.agents.identity import equipment_of
from harness.run.launchers.agents.meeting import Meeting
from harness.run.launchers.agents.messages import Equipment
from harness.run.launchers.agents.remote import Agent
from tests.run.launchers.agents.conftest import Process, Start, comes_true, joined, request


def preloaded(agent: Agent, engine: str) -> Equipment | str:
    """What the host has of an engine, or why not."""
    agent.preload(engine)
    return agent.equipment(engine, lambda: None)


def test_an_engine_is_preloaded_once_it_is_asked_for_and_forks_what_asks_for_it(agent: Agent) -> None:
    engine = "benchmarks.own_engine:Means"
    assert preloaded(agent, engine) == equipment_of(engine, sys.executable)
    child = agent.spawn(request(0).model_copy(update={"engine": engine}))
    assert child.wait() == 0
    assert preloaded(agent, engine) == equipment_of(engine, sys.executable)
    assert agent.spawn(request(0)).wait() == 0


@pytest.mark.parametrize("end", [Meeting.close, None], ids=["the run is over", "asked to"])
def test_an_agent_ends_while_it_imports_another_engine(
    meeting: Meeting, worker: Process, agent: Agent, tmp_path: Path, end: Callable[[Meeting], None] | None
) -> None:
    begun = tmp_path / "begun"
    (tmp_path / "zygote.py").write_text(f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(150)\n")
    agent.preload("benchmarks.own_engine:Means")
    assert comes_true(begun.exists)
    if end is None:
        worker.send_signal(signal.SIGTERM)
    else:
        end(meeting)
    _, error = worker.communicate(timeout=30)
    assert (worker.returncode, error) == (0, "")


@pytest.mark.parametrize(
    ("engine", "why_not"),
    [("jax", "engine: 'jax' is not installed; python -m harness engine install jax"), ("jix", "did you mean 'jax'?")],
)
def test_an_engine_that_a_host_has_not_is_named_with_the_command_that_installs_it(
    meeting: Meeting, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: str, why_not: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    start("--connect", meeting.address())
    [agent] = joined(meeting, 1)
    answer = preloaded(agent, engine)
    assert isinstance(answer, str)
    assert why_not in answer
    assert agent.spawn(request(0)).wait() == 0


@pytest.mark.parametrize("beside", ["", ",my-engine=/another/python"], ids=["alone", "beside an engine of the user's"])
def test_the_interpreter_that_a_host_is_told_of_is_the_engines_there(
    meeting: Meeting, start: Start, beside: str
) -> None:
    start("--connect", meeting.address(), f"--engine-python=jax=/no/such/python{beside}")
    [agent] = joined(meeting, 1)
    assert preloaded(agent, "jax") == "engine_python: jax: no file at '/no/such/python'"

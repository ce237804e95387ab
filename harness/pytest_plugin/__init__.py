"""A pytest plugin: a test that fails when a training step became slower, and only then.

    @pytest.mark.training_gate(step="my_package.train:make_step", examples=64)
    def test_the_step_is_no_slower():
        pass

    pytest --gate-against origin/main

The mark names the cell; all cells that are selected are measured before the first is judged, by the
trials, turns and statistics of `harness ab`, and judged together by Holm. `docs/ci.md` is the manual.

Every run of pytest in an environment with this package loads this module, so it imports nothing of weight;
the measuring parts are loaded when a gate test is selected.
"""

import os
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.options import GateOptions, add_options, read_options
from harness.pytest_plugin.undecided import UndecidedGate

if TYPE_CHECKING:
    from harness.pytest_plugin.result import GateResult
    from harness.pytest_plugin.session import GateSession

__all__ = ["UndecidedGate", "training_gate"]

MARK = "training_gate"
_OPTIONS = pytest.StashKey[GateOptions]()
_SESSION: "pytest.StashKey[GateSession]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The `--gate-…` options and their ini keys."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark and read the options."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(**keys): fail when this cell of training became slower; keys are those of a harness spec, "
        "one value each (harness).",
    )
    config.stash[_OPTIONS] = read_options(config)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Read the marks of the tests that are left after -k, -m and the like; skip them when nothing is asked for."""
    marked = [item for item in session.items if item.get_closest_marker(MARK) is not None]
    _refuse_the_fixture_alone(session)
    if not marked:
        return
    from harness.pytest_plugin.marks import read_marks

    reason = _why_not(session.config)
    if reason is not None or session.config.option.collectonly:
        read_marks(marked, MARK, {})  # a wrong mark is found though nothing will be measured
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason or "only collected"))
    else:
        from harness.pytest_plugin.session import GateSession
        from harness.run.kinds.decision import WINDOWING

        cells = read_marks(marked, MARK, WINDOWING)
        gate = GateSession(session.config, session.config.stash[_OPTIONS], marked, cells)
        gate.settle()
        session.config.stash[_SESSION] = gate


def _refuse_the_fixture_alone(session: pytest.Session) -> None:
    for item in session.items:
        if MARK in getattr(item, "fixturenames", ()) and item.get_closest_marker(MARK) is None:
            raise pytest.UsageError(
                f"{item.nodeid}: takes the fixture {MARK} and has no mark @pytest.mark.{MARK}(…) that names its cell"
            )


def _why_not(config: pytest.Config) -> str | None:
    """Why no gate test is measured in this run; None when they are."""
    options = config.stash[_OPTIONS]
    if options.mode == "off":
        return options.why_off
    if os.environ.get("PYTEST_XDIST_WORKER"):
        return "the training gate times by turns in one process: run these tests without -n"
    if config.getoption("benchmark_skip", False) and not config.getoption("benchmark_only", False):
        return "benchmarks are skipped (--benchmark-skip)"
    return None


@pytest.fixture
def training_gate(request: pytest.FixtureRequest) -> "GateResult":
    """What the gate found for the test's cell: verdict, ratio, ci95, cpu and more.

    The test is judged before its body runs, so a body only ever sees what is not slower.
    """
    result = request.config.stash[_SESSION].result(request.node)
    if result.end in ("saved", "proved", "unproved"):
        pytest.skip(f"{result.end}: nothing is compared in this run, so there is nothing to assert")
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge a gate test before its body: in this phase, so that `slower` is a failure and not an error."""
    gate = item.config.stash.get(_SESSION, None)
    if gate is not None and item.get_closest_marker(MARK) is not None:
        gate.judge(item)
    return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One table of everything the gate measured."""
    gate = config.stash.get(_SESSION, None)
    if gate is not None:
        gate.summarise(terminalreporter)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what the gate found to the file that was named."""
    gate = session.config.stash.get(_SESSION, None)
    if gate is not None:
        session.exitstatus = gate.write_json() or session.exitstatus

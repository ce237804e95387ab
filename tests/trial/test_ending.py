"""How a process that raised has ended, whatever it was asked to do, and what is kept as evidence."""

import socket

import pytest

from harness.errors import HarnessError, Unsupported
from harness.protocol.channel import Channel
from harness.protocol.messages import Membership, Outcome, Request
from harness.trial.ending import (
    EVIDENCE_CHARACTERS,
    TrialEnd,
    WrongResult,
    ending_of,
    plain_ending,
    traceback_without_paths,
)
from harness.trial.life import outcome_of
from tests.engines.numpy_engine import NumpyEngine
from tests.record.examples import cell


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (MemoryError("no room"), "out_of_memory", "MemoryError: no room"),
        (NotImplementedError("later"), "unsupported", "NotImplementedError: later"),
        (ValueError("\n  so be it\nand more"), "crashed", "ValueError: so be it"),
        (KeyError(), "crashed", "KeyError: "),
    ],
)
def test_an_exception_is_a_status_and_its_first_line(error: Exception, status: str, reason: str) -> None:
    assert plain_ending(error) == (status, reason)


def test_evidence_names_no_folder_of_this_machine() -> None:
    import json

    try:
        json.loads("{")
    except ValueError:
        text = traceback_without_paths()
    assert "json/decoder.py" in text
    assert '"/' not in text


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (WrongResult("one gradient is missing"), TrialEnd("wrong_result", "one gradient is missing")),
        (Unsupported("no such device"), TrialEnd("unsupported", "no such device")),
        (Unsupported("it is in use", may_pass=True), TrialEnd("unsupported", "it is in use", may_pass=True)),
        (HarnessError("the model is not there"), TrialEnd("crashed", "the model is not there")),
        (NotImplementedError("later"), TrialEnd("unsupported", "NotImplementedError: later")),
    ],
)
def test_what_says_its_reason_itself_needs_no_evidence(error: Exception, ended: TrialEnd) -> None:
    assert ending_of(error, plain_ending) == ended


def test_a_crash_comes_with_its_traceback() -> None:
    try:
        raise ValueError("so be it")
    except ValueError as error:
        ended = ending_of(error, plain_ending)
    assert ended[:2] == ("crashed", "ValueError: so be it")
    assert "test_ending.py" in (ended.evidence or "")


@pytest.mark.parametrize("kind", [ValueError, WrongResult, Unsupported, HarnessError, NotImplementedError])
def test_a_line_without_an_end_is_cut_as_evidence_is(kind: type[Exception]) -> None:
    try:
        raise kind("[" + "0, " * 10**6)
    except kind as error:
        ended = ending_of(error, plain_ending)
    assert len(ended.reason or "") == EVIDENCE_CHARACTERS
    assert (ended.reason or "").endswith("…")
    assert len(ended.evidence or "") <= EVIDENCE_CHARACTERS


class Servers:
    """Places of a cluster that the host cannot serve."""

    def join(self, member: Membership) -> None:
        """Every process may."""

    def serve(self, request: Request, member: Membership, channel: Channel) -> Outcome:
        """As a host does that has fewer devices than the cell asks for."""
        raise Unsupported("2 GPUs are asked for, this host has 1")


class Clustered(NumpyEngine):
    """The engine in NumPy, had it clusters."""

    clusters = Servers()


def test_a_server_of_a_cluster_whose_host_lacks_devices_is_unsupported_as_a_trial_is() -> None:
    member = Membership(task="worker", index=0, cluster={"chief": ["localhost:1"], "worker": ["localhost:2"]})
    request = Request(
        cell=cell(), member=member, seed=0, data_dir="", window_s=0.1, intra_op_threads=1, inter_op_threads=1
    )
    ours, _theirs = socket.socketpair()
    outcome = outcome_of(request, Channel(ours), Clustered())
    assert (outcome.status, outcome.reason) == ("unsupported", "2 GPUs are asked for, this host has 1")

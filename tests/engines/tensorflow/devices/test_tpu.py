"""Without a TPU each of the resolver's three forms ends in a reason, and within the stated time."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.engines.tensorflow.devices import tpu
from harness.errors import Unsupported
from harness.run.request import request_for
from harness.spec import Sweep
from tests.record.examples import cell

pytestmark = pytest.mark.usefixtures("tf")

UNROUTED = "192.0.2.1:8470"
"""Of RFC 5737's addresses for documentation: nothing answers there, or a router says so."""


def reason_for(name: str, limit_s: float = 5.0) -> str:
    """Why there is no such TPU."""
    with pytest.raises(Unsupported) as caught:
        tpu.connect(name, limit_s)
    return str(caught.value)


@pytest.fixture
def deaf() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_local_without_a_tpu_device_says_which_files_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "LOCAL_DEVICES", (Path("/nonexistent/accel0"),))
    assert "this machine has no TPU device" in reason_for("local")


@pytest.mark.parametrize("name", [UNROUTED, f"grpc://{UNROUTED}"])
def test_an_address_where_nothing_answers_ends_within_the_limit(name: str) -> None:
    assert reason_for(name, 1.0).startswith(f"no TPU at '{name}': ")


def test_a_port_where_nothing_listens_is_named_with_what_the_system_says() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        assert reason_for(address) == f"no TPU at '{address}': Connection refused"


def test_a_host_that_does_not_resolve_is_named() -> None:
    assert reason_for("no-such-host.invalid:8470").startswith("no TPU at 'no-such-host.invalid:8470': ")


def test_a_name_that_does_not_resolve_says_who_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError("<urlopen error [Errno -2] Name or service not known>")

    monkeypatch.setattr(tpu, "_connect", refuse)
    said = reason_for("no-such-tpu")
    assert "finds no TPU 'no-such-tpu'" in said
    assert said.endswith("a name is looked up at Google Cloud's metadata server")


def test_what_answers_and_is_no_tpu_ends_within_the_limit(deaf: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "_connect", lambda _: time.sleep(5))
    assert reason_for(f"127.0.0.1:{deaf}", 0.5) == f"no TPU answered for 'grpc://127.0.0.1:{deaf}' within 0.5 s"


def test_a_trial_gives_up_on_its_tpu_before_it_counts_as_hung() -> None:
    for timeout in (8.0, 120.0):
        request = request_for(cell(device="tpu", strategy="tpu"), Sweep(timeout=timeout), Path())
        assert request.others_limit_s <= timeout / 2


def reason_may_pass(name: str, limit_s: float = 5.0) -> bool:
    with pytest.raises(Unsupported) as caught:
        tpu.connect(name, limit_s)
    return caught.value.may_pass


def test_a_slow_start_and_a_chip_that_another_process_has_are_reasons_that_may_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tpu, "is_local", lambda: True)
    monkeypatch.setattr(tpu, "_connect", lambda _: time.sleep(2))
    assert reason_may_pass("local", 0.1)

    def refuse(text: str) -> None:
        def connect(_: str) -> None:
            raise RuntimeError(text)

        monkeypatch.setattr(tpu, "_connect", connect)

    refuse("The TPU is already in use by process with pid 42. Not attempting to load libtpu.so in this process.")
    assert reason_may_pass("local")
    refuse("Invalid TPU topology: 3 blocks asked for")
    assert not reason_may_pass("local")


def test_no_tpu_at_all_is_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "is_local", lambda: False)
    assert not reason_may_pass("local")

"""What a process says of a cluster that it cannot reach, before TensorFlow would try in silence."""

import json
import os
import socket
import threading
from collections.abc import Iterator

import pytest

from harness.engines.tensorflow.membership import join
from harness.errors import HarnessError
from harness.protocol.messages import Membership
from harness.trial import membership
from harness.trial.membership import await_listening


@pytest.fixture(autouse=True)
def _variables_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TF_CONFIG", "TF_GRPC_REUSE_PORT"):
        monkeypatch.setenv(name, "")


@pytest.mark.parametrize("host", ["nosuch.invalid", "h" * 60 + ".invalid"])
def test_an_address_that_does_not_resolve_is_named_with_whose_it_is(host: str) -> None:
    member = Membership(task="worker", index=0, cluster={"worker": ["127.0.0.1:1", f"{host}:2"]})
    with pytest.raises(HarnessError, match=rf"^worker 1's address '{host}' does not resolve on \S+: ."):
        join(member)


def test_addresses_of_either_kind_and_names_are_taken_as_they_are() -> None:
    cluster = {"chief": ["localhost:1"], "worker": ["[::1]:2"], "ps": ["10.0.0.1:3"]}
    join(Membership(task="ps", index=0, cluster=cluster))
    assert json.loads(os.environ["TF_CONFIG"])["cluster"] == cluster


@pytest.mark.parametrize(("namespace", "left"), [("", "eth0"), ("/proc/1/ns/net", None)])
def test_interfaces_that_nccl_is_told_are_the_hosts_and_none_of_a_network_of_the_launchers(
    monkeypatch: pytest.MonkeyPatch, namespace: str, left: str | None
) -> None:
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    monkeypatch.setattr(membership, "enter", lambda *_: None)
    member = Membership(task="worker", index=0, cluster={"worker": ["127.0.0.1:1"]}, namespace=namespace)
    membership.enter_network(member)
    assert os.environ.get("NCCL_SOCKET_IFNAME") == left


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    """A port that is taken, and on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken


def test_servers_are_awaited_until_the_last_of_them_listens(bound: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as early:
        addresses = [f"127.0.0.1:{server.getsockname()[1]}" for server in (early, bound)]
        assert not await_listening(addresses, limit_s=0.05)
        late = threading.Timer(0.1, bound.listen)
        late.start()
        assert await_listening(addresses, limit_s=30)
        late.join()


def test_a_server_that_never_comes_is_awaited_no_longer_than_the_limit(bound: socket.socket) -> None:
    assert not await_listening([f"127.0.0.1:{bound.getsockname()[1]}"], limit_s=0.05)
    assert not await_listening(["nosuch.invalid:1"], limit_s=0.05)

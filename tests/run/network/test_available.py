"""Where a network cannot be emulated, the reason is said, in the same words to `doctor` and to a trial."""

import shutil

import pytest

from harness.run.network import EmulatedNetwork, NotAvailable, available
from harness.run.network.namespace import Namespace
from harness.spec.network import Network


@pytest.fixture
def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("a process was started")

    monkeypatch.setattr("harness.run.network.namespace.subprocess.Popen", refuse)


def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/sbin/{name}")


def same_reason() -> str:
    """What both say."""
    with pytest.raises(NotAvailable) as refused:
        EmulatedNetwork(Network.parse("rate=1gbit"), 2)
    assert available() == str(refused.value)
    return str(refused.value)


@pytest.mark.usefixtures("nothing_is_started")
def test_an_ordinary_user_is_told_that_it_takes_root(monkeypatch: pytest.MonkeyPatch) -> None:
    as_root(monkeypatch)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert same_reason() == "emulated networks need root, who alone may make links between network namespaces"


@pytest.mark.usefixtures("nothing_is_started")
@pytest.mark.parametrize(
    ("there", "reason"),
    [
        ({"tc"}, "no program ip: install iproute2"),
        ({"ip"}, "no program tc: install iproute2"),
        (set(), "no program ip and no program tc: install iproute2"),
    ],
)
def test_a_tool_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, there: set[str], reason: str
) -> None:
    as_root(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name, **_: f"/sbin/{name}" if name in there else None)
    assert same_reason().startswith(reason)


@pytest.mark.usefixtures("nothing_is_started")
def test_a_system_that_is_not_linux_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert same_reason() == "emulated networks are made of Linux network namespaces"


def test_a_kernel_that_refuses_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Namespace) -> None:
        raise NotAvailable("the kernel refuses a network namespace: Operation not permitted")

    as_root(monkeypatch)
    monkeypatch.setattr(Namespace, "wait", refuse)
    assert same_reason() == "the kernel refuses a network namespace: Operation not permitted"


@pytest.mark.usefixtures("nothing_is_started")
@pytest.mark.parametrize("hosts", [0, 251])
def test_a_count_of_hosts_that_no_network_has_is_refused(monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
    as_root(monkeypatch)
    with pytest.raises(NotAvailable, match=f"a network of {hosts} hosts: expected 1 to 250"):
        EmulatedNetwork(Network(), hosts)

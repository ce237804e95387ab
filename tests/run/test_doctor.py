"""What `doctor` says of clusters is what a sweep would find."""

import dataclasses
import shutil

import pytest

from harness.run import doctor
from harness.run.doctor import Finding, examine, examine_hosts
from harness.run.launchers import launchers
from harness.run.process.startup import Startup
from harness.run.process.zygote import PLAIN
from harness.trial.engines import catalogue_of
from tests.preloaded import handed_in


def test_every_launcher_is_named_with_the_reason_that_its_trials_would_have() -> None:
    said = {finding.name: finding.reason for finding in examine_hosts() if finding.kind == "launcher"}
    assert said == {name: launcher.available() for name, launcher in launchers().items()}
    assert said["local"] is None


def test_networks_are_named() -> None:
    found = [finding for finding in examine_hosts() if finding.kind == "network"]
    assert [finding.name for finding in found] == ["loopback of its own", "emulated hosts"]
    assert all((finding.reason is None) == (finding.status == "ok") for finding in found)


@pytest.fixture(scope="module")
def tried() -> dict[tuple[str, str], Finding]:
    """What `doctor` finds here, by kind and name."""
    with handed_in():
        return {(finding.kind, finding.name): finding for finding in examine(catalogue_of())}


@pytest.mark.slow
def test_clusters_of_two_workers_are_really_tried(tried: dict[tuple[str, str], Finding]) -> None:
    together = tried["strategy", "multi_worker_mirrored (2 workers)"]
    assert (together.status, together.reason) == ("ok", None)
    racing = tried["strategy", "parameter_server (2 workers)"]
    assert racing.status == "unproved"
    assert str(racing.reason).startswith("updates: those of 2 workers that wait for nobody have no reference together")


@pytest.mark.slow
def test_an_op_is_tried_with_the_strategies_that_take_it_and_no_others(tried: dict[tuple[str, str], Finding]) -> None:
    places = {name: {kind for kind, of in tried if of == name} for name in catalogue_of().cross_device_ops}
    alone, together = {"op, 2 replicas", "op, 3 replicas"}, {"op, 2 workers"}
    assert places == {
        "auto": alone,
        "hierarchical_copy": alone,
        "reduction_to_one_device": alone,
        "nccl": alone | together,
        "ring": together,
    }
    assert tried["op, 2 workers", "ring"].reason is None


@pytest.mark.slow
def test_nccl_between_workers_is_said_to_need_gpus(tried: dict[tuple[str, str], Finding]) -> None:
    found = tried["op, 2 workers", "nccl"]
    if not shutil.which("nvidia-smi"):
        assert found.status == "unsupported"
        assert "NVIDIA GPUs" in str(found.reason)


def test_what_an_import_takes_is_tried_before_any_process_that_stays_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    diary: list[tuple[object, ...]] = []

    class Opened:
        def __init__(self, startup: Startup = PLAIN) -> None:
            self.preloads = startup.preloads

        def __enter__(self) -> "Opened":
            diary.append(("opened", self.preloads))
            return self

        def __exit__(self, *_: object) -> None:
            diary.append(("closed", self.preloads))

    def tried(zygote: Opened, kind: str, name: str, *_: object) -> Finding:
        diary.append((name, zygote.preloads))
        return Finding(kind, name, "ok", None)

    monkeypatch.setattr(doctor, "Zygote", Opened)
    monkeypatch.setattr(doctor, "_try", tried)
    monkeypatch.setattr(doctor, "_try_cluster", tried)
    monkeypatch.setattr(doctor, "examine_hosts", lambda: iter(()))
    known = catalogue_of()
    tpu = dataclasses.replace(known.devices["tpu"], taken_by_import=True)
    found = list(examine(dataclasses.replace(known, devices={**known.devices, "tpu": tpu})))
    assert diary[:4] == [("opened", False), ("tpu", False), ("closed", False), ("opened", True)]
    assert ("tpu", True) not in diary
    assert [finding.kind for finding in found if finding.name == "tpu"] == ["device", "strategy"]

"""What `doctor` says of clusters is what a sweep would find."""

import pytest

from harness.run.doctor import examine, examine_hosts
from harness.run.launchers import launchers
from harness.trial.catalogue import load_catalogue


def test_every_launcher_is_named_with_the_reason_that_its_trials_would_have() -> None:
    said = {finding.name: finding.reason for finding in examine_hosts() if finding.kind == "launcher"}
    assert said == {name: launcher.available() for name, launcher in launchers().items()}
    assert said["local"] is None


def test_networks_are_named() -> None:
    found = [finding for finding in examine_hosts() if finding.kind == "network"]
    assert [finding.name for finding in found] == ["loopback of its own", "emulated hosts"]
    assert all((finding.reason is None) == (finding.status == "ok") for finding in found)


@pytest.mark.slow
def test_clusters_of_two_workers_are_really_tried() -> None:
    tried = {finding.name: (finding.status, finding.reason) for finding in examine(load_catalogue())}
    assert tried["multi_worker_mirrored (2 workers)"] == ("ok", None)
    assert tried["parameter_server (2 workers)"] == ("ok", None)

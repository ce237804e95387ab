"""Several machines that measured together are one machine to whoever compares runs."""

from typing import Any

from harness.record import Machine, RunManifest
from harness.record.cluster import ClusterRecord, MemberRecord
from tests.record.examples import manifest, trial

LOGIN = {"machine.id": "login", "cpu.model": "small", "git.revision": "abc"}
FIRST = {"machine.id": "aaa", "cpu.model": "large", "cpu.usable_cores": 64, "git.revision": None}
SECOND = {"machine.id": "bbb", "cpu.model": "large", "cpu.usable_cores": 32, "gpu.count": 1}


def of(**hosts: dict[str, Any]) -> RunManifest:
    """A run that was started on a login node."""
    described = {name: Machine(facts=facts) for name, facts in hosts.items()}
    return manifest(machine=Machine(facts=LOGIN), hosts=described)


def test_a_run_on_its_own_machine_has_that_machines_facts() -> None:
    assert of().facts == LOGIN


def test_a_run_on_one_host_elsewhere_has_that_hosts_facts_and_the_revision_it_was_started_from() -> None:
    assert of(n1=FIRST).facts == {**FIRST, "git.revision": "abc"}


def test_a_run_on_several_hosts_is_of_all_of_them_in_whatever_order_they_joined() -> None:
    facts = of(n1=FIRST, n2=SECOND).facts
    assert facts["machine.id"] == "aaa | bbb"
    assert (facts["cpu.model"], facts["cpu.usable_cores"], facts["gpu.count"]) == ("large", "32 | 64", "1 | unknown")
    again = of(n1=SECOND, n2=FIRST).facts
    assert again == facts


def test_a_trial_names_every_host_of_its_processes_once() -> None:
    members = [MemberRecord(name=f"worker {n}", address="a:1", host=host) for n, host in enumerate(["n2", "n1", "n2"])]
    assert trial().hosts == ()
    assert trial(host="n1").hosts == ("n1",)
    assert trial(cluster=ClusterRecord(launcher="slurm", members=members)).hosts == ("n2", "n1")

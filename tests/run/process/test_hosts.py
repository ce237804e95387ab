"""What is known of a host elsewhere is in the manifest once a trial has run there."""

from pathlib import Path

from harness.record import RunStore, load_run
from harness.run.process.hosts import note_hosts
from tests.record.examples import manifest, trial

KNOWN = {"n1": {"machine.id": "aaa", "cpu.governor": "powersave"}, "n2": {"machine.id": "bbb"}}


def test_a_host_is_described_once_and_only_when_a_trial_ran_on_it(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        note_hosts(store, trial(), KNOWN)
        assert store.manifest.hosts == {}
        note_hosts(store, trial(host="n1"), KNOWN)
        changed = {"n1": {"machine.id": "aaa", "load.1min": 9.0}}
        note_hosts(store, trial(host="n1"), changed)
    stored = load_run(store.path).manifest
    assert {name: host.facts for name, host in stored.hosts.items()} == {"n1": KNOWN["n1"]}
    assert any("powersave" in warning for warning in stored.hosts["n1"].warnings)


def test_a_host_that_nothing_is_known_of_is_left_out(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, manifest()) as store:
        note_hosts(store, trial(host="n9"), KNOWN)
        assert store.manifest.hosts == {}

"""Each host elsewhere is described once in the manifest of the run whose trials it measured."""

from collections.abc import Mapping

from harness.environment import Facts, warnings
from harness.record.manifest import Machine
from harness.record.store import RunStore
from harness.record.trial import TrialRecord


def note_hosts(store: RunStore, record: TrialRecord, known: Mapping[str, Facts]) -> None:
    """Keep the facts of the hosts that `record` names and the manifest does not have yet; `known` is by name.

    Before the record is appended: a record never names a host that nothing is known of. Raises StorageError.
    """
    manifest = store.manifest
    new = {
        name: Machine(facts=known[name], warnings=warnings(known[name]))
        for name in record.hosts
        if name in known and name not in manifest.hosts
    }
    if new:
        store.update_manifest(manifest.model_copy(update={"hosts": {**manifest.hosts, **new}}))

"""A cell's identity: the hash of its canonical form."""

import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from harness.spec import Cell, TrainingCell
from harness.spec.cell import LATER
from tests.record.examples import cell


def test_the_identity_is_stable_across_versions_and_processes() -> None:
    """Results of different days are joined by it: if this fails, every stored run loses its cells."""
    assert cell().cell_id == "9cbfde5025a7"
    code = "from tests.record.examples import cell; print(cell().cell_id)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == cell().cell_id


def test_the_order_in_which_keys_are_given_does_not_change_the_identity() -> None:
    values = cell().model_dump()
    assert TrainingCell(**dict(reversed(values.items()))).cell_id == cell().cell_id
    assert Cell.model_validate_json(json.dumps(values)).cell_id == cell().cell_id


@pytest.mark.parametrize(
    "change",
    [
        {"device": "gpu"},
        {"strategy": "none"},
        {"replicas": 3},
        {"workers": 2},
        {"batch_size": 33},
        {"batch_scope": "global"},
        {"global_batch_size": 65},
        {"cross_device_op": "nccl"},
        {"packing": "num_packs=1"},
        {"model": "mlp"},
        {"data": "synthetic"},
        {"precision": "mixed_bfloat16"},
        {"xla": True},
        {"optimizer": "sgd"},
        {"loop": "fit"},
        {"ps": 1},
        {"partitioner": "fixed"},
        {"updates": "keras"},
        {"network": "rate=1gbit"},
        {"mesh": "batch:2"},
    ],
)
def test_every_key_is_part_of_the_identity(change: dict[str, Any]) -> None:
    assert cell(**change).cell_id != cell().cell_id


def test_a_cell_of_an_earlier_run_is_the_same_cell_as_now() -> None:
    earlier = {key: value for key, value in cell().model_dump().items() if key not in LATER}
    canonical = json.dumps(earlier, sort_keys=True, separators=(",", ":"))
    assert cell().cell_id == hashlib.sha256(canonical.encode()).hexdigest()[:12]
    assert Cell.model_validate(earlier) == cell()


def test_with_parameter_servers_an_update_is_computed_from_one_workers_batch() -> None:
    served = cell(strategy="parameter_server", workers=2, replicas=1, ps=1, global_batch_size=32)
    assert (served.replicas_in_sync, served.replicas_per_update, served.replica_batch_size) == (2, 1, 32)


def test_a_changed_copy_has_an_identity_of_its_own() -> None:
    original = cell()
    before = original.cell_id
    assert original.model_copy(update={"replicas": 4}).cell_id == cell(replicas=4).cell_id != before


def test_a_cell_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        cell().replicas = 3


def test_replicas_of_all_workers_share_the_global_batch() -> None:
    several = cell(workers=2, replicas=3, global_batch_size=192)
    assert (several.replicas_in_sync, several.replica_batch_size) == (6, 32)


def test_the_label_names_what_varies_and_nothing_else() -> None:
    assert cell().label == "mirrored ×2 b32"
    busy = cell(workers=2, batch_scope="global", cross_device_op="nccl", packing="num_packs=2", loop="fit")
    assert busy.label == "mirrored 2 workers ×2 b32 global nccl num_packs=2 fit"
    slowed = cell(workers=2, network="rate=1gbit,delay=0.5ms")
    assert slowed.label == "mirrored 2 workers ×2 b32 rate=1gbit,delay=0.5ms"


def test_words_call_a_loop_a_loop_for_it_may_be_named_as_a_strategy_is() -> None:
    alone = {"strategy": "none", "replicas": 1, "engine": "keras_distribution"}
    assert cell(**alone, loop="data_parallel").in_words(2).endswith(", loop data_parallel, keras_distribution")
    assert cell(loop="fit").in_words().endswith(", Model.fit")

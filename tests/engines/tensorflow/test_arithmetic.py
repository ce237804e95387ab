"""What float32 is computed in, on GPUs that are not there: TensorFlow's words about them are ours."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.engines.tensorflow.reference import arithmetic_of
from harness.engines.tensorflow.reference.arithmetic import coarsest_arithmetic
from harness.engines.tensorflow.server_state import StatelessModel
from harness.engines.tensorflow.trainer import TensorFlowTrainer
from harness.engines.tensorflow.workloads import optimizer_of
from harness.record.trial import Executed
from tests.record.examples import cell

AMPERE, TURING = (8, 0), (7, 5)


@pytest.fixture
def cards(tf: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The compute capabilities of the GPUs that TensorFlow finds; one Ampere until a test says otherwise."""
    found = [AMPERE]
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: list(range(len(found))))
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda number: {"compute_capability": found[number]}
    )
    return found


def training(device: str = "GPU", **changes: Any) -> Any:
    """What is known of a cell's training on one device."""
    return SimpleNamespace(
        cell=cell(device="gpu", **changes),
        devices=SimpleNamespace(names=[f"/device:{device}:0"]),
        input=["Batch(4)"],
        hand_over=[],
        own_training=[],
        optimizer=optimizer_of(SimpleNamespace(compiled=False), "sgd"),
    )


def executed(of: Any) -> Executed:
    """What the trainer of that training records."""
    made = object.__new__(TensorFlowTrainer)
    made._training = of
    made._loop = SimpleNamespace(executed=lambda: Executed(fingerprint="f"))  # type: ignore[assignment]
    return made.executed()


def test_float32_is_tf32_on_cards_that_can_and_in_full_on_older_ones(cards: list[tuple[int, int]]) -> None:
    assert arithmetic_of(training()) == "tf32"
    cards[:] = [TURING]
    assert arithmetic_of(training()) == "float32"
    cards[:] = [TURING, AMPERE]
    assert arithmetic_of(training()) == "tf32"


@pytest.mark.usefixtures("cards")
def test_nvidias_variable_forbids_tf32_to_its_libraries_and_not_to_xlas_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "0")
    assert arithmetic_of(training()) == "float32"
    assert arithmetic_of(training(xla=True)) == "tf32"
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    assert arithmetic_of(training()) == "tf32"


@pytest.mark.usefixtures("cards")
def test_a_record_says_what_gpus_computed_float32_in_and_nothing_of_what_is_not_known() -> None:
    assert executed(training()).arithmetic == "tf32"
    assert executed(training("CPU")).arithmetic == ""
    assert executed(training(precision="mixed_bfloat16")).arithmetic == ""
    served = training(strategy="parameter_server", workers=2, replicas=1, ps=1, global_batch_size=32)
    assert executed(served).arithmetic == ""


@pytest.mark.usefixtures("cards")
def test_a_record_without_it_is_written_as_ever() -> None:
    assert "arithmetic" not in executed(training("CPU")).model_dump_json()
    known = executed(training())
    assert known.model_dump()["arithmetic"] == "tf32"
    assert Executed.model_validate_json(known.model_dump_json()) == known


@pytest.mark.parametrize(
    ("policies", "precision", "expected"),
    [
        (["float32"], "float32", "float32"),
        (["mixed_bfloat16", "float32"], "float32", "mixed_bfloat16"),
        (["float16", "mixed_bfloat16"], "float32", "mixed_bfloat16"),
        (["mixed_float16"], "float32", "mixed_float16"),
        (["mixed_float16"], "mixed_bfloat16", "mixed_bfloat16"),
        (["float64"], "mixed_float16", "mixed_float16"),
    ],
)
def test_what_is_allowed_is_what_the_coarsest_layer_computes_in_however_deep_it_lies(
    tf: Any,  # noqa: ARG001
    policies: list[str],
    precision: str,
    expected: str,
) -> None:
    import keras

    inner = keras.Sequential([keras.Input((4,)), *[keras.layers.Dense(4, dtype=policy) for policy in policies]])
    of = training("CPU", precision=precision)
    of.model = keras.Sequential([keras.Input((4,)), inner])
    assert coarsest_arithmetic(of) == expected
    of.model = StatelessModel(lambda variable, _: variable, of.model)
    assert coarsest_arithmetic(of) == expected

"""Variables and sums on a mesh: what each device holds is what is compared."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.engines.tensorflow.devices.base import Devices
from harness.engines.tensorflow.mesh import DeviceMesh, MeshVariable, placing
from harness.engines.tensorflow.state import copies_of
from harness.engines.tensorflow.strategies import strategies
from harness.errors import Unsupported
from harness.protocol.state import VariableState
from harness.spec.mesh import Mesh
from harness.trial.judgement import check_agreement
from tests.record.examples import cell


def built(tf: Any, text: str) -> Any:
    """The mesh on this process's virtual devices."""
    names = tuple(device.name for device in tf.config.list_logical_devices("CPU"))[: Mesh.parse(text).devices]
    of = cell(strategy="dtensor", mesh=text, replicas=Mesh.parse(text).batch)
    return strategies()["dtensor"].build(of, Devices(names, len(names), shared=True), None)


def held(tf: Any, on: DeviceMesh, value: Any, axis: int | None) -> MeshVariable:
    """`value` as a variable on the mesh."""
    variable = tf.Variable(value)
    variable.path = "w"
    laid = placing(on, {} if axis is None else {"w": axis})(variable, None)
    assert isinstance(laid, MeshVariable)
    return laid


@pytest.mark.parametrize("mesh", ["batch:4", "batch:2,model:2", "model:3", "batch:1"])
def test_sums_along_both_axes_of_a_mesh_are_exact(tf: Any, mesh: str) -> None:
    assert strategies()["dtensor"].check_reduction(built(tf, mesh)) is None


def test_of_a_whole_variable_every_device_has_a_copy_and_of_a_cut_one_every_replica(tf: Any) -> None:
    on, value = built(tf, "batch:3,model:2"), np.arange(8.0).reshape(2, 4)
    whole, cut = held(tf, on, value, None), held(tf, on, value, 1)
    assert (len(copies_of(whole)), len(copies_of(cut))) == (6, 3)
    assert all(np.array_equal(copy.numpy(), value) for copy in (*copies_of(whole), *copies_of(cut)))
    assert (whole.layout, cut.layout) == ("whole,whole", "whole,model")
    assert np.array_equal(cut.numpy(), value)


def test_a_device_that_holds_something_else_is_found(tf: Any) -> None:
    on, value = built(tf, "batch:2,model:2"), np.ones((64, 64))
    uneven = on.pack([[value, value], [value, value + 1e-3]], ["unsharded", "unsharded"])
    variable = MeshVariable("w", (SimpleNamespace(read_value=lambda: uneven),), on, None)
    state = VariableState("w", "weight", tuple(copy.numpy() for copy in copies_of(variable)))
    assert "on replica 3 differs from replica 0" in str(check_agreement([state]))


def test_a_dimension_that_the_devices_do_not_divide_is_unsupported_with_its_name(tf: Any) -> None:
    with pytest.raises(Unsupported, match="3 devices do not divide dimension 1 of 'w', which has the shape 2×4"):
        held(tf, built(tf, "model:3"), np.ones((2, 4)), 1)

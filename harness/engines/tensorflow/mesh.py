"""Training state and batches on a DTensor mesh: how each variable lies, and what each device holds of it.

The devices of a mesh are numbered row by row: replica r's shard m is device r·M + m of a `batch:R,model:M` mesh.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.server_state import ShardedVariable, StatelessModel
from harness.errors import Unsupported
from harness.spec.mesh import Mesh

if TYPE_CHECKING:
    from harness.engines.tensorflow.workloads import Workload
    from harness.protocol.state import Array


@dataclass(frozen=True)
class DeviceMesh:
    """What strategy `dtensor` builds: TensorFlow's mesh, and its sizes."""

    mesh: Any
    """A tf.experimental.dtensor.Mesh with the axes `batch` and `model`."""
    sizes: Mesh

    def pack(self, parts: "list[list[Array]]", specs: list[str]) -> Any:
        """A DTensor whose part on replica r, shard m is `parts[r][m]`; `specs` names an axis for each dimension."""
        from tensorflow.experimental import dtensor

        return dtensor.pack([part for row in parts for part in row], dtensor.Layout(specs, self.mesh))

    def unpack(self, tensor: Any) -> "list[list[Array]]":
        """The other way round of `pack`, on the host."""
        from tensorflow.experimental import dtensor

        flat = [part.numpy() for part in dtensor.unpack(tensor)]
        return [flat[r * self.sizes.model : (r + 1) * self.sizes.model] for r in range(self.sizes.batch)]

    def batch(self, values: "Array") -> Any:
        """A global batch, a share of it on each replica."""
        import numpy as np
        from tensorflow.experimental import dtensor

        shares = np.split(np.asarray(values), self.sizes.batch)
        whole = [dtensor.UNSHARDED] * (shares[0].ndim - 1)
        return self.pack([[share] * self.sizes.model for share in shares], ["batch", *whole])


@dataclass(frozen=True)
class _Copy:
    """An array that was read, for what asks for `numpy()`."""

    value: "Array"

    def numpy(self) -> "Array":
        return self.value


@dataclass(frozen=True)
class MeshVariable(ShardedVariable):
    """One variable on the mesh, a DVariable; `axis` is the dimension that `model` cuts, None where it lies whole."""

    on: DeviceMesh
    axis: int | None

    def copies(self) -> list[Any]:
        """What must be the same: a whole one of each device, or, of a variable that is cut, of each replica."""
        import numpy as np

        rows = self.on.unpack(self.shards[0].read_value())
        if self.axis is None:
            return [_Copy(part) for row in rows for part in row]
        return [_Copy(np.concatenate(row, axis=self.axis)) for row in rows]

    def numpy(self) -> Any:
        """The whole value on the host, as the first replica has it."""
        return self.copies()[0].numpy()

    @property
    def layout(self) -> str:
        """How TensorFlow says that it lies: `whole,model` is cut along its second dimension."""
        from tensorflow.experimental import dtensor

        specs = dtensor.fetch_layout(self.shards[0].read_value()).sharding_specs
        return ",".join("whole" if spec == dtensor.UNSHARDED else str(spec) for spec in specs) or "scalar"


def placing(on: DeviceMesh, cuts: Mapping[str, int]) -> Any:
    """A `server_state.Placing` on the mesh: `cuts` has the dimension that `model` cuts, by path."""

    def place(variable: Any, beside: ShardedVariable | None) -> MeshVariable:
        axis = beside.axis if isinstance(beside, MeshVariable) else cuts.get(variable.path)
        return _lay(on, variable, None if on.sizes.model == 1 else axis)

    return place


def _lay(on: DeviceMesh, variable: Any, axis: int | None) -> MeshVariable:
    import numpy as np
    from tensorflow.experimental import dtensor

    value, shards = np.asarray(variable.numpy()), on.sizes.model
    specs = [dtensor.UNSHARDED] * value.ndim
    row = [value] * shards
    if axis is not None:
        if value.shape[axis] % shards:
            raise Unsupported(
                f"mesh '{on.sizes.text}': {shards} devices do not divide dimension {axis} of '{variable.path}', "
                f"which has the shape {'×'.join(map(str, value.shape))}"
            )
        row, specs[axis] = np.split(value, shards, axis), "model"
    made = dtensor.DVariable(on.pack([row] * on.sizes.batch, specs), trainable=False)
    return MeshVariable(variable.path, (made,), on, axis)


def cuts_of(workload: "Workload", model: Any, sizes: Mesh) -> Mapping[str, int]:
    """The model's layout on a mesh of `sizes`; raises Unsupported, with the reason, where there is none."""
    if model.non_trainable_variables:
        raise Unsupported(
            f"model '{workload.name}' keeps state beside its weights ('{model.non_trainable_variables[0].path}'), "
            "which DTensor computes from the whole batch and every other strategy from each replica's share"
        )
    if sizes.model == 1:
        return {}
    if workload.cut is None:
        raise Unsupported(
            f"mesh '{sizes.text}': model '{workload.name}' has no layout that cuts it over 'model'; "
            f"a mesh of batch alone, such as batch:{sizes.devices}, needs none"
        )
    return workload.cut(model)


def layouts_of(model: StatelessModel) -> dict[str, str]:
    """How each trained variable lies."""
    return {
        variable.path: variable.layout for variable in model.trainable_variables if isinstance(variable, MeshVariable)
    }

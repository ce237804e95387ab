"""Two cells that differ in one key only, for every key of a training, of a collective and of an input pipeline.

The table's entry says which values, and beside what; `OF_COLLECTIVES` says it of what is a collective's own, and
`OF_PIPELINES` of what is a pipeline's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from harness.engines.tensorflow.catalogue import load_catalogue
from harness.spec import Sweep, expand, sweep_from
from harness.spec.axes import ENGINE, INPUT, PROGRAM, TABLE
from harness.spec.cell import TrainingCell, trained
from harness.spec.collective import GRADIENTS, CollectiveCell
from harness.spec.entry import Axis
from harness.spec.grouping import SIZE
from harness.spec.pipeline import PipelineCell
from harness.spec.work import TAG, Cell
from harness.trial.engines import catalogue_of

_Cell = TypeVar("_Cell", CollectiveCell, PipelineCell)
OF_EXTENDING = {"mirrored_reversed", "reduction_to_host"}
"""The strategy and the op of the examples of docs/extending.md, beside which what holds of all names is tested, too."""
GRADIENT_BYTES = {"mlp": 4 * 669_706}
_CATALOGUE = load_catalogue()
CATALOGUE = replace(
    _CATALOGUE,
    gradient_bytes=lambda model, limit: GRADIENT_BYTES.get(model) or _CATALOGUE.gradient_bytes(model, limit),
)
"""It knows what this model sends: else each process of tests asks one that imports TensorFlow, as
`tests/engines/tensorflow/test_collectives.py` does."""
PLAIN: dict[str, Any] = {"model": "mlp", "optimizer": "sgd", "strategy": "none", "replicas": 1, "batch_size": 8}
COLLECTIVE: dict[str, Any] = {"work": "collective", "strategy": "mirrored", "replicas": 2, "size": "4KiB"}
KEYS_OF_COLLECTIVES = [key for key in CollectiveCell.model_fields if key != TAG]
OF_COLLECTIVES: Mapping[str, Axis] = {
    **TABLE,
    "collective": Axis(help="", tried=("all_reduce", "broadcast"), shown_by=PROGRAM),
    "size": Axis(help="", tried=("4KiB", "8KiB"), shown_by=("executed.pack_bytes",)),
    "gradients": Axis(help="", tried=("", "mlp"), shown_by=PROGRAM),
    "engine": replace(TABLE["engine"], tried=(ENGINE, "tests.engines.again:Again")),
    "strategy": replace(TABLE["strategy"], tried=("mirrored", "multi_worker_mirrored")),
    "replicas": replace(TABLE["replicas"], tried=(2, 3)),
}
"""What two collectives are tried by: the table's values, but of keys that it lacks and where one has nobody to send to.
A key that is added to both kinds of work is tried as the table says; one that collectives alone have needs an entry."""
PIPELINE: dict[str, Any] = {"work": "pipeline", "model": "mlp", "data": "wine", "batch_size": 8}
KEYS_OF_PIPELINES = [key for key in PipelineCell.model_fields if key not in (TAG, "tokens")]
"""All but the tokens of an example, which follow from the model."""
OF_PIPELINES: Mapping[str, Axis] = {
    **{
        key: replace(
            axis, tried_with={other: of for other, of in axis.tried_with.items() if other in KEYS_OF_PIPELINES}
        )
        for key, axis in TABLE.items()
        if key in KEYS_OF_PIPELINES
    },
    "batch_size": replace(TABLE["batch_size"], shown_by=INPUT),
    "model": replace(TABLE["model"], tried_with={"data": "digits"}),
    "data": replace(TABLE["data"], tried=("digits", "wine")),
    "cut": Axis(help="", tried=("", "shuffle"), shown_by=INPUT),
}
"""What two pipelines are tried by: the table's values, beside those keys that pipelines have, and other data than what
needs no pipeline. A pipeline has no traced program, so that its stages show what a training's program does."""


def asked(key: str, value: Any) -> dict[str, Any]:
    """The keys of a spec that ask for one value of a key."""
    if key not in TABLE or not TABLE[key].kinds:
        return {key: value}
    kind, _, count = value.partition("=")
    return {kind: int(count)}


def spec_of(key: str, value: Any) -> Sweep:
    """The spec of one training with `value` of the axis, beside what the entry tries it with."""
    return _spec(PLAIN, TABLE[key], key, value)


def _spec(plain: Mapping[str, Any], entry: Axis, key: str, value: Any) -> Sweep:
    with_it: dict[str, Any] = {}
    for other, of in entry.tried_with.items():
        with_it |= asked(other, of)
    return sweep_from({**plain, **with_it, **asked(key, value)})


def cell_of(sweep: Sweep) -> Cell:
    """The cell that `sweep` asks for; a strategy that TensorFlow lacks is its engine's."""
    [engine], lacked = sweep.asked("engine"), {*sweep.asked("strategy")} - CATALOGUE.strategies.keys()
    matrix = expand(sweep, catalogue_of(engine) if lacked else CATALOGUE)
    [cell] = [cell for cell in matrix.cells if cell.cell_id not in matrix.added_base]
    return cell


def only_cell(sweep: Sweep) -> TrainingCell:
    """The training that `sweep` asks for."""
    return trained(cell_of(sweep))


def pair_of(key: str) -> tuple[TrainingCell, TrainingCell]:
    """A cell at each of the entry's two values, equal in all else but the batch size that follows."""
    a, b = (only_cell(spec_of(key, value)) for value in TABLE[key].tried)
    differing = {name for name in TrainingCell.model_fields if getattr(a, name) != getattr(b, name)}
    assert key in differing <= {key, SIZE}, f"the two cells of '{key}' differ in {differing}"
    return a, b


def collectives_of(key: str) -> tuple[CollectiveCell, CollectiveCell]:
    """A collective at each of the two values of its key, equal in all else."""
    if key == "gradients":  # whose size follows: a buffer as large, and they
        of_model = cell_of(sweep_from({**{k: v for k, v in COLLECTIVE.items() if k != "size"}, GRADIENTS: "mlp"}))
        assert isinstance(of_model, CollectiveCell)
        return of_model.model_copy(update={key: ""}), of_model
    return _pair_of(CollectiveCell, COLLECTIVE, OF_COLLECTIVES[key], key)


def pipelines_of(key: str) -> tuple[PipelineCell, PipelineCell]:
    """An input pipeline at each of the two values of its key, equal in all else."""
    if key == "cut":  # which is asked for beside the whole
        whole = cell_of(sweep_from(PIPELINE))
        assert isinstance(whole, PipelineCell)
        return whole, whole.cut_behind(OF_PIPELINES[key].tried[1])
    return _pair_of(PipelineCell, PIPELINE, OF_PIPELINES[key], key)


def _pair_of(kind: type[_Cell], work: dict[str, Any], entry: Axis, key: str) -> tuple[_Cell, _Cell]:
    a, b = (cell_of(_spec(work, entry, key, value)) for value in entry.tried)
    assert isinstance(a, kind)
    assert isinstance(b, kind)
    differing = {name for name in kind.model_fields if a.get(name) != b.get(name)}
    assert differing == {key}, f"the two of {kind.__name__}'s '{key}' differ in {differing}"
    return a, b

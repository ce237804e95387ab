"""A cell under keras.distribution, as a trial sees it: built, trained by `Model.fit`, and open to the gate."""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.engines._on_jax.devices import set_up
from harness.engines._on_jax.executed import Program, inspect
from harness.engines._on_jax.model import Model, TrainedModel
from harness.engines._on_jax.recovery import OnJaxRecovering
from harness.engines._on_jax.reference import JaxShares
from harness.engines._on_jax.trainer import check
from harness.engines.keras_distribution.catalogue import TAKEN
from harness.engines.keras_distribution.instruments import jitted_without, refuse_what_no_sum_is_apart_in
from harness.engines.keras_distribution.loops import DistributionWay, loops
from harness.engines.keras_distribution.models import model_of
from harness.engines.keras_distribution.placement import apart, copies, laid_unasked
from harness.engines.keras_distribution.reference import forward_of
from harness.engines.keras_distribution.sums import summed
from harness.engines.keras_distribution.training import FitTraining
from harness.errors import Unsupported
from harness.protocol.engine import KnownStep, Pace
from harness.protocol.messages import Request
from harness.protocol.state import VariableState
from harness.record.explain import REDUCTION
from harness.record.trial import Executed
from harness.spec.axes import SYNTHETIC
from harness.spec.mesh import Mesh
from harness.trial.same_work.architectures import architectures
from harness.trial.same_work.batches import CLASSES
from harness.trial.same_work.catalogue import NONE
from harness.trial.same_work.instruments import Step
from harness.trial.same_work.optimizers import OPTIMIZERS
from harness.trial.same_work.state import State, StateOrder
from harness.trial.sums import judge_sums, known_values

if TYPE_CHECKING:
    from harness.protocol.state import Array


class KerasTrainer(OnJaxRecovering):
    """See `harness.protocol.engine.Trainer`."""

    title = "Keras"

    def __init__(self, request: Request) -> None:
        import keras
        import numpy as np

        check(request, self.title, TAKEN)
        cell = request.training
        self._request, self._cell, self._devices = request, cell, set_up(request)
        keras.distribution.set_distribution(self._distribution)
        architecture = architectures()[cell.model]
        self._data = self._data_made()
        weights = architecture.initial(np.random.default_rng(request.seed), CLASSES)
        statistics = architecture.statistics()
        self._layout = StateOrder(list(weights), list(statistics), OPTIMIZERS[cell.optimizer].slots, 0)
        first = self._layout.start(weights, statistics)
        x, y = self._placed(self._data.share_of(self._data.gate[0]))
        with laid_unasked():
            self._training = FitTraining(self._model, cell.optimizer, first, self._layout, x, y)

    @functools.cached_property
    def _distribution(self) -> Any:
        """The loop's, over all devices in the order of the replicas; no strategy has none."""
        cell = self._cell
        if cell.strategy == NONE:
            return None
        mesh = Mesh.parse(cell.mesh) if cell.mesh else Mesh(batch=cell.replicas_in_sync)
        return self._way.distribution([f"{device.platform}:{device.id}" for device in self._devices.devices], mesh)

    @property
    def _way(self) -> DistributionWay:
        return loops()[self._cell.loop]

    @property
    def _model(self) -> Any:
        """Its weights lie as the distribution has them; Unsupported where they cannot be cut into so many parts."""
        try:
            return model_of(self._cell.model, CLASSES)
        except ValueError as error:
            if "evenly divide" not in str(error):
                raise
            reason = str(error).partition("but ")[2] or str(error)
            raise Unsupported(f"mesh: {self._cell.mesh} does not cut '{self._cell.model}': {reason}") from None

    @property
    def _rows(self) -> "list[list[Any]]":
        """This process's devices, those of a replica together."""
        shards = self._cell.model_shards
        return [self._devices.own[at : at + shards] for at in range(0, len(self._devices.own), shards)]

    def _placed(self, share: "tuple[Array, Array]") -> tuple[Any, Any]:
        """This process's share of a batch as `fit` hands it to the step: with a distribution as that lays it, and
        without one as it is."""
        import jax
        from keras.src.backend.jax.trainer import _distribute_data

        if self._distribution is None and self._cell.data != SYNTHETIC:
            return share
        placed: tuple[Any, Any] = jax.device_put(share) if self._distribution is None else _distribute_data(share)
        return placed

    def _resident(self, share: "tuple[Array, Array]") -> tuple[Any, Any]:
        import jax

        placed: tuple[Any, Any] = jax.device_put(share) if self._distribution is None else self._placed(share)
        return placed

    @property
    def _arrays(self) -> Any:
        return self._training.arrays

    @property
    def _laid(self) -> State:
        return self._training.state()

    def check_reduction(self) -> str | None:
        """Whether the devices train together, and known values in the shapes of the gradients, by an update as any."""
        weights, n = self._training.state().weights, self._cell.replicas_in_sync
        if self._distribution is not None:
            x, _ = self._placed(self._data.share_of(self._data.gate[0]))
            if evidence := apart(weights, x, self._cell.global_batch_size // n, self._rows, self._first):
                return evidence
        sent, patterns = known_values(n, [(weight.shape, "float32") for weight in weights.values()])
        received = [copies(array, self._rows) for array in self._summed(self._rows_sent(sent, patterns))]
        return judge_sums(received, patterns, sent)

    def _summed(self, sent: "list[Array]") -> list[Any]:
        with laid_unasked():
            return summed(sent, [variable._layout for variable in self._training.model.trainable_variables])

    def state(self) -> list[VariableState]:
        """Every device's copy of what is whole there, and every replica's of what is cut."""
        return self._layout.captured(
            self._training.state(), lambda kind, array: copies(array, self._rows, each=kind != "statistic")
        )

    def updates(self) -> int:
        """As the optimizer counts them."""
        return int(self._training.state().updates)

    @functools.cached_property
    def _single(self) -> JaxShares:
        cell = self._cell
        model = Model(architectures()[cell.model], forward_of(cell.model, self._layout))
        replicas = self._devices.devices[:: cell.model_shards]
        trained = TrainedModel(model, OPTIMIZERS[cell.optimizer], replicas, cell.global_batch_size)
        return JaxShares(trained, self._layout, self._devices)

    def run(self, pace: Pace) -> None:
        """One call of `Model.fit`."""
        stays = self._cell.data == SYNTHETIC
        offered: Iterator[Any] = (self._data.batches if stays else self._fed)(lambda batch: batch)
        placed = self._fed(self._placed) if stays else None
        self._training.fit(pace, offered, placed, self._judged if self._instrument else None)

    @functools.cached_property
    def _whole(self) -> Program:
        batch = self._placed(self._data.share_of(self._data.gate[0]))
        return Program.of(self._training.jitted.lower(self._training.arrays, batch))

    def _step(self, x: Any, y: Any) -> Any:
        return self._training.step(iter([(x, y)]))["loss"]

    def _without(self, name: str) -> Step:
        """By what is jitted, as `fit` calls its own."""
        training, several = self._training, len(self._devices.devices) > 1
        refuse_what_no_sum_is_apart_in(name, self._cell.model_shards > 1, several and bool(self._layout.statistics))
        batch = self._resident(self._data.share_of(self._data.gate[0]))
        sent = (self._like_gradients(), batch[1]) if name == REDUCTION else None
        jitted = jitted_without(name, training.model, training.arrays, batch, several)
        self._instead = Program.of(jitted.lower(training.arrays, sent or batch))

        def step(x: Any, y: Any) -> Any:
            (metrics, _), training.arrays = jitted(training.arrays, sent or (x, y))
            return metrics["loss"]

        return step

    def _like_gradients(self) -> list[Any]:
        """Of each weight an array of its shape on every device, as rows of one that is cut over them as batches are."""
        import numpy as np
        from keras.src.backend.jax.trainer import _distribute_data

        own = self._cell.replicas
        placed: list[Any] = _distribute_data([np.zeros((own, *weight.shape), np.float32) for weight in self._weights])
        return placed

    def _go_back(self, arrays: Any) -> None:
        self._training.arrays = arrays

    def _known_step(self, batch: tuple[Any, Any]) -> KnownStep:
        """By what `fit` calls."""
        jitted = self._training.jitted
        programs = jitted._cache_size()
        loss = float(self._training.alone(self._placed(batch)))
        self.synchronise()
        return KnownStep(loss, same_program=jitted._cache_size() == programs)

    def executed(self) -> Executed:
        """The compiled program that is timed, and the input."""
        unlike = {} if self._distribution is None else self._way.unlike()
        for subject, words in self._data.unlike.items():
            unlike[subject] = f"{words}, and put on devices within the step"
        program = self._instead or self._whole
        return inspect(*program, self._data.stages, {**self._unlike, **unlike})

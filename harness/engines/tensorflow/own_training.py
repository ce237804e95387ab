"""What of Keras' training a model has its own of, a `train_step` or `compute_loss`, and where that can train it."""

from typing import Any

from harness.errors import Unsupported
from harness.protocol.messages import Request


def own_training(model: Any) -> str:
    """What of Keras' training a model's class has its own of: `train_step`, `compute_loss`; empty without any."""
    return " and ".join(_own_methods(model))


def brought_by(model: Any) -> list[str]:
    """The same of a model as its function made it, and `optimizer` where it is compiled with one."""
    return [*(["optimizer"] if has_its_optimizer(model) else []), *_own_methods(model)]


def has_its_optimizer(model: Any) -> bool:
    """Whether the model, which nobody but its function has compiled, is so with an optimizer."""
    return bool(model.compiled) and model.optimizer is not None


def _own_methods(model: Any) -> list[str]:
    return [name for name in ("train_step", "compute_loss") if has_its_own(model, name)]


def has_its_own(model: Any, name: str) -> bool:
    """Whether the model's class has its own of a method of keras.Model."""
    import keras

    return getattr(type(model), name) is not getattr(keras.Model, name)


def must_have_a_place(request: Request, own: str) -> None:
    """Raises Unsupported where nothing calls a model's `own` train_step or compute_loss; it may have none."""
    cell = request.training
    if not own:
        return
    has = f"the model has its own {own}"
    if cell.asynchronous or cell.mesh:
        raise Unsupported(
            f"strategy '{cell.strategy}': {has}, and there the harness makes the updates itself; use --strategy "
            "mirrored, or multi_worker_mirrored"
        )
    if cell.micro_batches > 1:
        raise Unsupported(
            f"micro_batches: {has}, in which forward, backward and update are one; use --micro-batches 1, or cut the "
            "batch there"
        )
    if cell.xla and cell.loop != "fit":
        raise Unsupported(
            f"xla: {has}, in which forward, backward and update are one, and loop '{cell.loop}' compiles forward and "
            "backward alone; use --loop fit, or --xla false"
        )

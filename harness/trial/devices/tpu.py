"""TPU cores through TensorFlow's TPUClusterResolver."""

import concurrent.futures
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.spec.catalogue import DeviceTraits
from harness.trial.devices.base import DeviceKind, Devices, Unsupported, set_threads

if TYPE_CHECKING:
    from harness.trial.protocol import Request

LOCAL_DEVICES = (Path("/dev/accel0"), Path("/dev/vfio/0"))
CONNECT_LIMIT_S = 30.0
"""A resolver that asks a metadata server that is not there would wait far longer."""


class Tpu(DeviceKind):
    """A TPU belongs to one process at a time, so one trial is alive at a time."""

    traits = DeviceTraits("tpu", "TPU cores, found by TPUClusterResolver(tpu=…)", live_trials=1)

    def available(self) -> str | None:
        """None where the resolver finds a TPU."""
        try:
            connect("local")
        except Unsupported as error:
            return str(error)
        return None

    def set_up(self, request: "Request") -> Devices:
        """Connect, initialise the TPU system and list its cores."""
        import tensorflow as tf

        set_threads(request)
        resolver, topology = connect(request.tpu)
        names = tuple(device.name for device in tf.config.list_logical_devices("TPU"))
        if request.cell.replicas > len(names):
            raise Unsupported(
                f"{request.cell.replicas} replicas need as many TPU cores, and TensorFlow finds {len(names)}"
            )
        taken = names[: request.cell.replicas]
        return Devices(taken, physical=len(names), shared=False, resolver=resolver, topology=topology)


def connect(tpu: str) -> tuple[Any, Any]:
    """The resolver and topology of `tpu` (`local`, a name, or an address), initialised.

    Raises Unsupported with the reason, after at most CONNECT_LIMIT_S seconds.
    """
    if tpu == "local" and not any(path.exists() for path in LOCAL_DEVICES):
        raise Unsupported(
            "TensorFlow finds no TPU: this machine has no TPU device (/dev/accel0 or /dev/vfio/0), "
            "and tpu is 'local'; name one with --tpu"
        )
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    future = pool.submit(_connect, tpu)
    try:
        return future.result(timeout=CONNECT_LIMIT_S)
    except concurrent.futures.TimeoutError:
        raise Unsupported(f"no TPU answered for '{tpu}' within {CONNECT_LIMIT_S:.0f} s") from None
    except _tpu_errors() as error:
        raise Unsupported(f"TensorFlow finds no TPU '{tpu}': {str(error).splitlines()[0]}") from error
    finally:
        pool.shutdown(wait=False)


def _connect(tpu: str) -> tuple[Any, Any]:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
    if tpu not in ("local", ""):
        tf.config.experimental_connect_to_cluster(resolver)
    return resolver, tf.tpu.experimental.initialize_tpu_system(resolver)


def _tpu_errors() -> tuple[type[BaseException], ...]:
    import tensorflow as tf

    return (ValueError, RuntimeError, OSError, ImportError, tf.errors.OpError)


DEVICE = Tpu()

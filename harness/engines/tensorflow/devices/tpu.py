"""TPU cores through TensorFlow's TPUClusterResolver."""

import concurrent.futures
import re
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.tensorflow.devices.base import DeviceKind, Devices, set_threads
from harness.errors import Unsupported
from harness.spec.catalogue import DeviceTraits

if TYPE_CHECKING:
    from harness.protocol.messages import Request

LOCAL_DEVICES = (Path("/dev/accel0"), Path("/dev/vfio/0"))
CONNECT_LIMIT_S = 30.0
"""How long a trial waits for a TPU: TensorFlow would wait far longer for one that is not there, or without end."""
_ADDRESS = re.compile(r"(?:grpc://)?(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})", re.ASCII)


_HELD = re.compile(r"\bin use\b|lockfile|\bunavailable\b", re.IGNORECASE)
"""What libtpu says while another process has the chip."""


def is_local() -> bool:
    """Whether this machine has a TPU of its own."""
    return any(path.exists() for path in LOCAL_DEVICES)


class Tpu(DeviceKind):
    """A TPU belongs to one process at a time, so one trial is alive at a time.

    Where the TPU is this machine's own, importing TensorFlow may take it: no process that outlives a trial may.
    """

    traits = DeviceTraits(
        "tpu", "TPU cores, found by TPUClusterResolver(tpu=…)", live_trials=1, taken_by_import=is_local()
    )

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
        resolver, topology = connect(request.tpu, min(CONNECT_LIMIT_S, request.others_limit_s))
        names = tuple(device.name for device in tf.config.list_logical_devices("TPU"))
        if request.cell.shape.replicas > len(names):
            raise Unsupported(
                f"{request.cell.shape.replicas} replicas need as many TPU cores, and TensorFlow finds {len(names)}"
            )
        taken = names[: request.cell.shape.replicas]
        return Devices(taken, physical=len(names), shared=False, resolver=resolver, topology=topology)


def connect(tpu: str, limit_s: float = CONNECT_LIMIT_S) -> tuple[Any, Any]:
    """The resolver and topology of `tpu` (`local`, a name, or an address), initialised.

    An address is `host:port`, with or without `grpc://` before it; anything else is a name, which TensorFlow looks
    up at Google Cloud's metadata server. Raises Unsupported with the reason, after at most `limit_s` seconds; one that
    may pass where nothing answers in time or another process has the chip.
    """
    if tpu == "local" and not is_local():
        raise Unsupported(
            "TensorFlow finds no TPU: this machine has no TPU device (/dev/accel0 or /dev/vfio/0), "
            "and tpu is 'local'; name one with --tpu"
        )
    until = time.monotonic() + limit_s
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=1)
    try:
        if address := _ADDRESS.fullmatch(tpu):
            pool.submit(_reach, address["host"], int(address["port"]), limit_s).result(limit_s)
            tpu = f"grpc://{address['host']}:{address['port']}"
        return pool.submit(_connect, tpu).result(max(0.0, until - time.monotonic()))
    except concurrent.futures.TimeoutError:
        raise Unsupported(f"no TPU answered for '{tpu}' within {limit_s:g} s", may_pass=True) from None
    except _NoAnswer as error:
        raise Unsupported(f"no TPU at '{tpu}': {error}", may_pass=True) from None
    except _tpu_errors() as error:
        named = "" if address or tpu == "local" else "; a name is looked up at Google Cloud's metadata server"
        held = bool(_HELD.search(str(error)))
        reason = f"TensorFlow finds no TPU '{tpu}': {str(error).splitlines()[0]}{named}"
        raise Unsupported(reason, may_pass=held) from error
    finally:
        pool.shutdown(wait=False)


class _NoAnswer(Exception):
    """Nothing answers at an address."""


def _reach(host: str, port: int, limit_s: float) -> None:
    """See that something listens there: TensorFlow itself would wait without end, and say nothing."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=limit_s).close()
    except TimeoutError:
        raise _NoAnswer(f"nothing answers within {limit_s:g} s") from None
    except OSError as error:
        raise _NoAnswer(error.strerror or str(error)) from None


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

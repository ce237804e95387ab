"""How the processes of a trial join each other by JAX's coordinator, which is in the first of them."""

import contextlib
import os
import socket
import time
from collections.abc import Collection

from harness.protocol.messages import Membership
from harness.spec.address import split_address
from harness.trial.membership import LOOK_S
from harness.trial.same_work.meeting import meet, place


def join(member: Membership, limit_s: float) -> None:
    """Meet the other processes at the first one's address; returns when all are there.

    HarnessError that names who is missing after `limit_s`, or the address that somebody else has: JAX's coordinator
    waits for five minutes, and knows no names.
    """
    import jax

    addresses = member.cluster[member.task]
    if (listening := meet(member, limit_s)) is not None:
        listening.close()  # JAX listens there itself
    else:
        wait_for_coordinator(*place(member, 0), limit_s)
    without_proxy({split_address("address", address)[0] for address in addresses})
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(addresses[0], len(addresses), member.index)


def without_proxy(hosts: Collection[str]) -> None:
    """Let gRPC go to these hosts straight, where the environment names a proxy, which would know no way to them. It
    reads the second variable in place of the first, where that is set."""
    for name in ("no_proxy", *(["no_grpc_proxy"] if "no_grpc_proxy" in os.environ else [])):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), *sorted(hosts)]))


def wait_for_coordinator(host: str, port: int, limit_s: float) -> None:
    """Return once who listens there speaks first, as gRPC's servers do, or after `limit_s`: JAX then says what is
    wrong. A client of gRPC that comes before its server asks again after a second.

    That somebody listens is not enough: the socket that processes met at may not be closed yet.
    """
    end = time.monotonic() + limit_s
    while (left := end - time.monotonic()) > 0:
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=left) as connection:
            connection.settimeout(max(LOOK_S, end - time.monotonic()))
            if connection.recv(1):
                return
        time.sleep(LOOK_S)

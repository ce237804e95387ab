"""A network of one host's own loopback: what listens there, nobody outside can reach."""

import contextlib
from collections.abc import Iterator

from harness.run.network.held import Held, Host, NotAvailable

ADDRESS = "127.0.0.1"


@contextlib.contextmanager
def private_loopback() -> Iterator[Host]:
    """A network namespace with nothing but a loopback, for as long as the context lasts.

    Root gets one as it is, anybody else one in a user namespace, which members join first, each staying who they
    are. NotAvailable where the kernel, or the container's rules, refuse both.
    """
    held = _made()
    try:
        yield held.host(ADDRESS)
    finally:
        held.close()


def loopback_available() -> str | None:
    """Why there is no private loopback here, or None; tried, which takes less than 0.1 s."""
    try:
        _made().close()
    except NotAvailable as error:
        return str(error)
    return None


def _made() -> Held:
    """A namespace without a user namespace if that is allowed, else with one."""
    try:
        return _ready(Held())
    except NotAvailable:
        return _ready(Held(as_user=True))


def _ready(held: Held) -> Held:
    try:
        held.wait()
    except BaseException:
        held.close()
        raise
    return held

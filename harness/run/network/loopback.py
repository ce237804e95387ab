"""A network of one host's own loopback: what listens there, nobody outside can reach."""

from harness.run.network.namespace import Namespace, NetworkError, NotAvailable

ADDRESS = "127.0.0.1"


class PrivateLoopback:
    """A network namespace with nothing but a loopback, for as long as this is open.

    Root gets one as it is, anybody else one in a user namespace, which members join first, each staying who they
    are. NotAvailable where the kernel, or the container's rules, refuse both. Make it in a thread that lives as
    long as it shall.
    """

    def __init__(self) -> None:
        try:
            self._namespace = _ready(Namespace())
        except NotAvailable:
            self._namespace = _ready(Namespace(as_user=True))
        self.hosts = [self._namespace.host(ADDRESS)]

    @property
    def there(self) -> bool:
        """Whether the process that holds the namespace lives."""
        return self._namespace.alive

    @property
    def intact(self) -> bool:
        """Whether it is as it was made: nothing about a loopback changes."""
        return self.there

    def close(self) -> None:
        """End the process that holds the namespace. May be called again."""
        self._namespace.close()


def loopback_available() -> str | None:
    """Why there is no private loopback here, or None; tried, which takes less than 0.1 s."""
    try:
        PrivateLoopback().close()
    except NetworkError as error:
        return str(error)
    return None


def _ready(made: Namespace) -> Namespace:
    try:
        made.wait()
    except BaseException:
        made.close()
        raise
    return made

"""Networks that outlive a trial: built once for a run, used by one trial at a time, gone with the run."""

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.run.network.emulated import EmulatedNetwork, LinkSpeed
from harness.run.network.loopback import PrivateLoopback
from harness.run.network.namespace import NetworkHost
from harness.spec.network import Network

FIRST_PORT = 2222
"""What TensorFlow's own examples use. Nobody else is in these namespaces, so no port needs to be looked for."""
PORTS = 20_000
"""After so many ports the first is used again; below the range that the kernel gives to clients."""


@dataclass(eq=False)
class Ground:
    """Namespaces for the processes of one trial: a host each on an emulated network, or one loopback for all."""

    made: EmulatedNetwork | PrivateLoopback
    asked: tuple[str, int] = ("", 1)
    """The canonical text of the network and its hosts: who asks for the same may have it next. Empty is a loopback."""
    measured: LinkSpeed | None = None
    cables: EmulatedNetwork | None = None
    """`made`, where it has cables that can be pulled."""
    _next_port: int = field(default=0, repr=False)

    @property
    def hosts(self) -> Sequence[NetworkHost]:
        """One for every process, or one for all."""
        return self.made.hosts

    def addresses(self, count: int) -> list[tuple[NetworkHost, str]]:
        """(host, `address:port`) for each of `count` processes; no trial before this one used these ports."""
        places = []
        for number in range(count):
            host = self.hosts[number % len(self.hosts)]
            places.append((host, f"{host.address}:{FIRST_PORT + self._next_port % PORTS}"))
            self._next_port += 1
        return places


class Grounds:
    """The grounds of a run. A trial takes one that nobody uses, or a new one, and gives it back.

    Close it in the end; processes that it holds end with this one, or with the thread that took the ground first.
    """

    def __init__(self) -> None:
        self._idle: defaultdict[tuple[str, int], list[Ground]] = defaultdict(list)
        self._used: list[Ground] = []

    def network(self, text: str, hosts: int) -> Ground:
        """A network, by its canonical text. A new one is measured first. NetworkError, of any kind, is the reason."""
        ground = self._taken(text, hosts)
        if ground is None:
            with contextlib.ExitStack() as stack:
                made = stack.enter_context(EmulatedNetwork(Network.parse(text), hosts))
                ground = Ground(made, (text, hosts), made.measure(), cables=made)
                stack.pop_all()
            self._used.append(ground)
        return ground

    def loopback(self) -> Ground:
        """A loopback of its own. NotAvailable where the kernel refuses, TooSlow."""
        ground = self._taken("", 1)
        if ground is None:
            ground = Ground(PrivateLoopback())
            self._used.append(ground)
        return ground

    def give_back(self, ground: Ground) -> None:
        """What is as it was made is kept for the next trial, anything else is closed. May be called again."""
        if ground not in self._used:
            return
        self._used.remove(ground)
        if ground.made.intact:
            self._idle[ground.asked].append(ground)
        else:
            ground.made.close()

    def close(self) -> None:
        """Give up all of them, those in use too. May be called again."""
        for ground in [*self._used, *(ground for idle in self._idle.values() for ground in idle)]:
            ground.made.close()
        self._used.clear()
        self._idle.clear()

    def _taken(self, text: str, hosts: int) -> Ground | None:
        idle = self._idle[text, hosts]
        while idle:
            ground = idle.pop()
            if ground.made.intact:
                self._used.append(ground)
                return ground
            ground.made.close()
        return None

"""Several hosts on one machine: a network namespace each, on one switch, over links of a given speed and length."""

import os
import shutil
import sys
from pathlib import Path
from types import TracebackType

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.run.network.namespace import PROGRAMS, PYTHON, Namespace, NetworkError, NetworkHost, NotAvailable, TooSlow
from harness.run.network.shaping import segment_bytes, shaped
from harness.spec.network import Network

SUBNET = "10.77.0"
"""Private addresses; every network is alone in its namespaces, so all may have the same."""
MOST_HOSTS = 250
MEASURE_LIMIT_S = 20.0
ROUND_TRIPS = 40
"""That measuring waits for, at most, with what TCP sends again."""
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""Those that are loaded; the kernel loads others when they are asked for."""
INSTALL = "install iproute2 (Debian, Ubuntu, Alpine: iproute2; Fedora: iproute and iproute-tc)"
_PLACES = os.pathsep.join(("/usr/sbin", "/sbin", "/usr/bin", "/bin"))
"""Where the tools are when the search path does not say so."""


class LinkSpeed(BaseModel):
    """What a network turned out to be, seen by TCP between its first two hosts."""

    model_config = ConfigDict(frozen=True)

    round_trip_s: float
    """Median of messages of 64 bytes, there and back."""
    bandwidth_bits_per_s: float
    """Content that one connection carried a second; headers of Ethernet, IP and TCP take 4 to 5 % of a rate."""
    congestion_control: str
    """What TCP on the hosts uses."""


class EmulatedNetwork:
    """`hosts` hosts on one switch, built when this is made and gone when it is closed, or when this process ends.

    Nothing has a name outside of the processes that hold it, so that nothing is left even after `kill -9`.
    NotAvailable says why it cannot be built here. Make it in a thread that lives as long as it shall.
    """

    def __init__(self, network: Network, hosts: int) -> None:
        if reason := _lacking():
            raise NotAvailable(reason)
        if not 1 <= hosts <= MOST_HOSTS:
            raise NotAvailable(f"a network of {hosts} hosts: expected 1 to {MOST_HOSTS}")
        self.network = network
        self._switch = Namespace()
        self._holders: list[Namespace] = []
        self._was_cut = False
        try:
            # All start side by side; none is waited for before the last is started.
            for _ in range(hosts):
                self._holders.append(Namespace())
            for holder in (self._switch, *self._holders):
                holder.wait()
            self._connect()
        except NetworkError as error:
            self.close()
            raise error if isinstance(error, TooSlow) else NotAvailable(str(error)) from None
        except BaseException:
            self.close()
            raise
        self.hosts: list[NetworkHost] = [holder.host(_address(index)) for index, holder in enumerate(self._holders)]

    def __enter__(self) -> "EmulatedNetwork":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def intact(self) -> bool:
        """Whether it is there, and no cable was ever pulled."""
        return self.there and not self._was_cut

    @property
    def there(self) -> bool:
        """Whether every namespace is there, with its relay if it has one."""
        return all(holder.alive for holder in (self._switch, *self._holders))

    def measure(self) -> LinkSpeed:
        """Round trip, bandwidth and congestion control between the first two hosts, in about a second.

        NetworkError with fewer than two hosts, or when they do not reach each other.
        """
        if len(self._holders) < 2:
            raise NetworkError("a network of one host has no round trip to measure")
        one, other = self._holders[:2]
        program = (*PYTHON, str(PROGRAMS / "probe.py"))
        address = self.hosts[1].address
        limit_s = MEASURE_LIMIT_S + ROUND_TRIPS * 2 * self.network.delay
        port = other.start(*program, "serve", address)
        try:
            return LinkSpeed.model_validate_json(one.run(*program, "measure", address, port, limit_s=limit_s))
        except ValidationError as error:
            raise NetworkError(f"the network could not be measured: {error.errors()[0]['msg']}") from None

    def cut(self, host: int) -> None:
        """Pull the cable of a host, by its index: what it sends and is sent is lost, and nobody is told."""
        self._was_cut = True
        self._switch.run(_tool("ip"), "link", "set", _port(range(len(self.hosts))[host]), "down")

    def restore(self, host: int) -> None:
        """Plug the cable of a host in again."""
        self._switch.run(_tool("ip"), "link", "set", _port(range(len(self.hosts))[host]), "up")

    def close(self) -> None:
        """End the processes that hold the namespaces, and with them all that was in these. May be called again."""
        for holder in (self._switch, *self._holders):
            holder.hang_up()
        for holder in (self._switch, *self._holders):
            holder.close()

    def _connect(self) -> None:
        """Links, the switch between them, their speed and their length."""
        ports = [_port(index) for index in range(len(self._holders))]
        lines = [
            f"link add {port} type veth peer name eth0 address {_hardware(index)} netns {holder.pid}"
            for index, (port, holder) in enumerate(zip(ports, self._holders, strict=True))
        ]
        if not self.network.delay:
            lines += ["link add switch type bridge", "link set switch up"]
            lines += [f"link set {port} master switch" for port in ports]
        lines += [f"link set {port} up" for port in ports]
        self._batch(self._switch, "ip", lines)
        for index, holder in enumerate(self._holders):
            self._batch(holder, "ip", [f"address add {_address(index)}/24 dev eth0", "link set eth0 up"])
            if self.network.congestion:
                self._govern(holder, _address(index))
        if self.network.rate is not None:
            self._shape(ports, self.network.rate)
        if self.network.delay:
            behind = [f"{port}={_hardware(index)}" for index, port in enumerate(ports)]
            microseconds = str(round(self.network.delay * 1e6))
            self._switch.start(*PYTHON, str(PROGRAMS / "relay.py"), microseconds, *behind, vital=True)

    def _govern(self, holder: Namespace, address: str) -> None:
        """By the route: as its default a namespace may only have what unprivileged programs may take as well."""
        to_all = f"{SUBNET}.0/24 dev eth0 proto kernel scope link src {address}"
        try:
            self._batch(holder, "ip", [f"route replace {to_all} congctl {self.network.congestion}"])
        except TooSlow:
            raise
        except NetworkError as error:
            there = ", ".join(sorted(CONGESTION_CONTROLS.read_text().split()))
            raise NotAvailable(
                f"congestion={self.network.congestion} cannot be had ({error}); here are {there}"
            ) from None

    def _shape(self, ports: list[str], rate: int) -> None:
        """The same rate from every host to the switch and from the switch to every host."""
        self._batch(self._switch, "tc", [shaped(port, rate) for port in ports])
        for holder in self._holders:
            self._batch(holder, "tc", [shaped("eth0", rate)])
            self._batch(holder, "ip", [f"link set eth0 gso_max_size {segment_bytes(rate)}"])

    @staticmethod
    def _batch(holder: Namespace, tool: str, lines: list[str]) -> None:
        holder.run(_tool(tool), "-batch", "-", text="".join(f"{line}\n" for line in lines))


def available() -> str | None:
    """Why networks cannot be emulated here, or None. It builds a small one, which takes about 0.2 s."""
    try:
        EmulatedNetwork(Network(rate=10**9), hosts=1).close()
    except NetworkError as error:
        return str(error)
    return None


def _lacking() -> str | None:
    """What is missing here, as far as looking tells."""
    if sys.platform != "linux":
        return "emulated networks are made of Linux network namespaces"
    if os.geteuid() != 0:
        return "emulated networks need root, who alone may make links between network namespaces"
    missing = [tool for tool in ("ip", "tc") if not _found(tool)]
    return f"no program {' and no program '.join(missing)}: {INSTALL}" if missing else None


def _found(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path=_PLACES)


def _tool(name: str) -> str:
    """The path of a program that `_lacking` has looked for."""
    path = _found(name)
    if path is None:
        raise NotAvailable(f"no program {name}: {INSTALL}")
    return path


def _port(index: int) -> str:
    """The switch's end of a host's link."""
    return f"port{index}"


def _address(index: int) -> str:
    return f"{SUBNET}.{index + 1}"


def _hardware(index: int) -> str:
    """A locally administered hardware address."""
    return f"02:00:00:00:00:{index + 1:02x}"

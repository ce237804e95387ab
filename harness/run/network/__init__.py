"""Hosts on one machine that leave nothing behind: network namespaces that live as long as a process does."""

from harness.run.network.emulated import EmulatedNetwork, LinkSpeed, available
from harness.run.network.loopback import PrivateLoopback, loopback_available
from harness.run.network.namespace import NetworkError, NetworkHost, NotAvailable, TooSlow
from harness.run.network.pool import Ground, Grounds

__all__ = [
    "EmulatedNetwork",
    "Ground",
    "Grounds",
    "LinkSpeed",
    "NetworkError",
    "NetworkHost",
    "NotAvailable",
    "PrivateLoopback",
    "TooSlow",
    "available",
    "loopback_available",
]

"""Hosts on one machine that leave nothing behind: network namespaces that live as long as a process does."""

from harness.run.network.emulated import EmulatedNetwork, Measured, available
from harness.run.network.held import Host, NetworkError, NotAvailable
from harness.run.network.loopback import loopback_available, private_loopback

__all__ = [
    "EmulatedNetwork",
    "Host",
    "Measured",
    "NetworkError",
    "NotAvailable",
    "available",
    "loopback_available",
    "private_loopback",
]

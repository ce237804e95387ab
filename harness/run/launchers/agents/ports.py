"""Ports that nobody else is given while a trial has them."""

import socket


def reserve_ports(host: str, count: int, base: int = 0) -> list[socket.socket]:
    """Sockets bound to `count` free ports, or to those from `base` on; OSError when one is taken.

    They never listen. TensorFlow's server binds the port besides (SO_REUSEPORT), and nobody else is given it.
    """
    sockets: list[socket.socket] = []
    try:
        for offset in range(count):
            taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            sockets.append(taken)
            if base and _is_taken(host, base + offset):
                raise OSError(f"port {base + offset} is in use")
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            taken.bind((host, base + offset if base else 0))
    except OSError:
        close_all(sockets)
        raise
    return sockets


def close_all(sockets: list[socket.socket]) -> None:
    """Give the ports back."""
    for taken in sockets:
        taken.close()


def _is_taken(host: str, port: int) -> bool:
    """Whether anybody has the port: with SO_REUSEPORT alone, the same user could bind it twice."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return True
    return False

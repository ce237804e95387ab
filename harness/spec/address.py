"""`HOST:PORT` as text."""

from harness.errors import UsageError

LARGEST_PORT = 65535
LONGEST_NAME = 253
"""Characters of a host's name (RFC 1035)."""


def split_address(key: str, text: str, needs_port: bool = False) -> tuple[str, int | None]:
    """Host and port of `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`; UsageError names `key`."""
    expected = "HOST:PORT, such as 10.0.0.1:7000" + ("" if needs_port else ", or HOST alone")
    wrong = UsageError(f"{key}: given {text!r}, expected {expected}")
    text = text.strip()
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise wrong
        port_text = rest[1:] if rest else None
    elif text.count(":") > 1:
        host, port_text = text, None
    else:
        host, colon, after = text.partition(":")
        port_text = after if colon else None
    if not host or any(character.isspace() or not character.isprintable() for character in host):
        raise wrong
    if (fault := _no_name(host)) is not None:
        raise UsageError(f"{wrong}: {fault}")
    if port_text is None:
        if needs_port:
            raise wrong
        return host, None
    if not port_text.isascii() or not port_text.isdigit() or int(port_text) > LARGEST_PORT:
        raise wrong
    return host, int(port_text)


def host_alone(key: str, text: str) -> str:
    """The host of `HOST` or `[IPV6]`, to which no port belongs; UsageError names `key`."""
    host, port = split_address(key, text)
    if port is not None:
        raise UsageError(f"{key}: given {text!r}, expected HOST alone: each process has a port of its own")
    return host


def _no_name(host: str) -> str | None:
    """Why no resolver takes `host` for a name, or None; Python's own raises UnicodeError for most of it."""
    try:
        length = len(host.encode("idna"))
    except UnicodeError:
        return "each part of a name between dots has 1 to 63 characters"
    return f"a name has at most {LONGEST_NAME} characters" if length > LONGEST_NAME else None


def joined(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

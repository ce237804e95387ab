"""`HOST:PORT` as text."""

from harness.errors import UsageError

LARGEST_PORT = 65535


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
    if port_text is None:
        if needs_port:
            raise wrong
        return host, None
    if not port_text.isascii() or not port_text.isdigit() or int(port_text) > LARGEST_PORT:
        raise wrong
    return host, int(port_text)


def joined(host: str, port: int) -> str:
    """`host:port`, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

"""Addresses as text: one canonical form for each, through the C library (`ipaddress` costs time to import)."""

import functools
import socket

DEFAULT_DESTINATION = {4: "0.0.0.0/0", 6: "::/0"}
"""Destination of a default route by family."""


def family_of(address: str) -> int:
    """4 or 6, of an address or CIDR that is one."""
    return 6 if ":" in address else 4


def canonical_address(text: object) -> str | None:
    """The address in canonical form; None if the text is no address."""
    return _canonical(text) if isinstance(text, str) else None


@functools.lru_cache(maxsize=256)  # gateways and name servers are the same for many pods
def _canonical(text: str) -> str | None:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, text))
    except (OSError, ValueError):
        return None


def canonical_cidr(text: object) -> str | None:
    """The CIDR with its address in canonical form; None if the text is no CIDR."""
    if not isinstance(text, str):
        return None
    address_text, _, length = text.partition("/")
    address = canonical_address(address_text)
    if address is None or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > (32 if family_of(address) == 4 else 128):
        return None
    return f"{address}/{int(length)}"


def is_unspecified(address: str) -> bool:
    """Whether it is `0.0.0.0` or `::`, in canonical form."""
    return address in ("0.0.0.0", "::")

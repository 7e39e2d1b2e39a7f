"""Canonical text form of addresses, through the C library: importing `ipaddress` takes too long."""

import functools
import socket

DEFAULT_DESTINATION = {4: "0.0.0.0/0", 6: "::/0"}
"""Destination of a default route by family."""

FULL_LENGTH = {4: 32, 6: 128}
"""Prefix length of a single address by family."""


def family_of(address: str) -> int:
    """Returns 4 or 6 for a valid address or CIDR."""
    return 6 if ":" in address else 4


def canonical_address(text: object) -> str | None:
    """Returns the address in canonical form, None if it is not an address."""
    return _canonical(text) if isinstance(text, str) else None


@functools.lru_cache(maxsize=256)  # many pods have the same gateways and name servers
def _canonical(text: str) -> str | None:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, text))
    except (OSError, ValueError):
        return None


def canonical_cidr(text: object) -> str | None:
    """Returns the CIDR with its address in canonical form, None if it is not a CIDR."""
    if not isinstance(text, str):
        return None
    address_text, _, length = text.partition("/")
    address = canonical_address(address_text)
    if address is None or not (length.isascii() and length.isdigit()):
        return None
    if int(length) > (32 if family_of(address) == 4 else 128):
        return None
    return f"{address}/{int(length)}"


def network_of(address: str, length: int) -> str:
    """Returns the CIDR of the network of a valid address and prefix length."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    host_bits = len(packed) * 8 - length
    network = (int.from_bytes(packed, "big") >> host_bits << host_bits).to_bytes(len(packed), "big")
    return f"{socket.inet_ntop(family, network)}/{length}"


def is_unspecified(address: str) -> bool:
    """Returns whether the address, in canonical form, is `0.0.0.0` or `::`."""
    return address in ("0.0.0.0", "::")

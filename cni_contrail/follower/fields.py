"""Values in the agent's desired state, strictly validated: each function raises ValueError or TypeError."""

from __future__ import annotations

from typing import Any

from cni_contrail.addresses import canonical_address, canonical_cidr
from cni_contrail.link.links import packed_mac
from cni_contrail.quoting import quoted


def address(value: object) -> str:
    """Returns an IPv4 or IPv6 address in canonical form."""
    found = canonical_address(text(value))
    if found is None:
        raise ValueError(f"an address must be one of IPv4 or IPv6, not {quoted(value)}")
    return found


def cidr(value: object) -> str:
    """Returns a network in canonical form."""
    found = canonical_cidr(value)
    if found is None:
        raise ValueError(f"a network must be a CIDR, not {quoted(value)}")
    return found


def mac(value: object) -> str:
    """Returns a MAC address in lower case."""
    return packed_mac(text(value)).hex(":")


def number(value: object, key: str, allowed: range) -> int:
    """Returns a whole number in the range."""
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{key} must be a whole number from {allowed[0]} to {allowed[-1]}, not {quoted(value)}")
    return value


def flag(value: object, key: str) -> bool:
    """Returns true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{key} must be true or false, not {quoted(value)}")
    return value


def items(value: object) -> list[Any]:
    """Returns a list."""
    if not isinstance(value, list):
        raise TypeError(f"must be a list, not {quoted(value)}")
    return value


def text(value: object) -> str:
    """Returns a string."""
    if not isinstance(value, str):
        raise TypeError(f"must be a string, not {quoted(value)}")
    return value

"""Addresses as text and as ints: text where people and the wire see them, ints where they are counted."""

import ipaddress


def parse_address(text: str, *, family: int) -> int:
    """The address as an int. Raises ValueError if the text is no address, without prefix, of the family (4 or 6)."""
    kind = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    try:
        return int(kind(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv{family} address") from error


def format_address(address: int, *, family: int) -> str:
    """The address in canonical form: dotted, or RFC 5952 for IPv6."""
    return str(ipaddress.IPv4Address(address) if family == 4 else ipaddress.IPv6Address(address))


def family_of(text: str) -> int:
    """Family, 4 or 6, of an address or CIDR that is known to be one."""
    return 6 if ":" in text else 4

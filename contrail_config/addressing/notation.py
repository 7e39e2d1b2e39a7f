"""Conversion of addresses between text (wire, users) and ints (arithmetic)."""

import ipaddress


def parse_address(text: str, *, family: int) -> int:
    """Returns the address as an int. Raises ValueError unless the text is an address of the family, without prefix."""
    kind = ipaddress.IPv4Address if family == 4 else ipaddress.IPv6Address
    try:
        return int(kind(text))
    except ValueError as error:
        raise ValueError(f"{text[:200]!r} is not an IPv{family} address") from error


def format_address(address: int, *, family: int) -> str:
    """Returns the address in canonical form: dotted decimal, or RFC 5952 for IPv6."""
    return str(ipaddress.IPv4Address(address) if family == 4 else ipaddress.IPv6Address(address))


def family_of(text: str) -> int:
    """Returns the family (4 or 6) of a valid address or CIDR."""
    return 6 if ":" in text else 4

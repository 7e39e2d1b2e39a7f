"""Bounds of a subnet: which addresses can be allocated, and why the others cannot.

IPv4: the network and the broadcast address are reserved, except in a /31 (RFC 3021) and a /32, which have neither.
IPv6: the subnet-router anycast address (RFC 4291, section 2.6.1) is reserved, except in a /127 (RFC 6164) and a /128,
which have none; there is no broadcast address.
"""

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from contrail_config.addressing.notation import Cidr, format_address, parse_address, parse_cidr
from contrail_config.objects import Subnet

_EXCLUDED: Final = "it is excluded"


class SubnetBounds(msgspec.Struct, frozen=True):
    """A subnet as ints, `first` to `last` inclusive, and its addresses that are never allocated.

    `reserved` maps single addresses to the reason; `excluded` are disjoint, non-adjacent ranges (first, last).
    """

    cidr: str
    prefix_length: int
    first: int
    last: int
    gateway: str | None
    reserved: Mapping[int, str]
    excluded: tuple[tuple[int, int], ...]

    def __contains__(self, address: int) -> bool:
        return self.first <= address <= self.last

    @property
    def capacity(self) -> int:
        """Number of addresses that can be allocated."""
        excluded = sum(last - first + 1 for first, last in self.excluded)
        reserved = sum(self.exclusion_end(address) is None for address in self.reserved)
        return self.last - self.first + 1 - excluded - reserved

    def unavailable_reason(self, address: int) -> str | None:
        """Returns why an address of the subnet is never allocated; None if it can be."""
        if address in self.reserved:
            return self.reserved[address]
        return None if self.exclusion_end(address) is None else _EXCLUDED

    def exclusion_end(self, address: int) -> int | None:
        """Returns the last address of the excluded range that contains the address; None if there is none."""
        return next((last for _, last in self.exclusions(address, address)), None)

    def exclusions(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yields the excluded ranges that have an address from `first` to `last`, lowest first."""
        start = bisect.bisect_left(self.excluded, first, key=lambda each: each[1])
        return itertools.takewhile(lambda each: each[0] <= last, itertools.islice(self.excluded, start, None))


def subnet_bounds(subnet: Subnet) -> SubnetBounds:
    """Returns the bounds of a subnet. A gateway or an exclusion outside the subnet has no effect.

    Raises ValueError for a CIDR with host bits set, and for text that is not a CIDR or address of the family.
    """
    network = parse_cidr(subnet.cidr)
    first, last = network.first, network.last
    exclusions = [_parse_range(text, family=network.family) for text in subnet.excluded]
    reserved = {low: _EXCLUDED for low, high in exclusions if low == high} | _reserved_ends(network)
    if subnet.gateway is not None:  # last, so that its reason wins over an exclusion and a reserved end
        reserved[parse_address(subnet.gateway, family=network.family)] = "it is the gateway"
    return SubnetBounds(
        cidr=subnet.cidr,
        prefix_length=network.prefix_length,
        first=first,
        last=last,
        gateway=subnet.gateway,
        reserved={address: reason for address, reason in reserved.items() if first <= address <= last},
        excluded=_merge_ranges(
            (max(low, first), min(high, last))
            for low, high in exclusions
            if low < high and low <= last and high >= first  # single addresses are in `reserved`
        ),
    )


def default_gateway(cidr: str) -> str | None:
    """Returns the first usable address of a subnet; None if no other address would remain (/32, /128)."""
    network = parse_cidr(cidr)
    if network.first == network.last:
        return None
    return format_address(network.first + (not _is_point_to_point(network)), family=network.family)


def _reserved_ends(network: Cidr) -> dict[int, str]:
    if _is_point_to_point(network) or network.first == network.last:
        return {}
    if network.family == 6:
        return {network.first: "it is the subnet-router anycast address"}
    return {network.first: "it is the network address", network.last: "it is the broadcast address"}


def _is_point_to_point(network: Cidr) -> bool:
    return network.last - network.first == 1


def _parse_range(text: str, *, family: int) -> tuple[int, int]:
    """Returns the first and last address of an exclusion, which is a CIDR or a single address."""
    network = parse_cidr(text)
    if network.family != family:
        raise ValueError(f"{text!r} is not an IPv{family} address or CIDR")
    return network.first, network.last


def _merge_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Returns the ranges sorted, with overlapping and adjacent ones merged."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)

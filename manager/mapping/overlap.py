"""Overlapping networks of one pod: allowed, since networks are isolated, but rarely intended."""

from collections.abc import Iterable
from typing import NamedTuple

from contrail_config.addressing.notation import family_of
from contrail_config.objects import VirtualNetwork
from manager.mapping.network_addressing import cidr_bounds


class _Part(NamedTuple):
    """A subnet, its bounds as ints, and the name of its network."""

    first: int
    last: int
    network: str
    cidr: str


def overlaps(networks: Iterable[VirtualNetwork]) -> list[str]:
    """Returns a text `NAME CIDR and NAME CIDR` per overlapping pair; of three or more, some pairs may be left out."""
    different = {network.uuid: network for network in networks}.values()
    found: dict[tuple[str, str], str] = {}
    for family in (4, 6):
        last_ending: _Part | None = None
        for part in sorted(_parts(different, family), key=_start_then_length):
            if last_ending is not None and part.first <= last_ending.last:
                # Subnets of one network never overlap, so these are two networks.
                pair = (last_ending.network, part.network)
                found.setdefault(pair, f"{pair[0]} {last_ending.cidr} and {pair[1]} {part.cidr}")
            if last_ending is None or part.last > last_ending.last:
                last_ending = part
    return list(found.values())


def _parts(networks: Iterable[VirtualNetwork], family: int) -> list[_Part]:
    return [
        _Part(*cidr_bounds(subnet.cidr), network.name, subnet.cidr)
        for network in networks
        for subnet in network.subnets
        if family_of(subnet.cidr) == family
    ]


def _start_then_length(part: _Part) -> tuple[int, int]:
    return part.first, -part.last

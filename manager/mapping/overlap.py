"""Networks of one pod that have addresses in common: allowed, since networks are isolated, but seldom meant."""

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
    """One phrase for each two networks that overlap, `NAME CIDR and NAME CIDR`; with many of them not every two."""
    different = {network.uuid: network for network in networks}.values()
    found: dict[tuple[str, str], str] = {}
    for family in (4, 6):
        furthest: _Part | None = None
        for part in sorted(_parts(different, family), key=_start_then_longest):
            if furthest is not None and part.first <= furthest.last:
                pair = (furthest.network, part.network)
                found.setdefault(pair, f"{pair[0]} {furthest.cidr} and {pair[1]} {part.cidr}")
            if furthest is None or part.last > furthest.last:
                furthest = part
    return list(found.values())


def _parts(networks: Iterable[VirtualNetwork], family: int) -> list[_Part]:
    return [
        _Part(*cidr_bounds(subnet.cidr), network.name, subnet.cidr)
        for network in networks
        for subnet in network.subnets
        if family_of(subnet.cidr) == family
    ]


def _start_then_longest(part: _Part) -> tuple[int, int]:
    return part.first, -part.last

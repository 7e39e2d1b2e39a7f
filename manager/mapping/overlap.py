"""Networks of one pod that have addresses in common: allowed, since networks are isolated, but seldom meant."""

from collections.abc import Iterable

from contrail_config.addressing.notation import family_of
from contrail_config.objects import VirtualNetwork
from manager.mapping.addresses import bounds_of


def overlaps(networks: Iterable[VirtualNetwork]) -> list[str]:
    """One phrase for each two networks that overlap, `NAME CIDR and NAME CIDR`; with many of them not every two."""
    different = {network.uuid: network for network in networks}.values()
    subnets = [(bounds_of(subnet), network, subnet.cidr) for network in different for subnet in network.subnets]
    found: dict[tuple[str, str], str] = {}
    for family in (4, 6):
        of_family = sorted((s for s in subnets if family_of(s[2]) == family), key=lambda s: (s[0].first, -s[0].last))
        furthest = None
        for bounds, network, cidr in of_family:
            if furthest is not None and bounds.first <= furthest[0].last:
                pair = (furthest[1].name, network.name)
                found.setdefault(pair, f"{pair[0]} {furthest[2]} and {pair[1]} {cidr}")
            if furthest is None or bounds.last > furthest[0].last:
                furthest = (bounds, network, cidr)
    return list(found.values())

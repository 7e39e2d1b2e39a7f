"""Differences between desired and found entries of routed ports, in the order in which they are to be applied.

Nothing that both have is touched. What moves is replaced in place: a route to another link, a neighbour to another MAC.
What is new comes before what is removed. Pure: no kernel.

Two rules of the kernel are respected: a link whose MAC is set forgets its neighbours, and what belongs to a link that
was deleted is gone, except for elements of the filter.
"""

from __future__ import annotations

from collections.abc import Iterable

from cni_contrail.datapath.routed_entries import LinkAddress, RoutedEntries
from cni_contrail.datapath.routed_messages import Settings
from cni_contrail.link.named_tuple import NamedTuple


class RoutedPlan(NamedTuple):
    """What to add, set or move, and what to remove. `move_routes` are routes of ours that exist by another link."""

    add_ports: frozenset[str]
    add_sources: frozenset[LinkAddress]
    set_links: dict[str, Settings]
    add_gateways: frozenset[LinkAddress]
    set_neighbours: dict[LinkAddress, str]
    add_routes: dict[str, str]
    move_routes: dict[str, str]
    remove_routes: frozenset[LinkAddress]
    remove_neighbours: frozenset[LinkAddress]
    remove_gateways: frozenset[LinkAddress]
    remove_sources: frozenset[LinkAddress]
    remove_ports: frozenset[str]
    add_networks: frozenset[int]

    def changes(self) -> int:
        """Returns the number of changes."""
        return sum(len(each) for each in self)


def plan(desired: RoutedEntries, found: RoutedEntries, *, unknown: frozenset[str] = frozenset()) -> RoutedPlan:
    """Returns the changes that bring `found` to `desired`.

    `unknown` are links that exist and that the desired state does not name: what they have stays, since an ADD may be
    creating them at this moment. An address that the desired state gives to another port is no longer theirs.
    """
    set_links = {link: each for link, each in desired.settings.items() if found.settings.get(link) != each}
    neighbours = {key: mac for key, mac in found.neighbours.items() if key.link not in set_links}
    wanted_routes = desired.routes.items() - found.routes.items()
    stale_routes = {LinkAddress(link, each) for each, link in found.routes.items() if each not in desired.routes}

    def stale(entries: Iterable[LinkAddress]) -> frozenset[LinkAddress]:
        return frozenset(each for each in entries if each.link not in unknown or each.address in desired.routes)

    return RoutedPlan(
        add_ports=desired.ports - found.ports,
        add_sources=desired.sources - found.sources,
        set_links=set_links,
        add_gateways=desired.gateways - found.gateways,
        set_neighbours={key: mac for key, mac in desired.neighbours.items() if neighbours.get(key) != mac},
        add_routes={each: link for each, link in wanted_routes if each not in found.routes},
        move_routes={each: link for each, link in wanted_routes if each in found.routes},
        remove_routes=frozenset(each for each in stale_routes if each.link not in unknown),
        remove_neighbours=stale(neighbours.keys() - desired.neighbours.keys()),
        remove_gateways=frozenset(each for each in found.gateways - desired.gateways if each.link not in unknown),
        remove_sources=stale(found.sources - desired.sources),
        remove_ports=found.ports - desired.ports - unknown,
        # One that has no port any more is of no effect. An ADD may need it at this moment.
        add_networks=desired.networks - found.networks,
    )

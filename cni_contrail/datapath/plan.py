"""Differences between desired and found entries, in the order in which they are to be applied.

Nothing that both have is touched. What moves is replaced in place: a MAC to another port, an address to another MAC.
What is new comes before what is removed, so that no packet is lost that the desired state carries: a MAC is behind its
tunnel before an address leads to it, and an address has its MAC before a route leads to it. Pure: no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from cni_contrail.datapath.entries import Behind, Entries, Source
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Key = TypeVar("Key")


class Plan(NamedTuple):
    """What to add or replace (`set_...`), and what to remove. Removed forwarding entries are MACs with their ports."""

    add_sources: frozenset[Source]
    add_gateways: frozenset[Address]
    set_destinations: dict[Behind, str]
    set_forwarding: dict[str, str]
    set_neighbours: dict[str, str]
    set_routes: dict[str, str]
    remove_routes: frozenset[str]
    remove_neighbours: frozenset[str]
    remove_forwarding: dict[str, str]
    remove_destinations: frozenset[Behind]
    remove_gateways: frozenset[Address]
    remove_sources: frozenset[Source]

    def without_removals(self) -> Plan:
        """Returns what is to be added or replaced."""
        return self._replace(
            remove_routes=frozenset(),
            remove_neighbours=frozenset(),
            remove_forwarding={},
            remove_destinations=frozenset(),
            remove_gateways=frozenset(),
            remove_sources=frozenset(),
        )

    def is_empty(self) -> bool:
        """Returns whether the kernel already has the desired entries."""
        return not any(self)


def plan(desired: Entries, found: Entries, *, unknown: frozenset[str] = frozenset()) -> Plan:
    """Returns the changes that bring `found` to `desired`.

    `unknown` are links that exist and that the desired state does not name: their entries stay, since an ADD may be
    creating them at this moment. A tunnel among them keeps its entries, since the desired state does not know all pods
    of other nodes; then no route is removed.
    """
    left_alone = {mac for mac, link in found.forwarding.items() if link in unknown}
    left_alone |= {source.mac for source in found.sources if source.link in unknown}
    stale_macs = found.forwarding.keys() - desired.forwarding.keys() - left_alone
    stale_addresses = found.neighbours.keys() - desired.neighbours.keys()
    stale_destinations = found.destinations.keys() - desired.destinations.keys()
    stale_routes = frozenset(found.routes) - desired.routes.keys()
    return Plan(
        add_sources=desired.sources - found.sources,
        add_gateways=desired.gateways - found.gateways,
        set_destinations=_changed(desired.destinations, found.destinations),
        set_forwarding=_changed(desired.forwarding, found.forwarding),
        set_neighbours=_changed(desired.neighbours, found.neighbours),
        set_routes=_changed(desired.routes, found.routes),
        remove_routes=frozenset() if unknown.intersection(BRIDGED) else stale_routes,
        remove_neighbours=frozenset(each for each in stale_addresses if found.neighbours[each] not in left_alone),
        remove_forwarding={mac: found.forwarding[mac] for mac in stale_macs},
        remove_destinations=frozenset(each for each in stale_destinations if each.link not in unknown),
        remove_gateways=found.gateways - desired.gateways,
        remove_sources=frozenset(each for each in found.sources - desired.sources if each.link not in unknown),
    )


def _changed(desired: Mapping[Key, str], found: Mapping[Key, str]) -> dict[Key, str]:
    return {key: value for key, value in desired.items() if found.get(key) != value}

"""Differences between desired and found entries, in the order in which they are to be applied.

Nothing that both have is touched. What moves is replaced in place: a MAC to another port, an address to another MAC.
What is new comes before what is removed, so that no packet is lost that the desired state carries. Pure: no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping

from cni_contrail.datapath.entries import Entries, Source
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address


class Plan(NamedTuple):
    """What to add or replace (`set_...`), and what to remove. Removed forwarding entries are MACs with their ports."""

    add_sources: frozenset[Source]
    add_gateways: frozenset[Address]
    set_forwarding: dict[str, str]
    set_neighbours: dict[str, str]
    remove_neighbours: frozenset[str]
    remove_forwarding: dict[str, str]
    remove_gateways: frozenset[Address]
    remove_sources: frozenset[Source]

    def without_removals(self) -> Plan:
        """Returns what is to be added or replaced."""
        return self._replace(
            remove_neighbours=frozenset(),
            remove_forwarding={},
            remove_gateways=frozenset(),
            remove_sources=frozenset(),
        )

    def is_empty(self) -> bool:
        """Returns whether the kernel already has the desired entries."""
        return not any(self)


def plan(desired: Entries, found: Entries, *, unknown: frozenset[str] = frozenset()) -> Plan:
    """Returns the changes that bring `found` to `desired`.

    `unknown` are links that exist and that the desired state does not name: their entries stay, since an ADD may be
    creating them at this moment.
    """
    left_alone = {mac for mac, link in found.forwarding.items() if link in unknown}
    left_alone |= {source.mac for source in found.sources if source.link in unknown}
    stale_macs = found.forwarding.keys() - desired.forwarding.keys() - left_alone
    stale_addresses = found.neighbours.keys() - desired.neighbours.keys()
    return Plan(
        add_sources=desired.sources - found.sources,
        add_gateways=desired.gateways - found.gateways,
        set_forwarding=_changed(desired.forwarding, found.forwarding),
        set_neighbours=_changed(desired.neighbours, found.neighbours),
        remove_neighbours=frozenset(each for each in stale_addresses if found.neighbours[each] not in left_alone),
        remove_forwarding={mac: found.forwarding[mac] for mac in stale_macs},
        remove_gateways=found.gateways - desired.gateways,
        remove_sources=frozenset(each for each in found.sources - desired.sources if each.link not in unknown),
    )


def _changed(desired: Mapping[str, str], found: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in desired.items() if found.get(key) != value}

"""What index 0 has in the kernel for other nodes: what follows from the desired state, what was found, and the plan.

A node is a MAC behind the tunnel to it, and the neighbour that is the gateway of its blocks: by IPv4 its tunnel
address, otherwise the link-local address of its MAC. Pure: no kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cni_contrail.datapath.desired import RemoteBlock, RoutedNetwork, Underlay
from cni_contrail.datapath.entries import Behind
from cni_contrail.datapath.routed_entries import LinkAddress
from cni_contrail.datapath.tunnel_names import node_gateway, node_mac, routed_tunnel
from cni_contrail.link.named_tuple import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Key = TypeVar("Key")
    Value = TypeVar("Value")


class Way(NamedTuple):
    """How packets for a block leave; one with an empty link is unreachable. The node sends from `source`, if any."""

    link: str
    gateway: str
    source: str | None


UNREACHABLE = Way("", "", None)


class BlockEntries(NamedTuple):
    """Addresses of tunnels; nodes by MAC; MACs of gateways; ways by block (CIDR)."""

    addresses: frozenset[LinkAddress]
    destinations: dict[Behind, str]
    neighbours: dict[LinkAddress, str]
    ways: dict[str, Way]


class BlockPlan(NamedTuple):
    """What to add or replace, and what to remove."""

    add_addresses: frozenset[LinkAddress]
    set_destinations: dict[Behind, str]
    set_neighbours: dict[LinkAddress, str]
    set_ways: dict[str, Way]
    remove_ways: dict[str, Way]
    remove_neighbours: frozenset[LinkAddress]
    remove_destinations: frozenset[Behind]
    remove_addresses: frozenset[LinkAddress]

    def changes(self) -> int:
        """Returns the number of changes."""
        return sum(len(each) for each in self)

    def without_removals(self) -> BlockPlan:
        """Returns what is to be added or replaced."""
        return self._replace(
            remove_ways={},
            remove_neighbours=frozenset(),
            remove_destinations=frozenset(),
            remove_addresses=frozenset(),
        )


def entries_of(network: RoutedNetwork, underlay: Underlay, local: Collection[str]) -> BlockEntries:
    """Returns the entries of index 0; `local` are addresses (CIDRs) of this node's pods, whatever other nodes claim."""
    blocks = [each for each in network.remotes if each.cidr not in local and underlay.local(each.tunnel)]
    sources = {":" in address: address for address in network.addresses}
    ways = {block.cidr: _way(block, sources) for block in blocks}
    return BlockEntries(
        addresses=frozenset(
            LinkAddress(routed_tunnel(underlay.addresses[0]), address) for address in network.addresses
        ),
        destinations={Behind(routed_tunnel(block.tunnel), node_mac(block.tunnel)): block.tunnel for block in blocks},
        neighbours={
            LinkAddress(way.link, way.gateway): node_mac(block.tunnel)
            for block in blocks
            for way in (ways[block.cidr],)
        },
        ways={cidr: UNREACHABLE for cidr in network.own_blocks if not _is_host(cidr)} | ways,
    )


def plan(desired: BlockEntries, found: BlockEntries) -> BlockPlan:
    """Returns the changes that bring `found` to `desired`: nothing that both have, and nothing desired is removed."""
    return BlockPlan(
        add_addresses=desired.addresses - found.addresses,
        set_destinations=_changed(desired.destinations, found.destinations),
        set_neighbours=_changed(desired.neighbours, found.neighbours),
        set_ways=_changed(desired.ways, found.ways),
        remove_ways={cidr: way for cidr, way in found.ways.items() if cidr not in desired.ways},
        remove_neighbours=frozenset(found.neighbours.keys() - desired.neighbours.keys()),
        remove_destinations=frozenset(found.destinations.keys() - desired.destinations.keys()),
        remove_addresses=found.addresses - desired.addresses,
    )


def _way(block: RemoteBlock, sources: Mapping[bool, str]) -> Way:
    is_ipv4 = ":" not in block.cidr and ":" not in block.tunnel
    gateway = block.tunnel if is_ipv4 else node_gateway(block.tunnel)
    return Way(routed_tunnel(block.tunnel), gateway, sources.get(":" in block.cidr))


def _is_host(cidr: str) -> bool:
    return cidr.endswith("/128" if ":" in cidr else "/32")


def _changed(desired: Mapping[Key, Value], found: Mapping[Key, Value]) -> dict[Key, Value]:
    return {key: value for key, value in desired.items() if found.get(key) != value}

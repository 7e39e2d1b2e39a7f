"""Uplinks of networks: a link from the network's namespace to the node's, for what may leave the network or enter it.

A network has one if it has `snat`, or a subnet that is reachable from outside (`fabric_routes`). What is done with one,
and in which order, is in `uplink_plan`. The rules of the node come before all uplinks.

One object is one round over all networks of the node: it reads the node once. Whoever uses it holds the lock of each
network, and is in the node's network namespace. Not promised: that a host's firewall forwards the packets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.fabric_routes import FabricRoutes, RefusedRoute, fabric_routes
from cni_contrail.datapath.forwarding import enable_forwarding, read_forwarding
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.nftables_messages import delete_table
from cni_contrail.datapath.nftables_tables import read_table
from cni_contrail.datapath.uplink_addresses import Pair, choose_pair, pair_of
from cni_contrail.datapath.uplink_operations import Executor, Rules
from cni_contrail.datapath.uplink_plan import (
    DesiredUplink,
    UplinkState,
    plan_entries,
    plan_links,
    plan_pair,
    plan_removal,
)
from cni_contrail.datapath.uplink_rules import node_link
from cni_contrail.datapath.uplink_state import EndState, NodeLinks, find_link, has_ends, read_network_end, read_node
from cni_contrail.link import links
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns
from cni_contrail.link.netns_ids import netns_id_of


class UplinkOutcome(NamedTuple):
    """Number of changes made in the kernel, and the subnets that get no route."""

    changes: int
    refused: tuple[RefusedRoute, ...]


class Uplinks:
    """The uplinks of the desired networks, in one round. Methods raise LinkError.

    `fabric_subnets` are the CIDRs within which subnets may have a route.
    """

    def __init__(
        self, desired: Sequence[Network], fabric_subnets: Sequence[str], *, sysctl_dir: str = "/proc/sys"
    ) -> None:
        self._desired = desired
        self._fabric_subnets = fabric_subnets
        self._sysctl_dir = sysctl_dir
        self._node: NodeLinks | None = None
        self._pairs: dict[int, set[Pair]] = {}  # of each uplink, by number of the network
        self._fabric = FabricRoutes({}, {})

    def reconcile(self, netns: int, network: Network, found: int | None) -> UplinkOutcome:
        """Brings the uplink of a network to its desired state.

        `netns` is the network's namespace, and `found` the index of the link in it that has the name of an uplink.
        """
        changes = 0
        if network.snat or network.forwarding:
            changes += self._prepare_node()
        if network.snat or self._fabric.granted.get(network.vni):
            changes += self._connect(netns, network)
        elif found is not None:
            changes += self._disconnect(netns, network)
            remove_unused_table()
        return UplinkOutcome(changes, self._fabric.refused.get(network.vni, ()))

    def _prepare_node(self) -> int:
        """Reads the node, decides about its routes, and makes its table; returns the number of changes. Once."""
        if self._node is not None:
            return 0
        with RouteSocket() as kernel:
            node = read_node(kernel)
        existing = {(vni, route.destination) for vni, end in node.ends.items() for route in end.routes}
        self._fabric = fabric_routes(self._desired, existing, node.others, self._fabric_subnets)
        changes = self._forward(node)
        self._pairs = {vni: _pairs(end) for vni, end in node.ends.items()}
        self._node = node
        return changes

    def _forward(self, node: NodeLinks) -> int:
        """Lets the node forward what its table allows, if there is an uplink; returns the number of changes."""
        wanted = [each for each in self._desired if each.snat or each.vni in self._fabric.granted]
        if not wanted and not node.ends:
            return 0
        changes = 0
        with open_filters() as filters:
            table = read_table(filters, uplink_rules.TABLE)
            if table is None or not table.is_whole(uplink_rules.NODE_CHAINS, uplink_rules.node_rules()):
                commit(filters, uplink_rules.replace_node_table(), uplink_rules.MODULES)
                changes += 1
        ipv6 = any(6 in self._versions(network) for network in wanted)
        return changes + enable_forwarding(ipv6=ipv6, sysctl_dir=self._sysctl_dir)

    def _connect(self, netns: int, network: Network) -> int:
        desired = self._desired_uplink(netns, network)
        with Executor(netns, self._sysctl_dir) as executor:
            found = self._read(executor, netns, network.vni)
            operations = plan_pair(desired, found)
            changes = executor.execute(operations)
            node, inner = found.node, found.network
            if any(not isinstance(operation, Rules) for operation in operations):
                node, inner = find_link(executor.node, node_link(network.vni)), read_network_end(executor.network)
            node, inner = _existing(network.vni, node, inner)
            operations = plan_links(desired, node, inner)
            changes += executor.execute(operations)
            if operations:  # the kernel removes addresses and routes of links that change
                node = _read_again(executor, network, node)
                node, inner = _existing(network.vni, node, read_network_end(executor.network))
            pair = self._pair(network.vni, inner)
            return changes + executor.execute(plan_entries(desired, node, inner, found.forwarding, pair))

    def _disconnect(self, netns: int, network: Network) -> int:
        with Executor(netns, self._sysctl_dir) as executor:
            found = self._read(executor, netns, network.vni)
            return executor.execute(plan_removal(found, forwards=network.routes_between_pods))

    def _read(self, executor: Executor, netns: int, vni: int) -> UplinkState:
        node = find_link(executor.node, node_link(vni)) if self._node is None else self._node.ends.get(vni)
        inner = read_network_end(executor.network)
        has_ipv6 = os.path.isdir(f"{self._sysctl_dir}/net/ipv6")
        with InNetns(netns):
            forwarding = read_forwarding(self._sysctl_dir, ipv6=has_ipv6)
        is_pair = node is not None and inner is not None and _leads_to(node, netns, inner)
        return UplinkState(node, inner, is_pair, read_table(executor.filters, uplink_rules.TABLE), forwarding)

    def _desired_uplink(self, netns: int, network: Network) -> DesiredUplink:
        subnets = self._fabric.granted.get(network.vni, ())
        rules = uplink_rules.network_rules(snat=network.snat, subnets=subnets, between_pods=network.routes_between_pods)
        return DesiredUplink(network.vni, netns, network.mtu, self._versions(network), subnets, rules)

    def _pair(self, vni: int, inner: EndState) -> Pair:
        """Returns the addresses that the uplink has, unless another one has them too, or free ones."""
        used = {pair for other, pairs in self._pairs.items() if other != vni for pair in pairs}
        own = self._pairs.get(vni, set())
        shared = {pair for pair in own if pair.network(4) in inner.addresses}
        pair = choose_pair(vni, own, shared, used, frozenset() if self._node is None else self._node.others)
        if pair is None:
            raise LinkError("no addresses are left for another uplink")
        self._pairs[vni] = {pair}
        return pair

    def _versions(self, network: Network) -> tuple[int, ...]:
        """Returns the IP versions of an uplink: 4 always, 6 if the network and the kernel have it."""
        has_ipv6 = any(":" in gateway.address for gateway in network.gateways)
        return (4, 6) if has_ipv6 and os.path.isdir(f"{self._sysctl_dir}/net/ipv6") else (4,)


def _pairs(end: EndState) -> set[Pair]:
    return {pair for address in end.addresses if (pair := pair_of(address)) is not None}


def _leads_to(node: EndState, netns: int, inner: EndState) -> bool:
    return node.link.peer_index == inner.link.ifindex and node.link.peer_netns_id == netns_id_of(netns)


def _existing(vni: int, node: EndState | None, inner: EndState | None) -> tuple[EndState, EndState]:
    if node is None or inner is None:
        raise LinkError(f"link {node_link(vni)}: removed by another process while it was connected")
    return node, inner


def _read_again(executor: Executor, network: Network, node: EndState) -> EndState | None:
    """Reads the node's end; a new one has no addresses and routes, and is not looked for among all of the node.

    One that has got another MTU may have got an address of the kernel's, too, with IPv6.
    """
    has_entries = node.addresses or node.routes or node.link.mtu != network.mtu
    return read_node(executor.node).ends.get(network.vni) if has_entries else find_link(executor.node, node.link.name)


def remove_uplink(vni: int) -> None:
    """Removes the uplink of a network from the node, before its namespace goes. Idempotent. Raises LinkError."""
    with RouteSocket() as kernel:
        end = find_link(kernel, node_link(vni))
        if end is not None and end.link.kind == "veth":
            kernel.execute_all([links.delete(end.ref)])
            remove_unused_table()


def remove_unused_table() -> bool:
    """Removes the node's table if there is no uplink any more; returns whether it did. Raises LinkError.

    An uplink may also go with a namespace that was deleted by hand, or its removal may have been killed half-way.
    """
    with RouteSocket() as kernel, open_filters() as filters:
        if read_table(filters, uplink_rules.TABLE) is None or has_ends(kernel):
            return False
        filters.commit([delete_table(uplink_rules.TABLE)])
        return True

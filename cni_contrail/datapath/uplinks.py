"""Uplinks of networks: a link from the network's namespace to the node's, for what may leave the network or enter it.

A network has one if it has `snat`, or a subnet that is reachable from outside (`fabric_routes`). Rules come before the
link that they restrict, and forwarding is enabled last and disabled first, so that no packet passes an incomplete one.
What is right is not touched; what differs is replaced in place.

One object is one round over all networks of the node: it reads the node once. Whoever uses it holds the lock of each
network, and is in the node's network namespace. Not promised: that a host's firewall forwards the packets.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.fabric_routes import FabricRoutes, RefusedRoute, fabric_routes
from cni_contrail.datapath.forwarding import enable_forwarding
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.nftables_messages import delete_table
from cni_contrail.datapath.nftables_tables import read_table
from cni_contrail.datapath.uplink_addresses import Pair, free_pair, pair_of
from cni_contrail.datapath.uplink_ends import (
    Ends,
    configure_node_link,
    reconcile_network_end,
    reconcile_node_end,
    remove_network_end,
)
from cni_contrail.datapath.uplink_messages import create_uplink
from cni_contrail.datapath.uplink_rules import NODE_PREFIX, node_link
from cni_contrail.datapath.uplink_state import EndState, LinksState, find_link, has_ends, read_ends
from cni_contrail.link import links
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
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
        self._node: LinksState | None = None
        self._pairs: dict[str, set[Pair]] = {}  # of each uplink, by the name of its link
        self._fabric = FabricRoutes({}, {})

    def reconcile(self, netns: int, network: Network, found: int | None) -> UplinkOutcome:
        """Brings the uplink of a network to its desired state.

        `netns` is the network's namespace, and `found` the index of the link in it that has the name of an uplink.
        """
        changes = 0
        if network.snat or network.forwarding:
            changes += self._prepare_node()
        subnets = self._fabric.granted.get(network.vni, ())
        if network.snat or subnets:
            with RouteSocket() as kernel:
                changes += self._connect(kernel, netns, network, found)
        elif found is not None:
            changes += remove_network_end(netns, sysctl_dir=self._sysctl_dir)
            remove_unused_table()
        return UplinkOutcome(changes, self._fabric.refused.get(network.vni, ()))

    def _prepare_node(self) -> int:
        """Reads the node, decides about its routes, and makes its table; returns the number of changes. Once."""
        if self._node is not None:
            return 0
        with RouteSocket() as kernel:
            node = read_ends(kernel, NODE_PREFIX)
        existing = {
            (network.vni, route.destination)
            for network in self._desired
            if (end := node.ends.get(node_link(network.vni))) is not None
            for route in end.routes
        }
        self._fabric = fabric_routes(self._desired, existing, node.others, self._fabric_subnets)
        changes = self._forward(node)
        self._pairs = {name: _pairs(end) for name, end in node.ends.items()}
        self._node = node
        return changes

    def _forward(self, node: LinksState) -> int:
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

    def _connect(self, kernel: RouteSocket, netns: int, network: Network, found: int | None) -> int:
        subnets = self._fabric.granted.get(network.vni, ())
        rules = uplink_rules.network_rules(snat=network.snat, subnets=subnets, between_pods=network.routes_between_pods)
        versions = self._versions(network)
        changes = 0
        end = None if self._node is None else self._node.ends.get(node_link(network.vni))
        if end is None or not _leads_to(end, netns, found):
            end = self._create(kernel, netns, network, found)
            changes += 1
        if configure_node_link(kernel, end, versions, network.mtu, sysctl_dir=self._sysctl_dir):
            changes += 1
            if end.addresses:  # the kernel removes addresses and routes of links that change
                end = read_ends(kernel, NODE_PREFIX).ends.get(end.link.name, end)
        ends = Ends(network.mtu, self._pair(network.vni, end), versions)
        changes += reconcile_network_end(netns, ends, rules, sysctl_dir=self._sysctl_dir)
        return changes + reconcile_node_end(kernel, end, ends, subnets)

    def _create(self, kernel: RouteSocket, netns: int, network: Network, found: int | None) -> EndState:
        """Creates an uplink in place of one whose ends do not belong together."""
        name = node_link(network.vni)
        end = find_link(kernel, name)
        if end is not None and end.link.kind != "veth":
            raise LinkError(f"link {name} belongs to another program")
        if found is not None:
            remove_network_end(netns, sysctl_dir=self._sysctl_dir)  # takes the node's end with it if it is its peer
            end = find_link(kernel, name)
        if end is not None:
            kernel.execute_all([links.delete(end.ref)])
        kernel.execute_all([create_uplink(network.vni, network.mtu, netns)])
        created = find_link(kernel, name)
        if created is None:
            raise LinkError(f"link {name}: removed by another process while it was connected")
        return created

    def _pair(self, vni: int, end: EndState) -> Pair:
        """Returns the addresses that the uplink has, unless another one has them too, or free ones."""
        used = {pair for name, pairs in self._pairs.items() if name != end.link.name for pair in pairs}
        own = _pairs(end) - used
        pair = min(own) if own else free_pair(vni, used, frozenset() if self._node is None else self._node.others)
        if pair is None:
            raise LinkError("no addresses are left for another uplink")
        self._pairs[end.link.name] = {pair}
        return pair

    def _versions(self, network: Network) -> tuple[int, ...]:
        """Returns the IP versions of an uplink: 4 always, 6 if the network and the kernel have it."""
        has_ipv6 = any(":" in gateway.address for gateway in network.gateways)
        return (4, 6) if has_ipv6 and os.path.isdir(f"{self._sysctl_dir}/net/ipv6") else (4,)


def _pairs(end: EndState) -> set[Pair]:
    return {pair for address in end.addresses if (pair := pair_of(address)) is not None}


def _leads_to(end: EndState, netns: int, found: int | None) -> bool:
    return end.link.peer_index == found and end.link.peer_netns_id == netns_id_of(netns)


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
        if read_table(filters, uplink_rules.TABLE) is None or has_ends(kernel, NODE_PREFIX):
            return False
        filters.commit([delete_table(uplink_rules.TABLE)])
        return True

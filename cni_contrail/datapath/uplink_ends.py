"""Both ends of an uplink: addresses, routes and, in the network's namespace, rules and forwarding."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cni_contrail.datapath import uplink_rules
from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.forwarding import disable_ipv6, enable_forwarding, enable_ipv6
from cni_contrail.datapath.missing_modules import commit, open_filters
from cni_contrail.datapath.namespace_settings import disable_forwarding
from cni_contrail.datapath.nftables_messages import delete_table
from cni_contrail.datapath.nftables_tables import read_table
from cni_contrail.datapath.routed_messages import desired_settings, set_host_end
from cni_contrail.datapath.rule_texts import RuleText
from cni_contrail.datapath.uplink_addresses import Pair
from cni_contrail.datapath.uplink_messages import UplinkRoute, add_route, remove_route, set_mtu, set_route
from cni_contrail.datapath.uplink_state import EndState, read_ends
from cni_contrail.link import links
from cni_contrail.link.addresses import add_address, remove_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.netns import InNetns
from cni_contrail.link.plan import Address

_SOLICITOR = Address("fe80::1", 64)
"""Sender of the node's neighbour solicitations: for packets that it forwards, the kernel uses no other address."""

_EVERYTHING = {4: "0.0.0.0/0", 6: "::/0"}


class Ends(NamedTuple):
    """What both ends of an uplink should have."""

    mtu: int
    pair: Pair
    versions: tuple[int, ...]


def configure_node_link(
    kernel: RouteSocket, end: EndState, versions: tuple[int, ...], mtu: int, *, sysctl_dir: str
) -> int:
    """Brings the link on the node up with its settings; returns the number of changes. Raises LinkError."""
    ipv6 = 6 in versions
    found = end.settings if ipv6 else end.settings._replace(accept_ra=0)
    if found == desired_settings(ipv6=ipv6) and end.link.mtu == mtu:
        return 0
    (enable_ipv6 if ipv6 else disable_ipv6)(end.link.name, sysctl_dir=sysctl_dir)
    kernel.execute_all([set_host_end(end.ref, end.link.mac, ipv6=ipv6), set_mtu(end.ref, mtu)])
    return 1


def reconcile_node_end(kernel: RouteSocket, end: EndState, ends: Ends, subnets: Collection[str]) -> int:
    """Sets addresses, and routes to the network's subnets, on the node; returns the number of changes.

    Raises LinkError, also if another program has added a route to one of the subnets.
    """
    gateways = {version: ends.pair.network(version).address for version in ends.versions}
    routes = {UplinkRoute(subnet, gateways[_version(subnet)]) for subnet in subnets if _version(subnet) in gateways}
    addresses = {ends.pair.node(version) for version in ends.versions}
    if 6 in ends.versions:
        addresses.add(_SOLICITOR)
    return _set_end(kernel, end, addresses, routes, replaceable={route.destination for route in end.routes})


def reconcile_network_end(netns: int, ends: Ends, rules: Sequence[RuleText], *, sysctl_dir: str) -> int:
    """Sets rules, link, addresses and routes in the network's namespace, and then lets it forward packets.

    Returns the number of changes. Raises LinkError.
    """
    ipv6 = 6 in ends.versions
    with InNetns(netns):
        kernel, filters = RouteSocket(), open_filters()
        (enable_ipv6 if ipv6 else disable_ipv6)(UPLINK, sysctl_dir=sysctl_dir)
    changes = 0
    with kernel, filters:
        table = read_table(filters, uplink_rules.TABLE)
        if table is None or not table.is_whole(uplink_rules.NETWORK_CHAINS, rules):
            commit(filters, uplink_rules.replace_network_table(rules), uplink_rules.MODULES)
            changes += 1
        end = _read(kernel)
        if (end.link.is_up, end.link.mtu) != (True, ends.mtu):
            kernel.execute_all([set_mtu(end.ref, ends.mtu)])
            end = _read(kernel)
            changes += 1
        routes = {UplinkRoute(_EVERYTHING[version], ends.pair.node(version).address) for version in ends.versions}
        addresses = {ends.pair.network(version) for version in ends.versions}
        addresses |= {each for each in end.addresses if each.address.startswith("fe80:")}  # the kernel's own
        # The namespace is the network's own: routes of others are replaced.
        changes += _set_end(kernel, end, addresses, routes, replaceable=set(_EVERYTHING.values()))
    with InNetns(netns):
        return changes + enable_forwarding(ipv6=ipv6, sysctl_dir=sysctl_dir)


def remove_network_end(netns: int, *, sysctl_dir: str) -> int:
    """Ends forwarding in the network's namespace, and removes rules and uplink; returns the number of changes.

    Raises LinkError.
    """
    with InNetns(netns):
        disable_forwarding(sysctl_dir)
        kernel, filters = RouteSocket(), open_filters()
    with kernel, filters:
        if read_table(filters, uplink_rules.TABLE) is not None:
            filters.commit([delete_table(uplink_rules.TABLE)])
        end = read_ends(kernel, UPLINK).ends.get(UPLINK)
        kernel.execute_all([] if end is None else [links.delete(end.ref)])
    return 1


def _set_end(
    kernel: RouteSocket, end: EndState, addresses: set[Address], routes: set[UplinkRoute], *, replaceable: set[str]
) -> int:
    """Adds or replaces what is missing, then removes what is stale; returns the number of changes.

    Routes are replaced if their destination is `replaceable`; otherwise another program's is an error.
    """
    wanted = {route.destination for route in routes}
    requests = [add_address(end.ref, address) for address in sorted(addresses - end.addresses)]
    requests += [
        (set_route if route.destination in replaceable else add_route)(end.ref, route)
        for route in sorted(routes - end.routes)
    ]
    stale = [route for route in sorted(end.routes) if route.destination not in wanted]
    requests += [remove_route(end.ref, route) for route in stale]
    requests += [remove_address(end.ref, address) for address in sorted(end.addresses - addresses)]
    kernel.execute_all(requests)
    return len(requests)


def _read(kernel: RouteSocket) -> EndState:
    end = read_ends(kernel, UPLINK).ends.get(UPLINK)
    if end is None:
        raise LinkError(f"link {UPLINK}: removed by another process while it was connected")
    return end


def _version(subnet: str) -> int:
    return 6 if ":" in subnet else 4

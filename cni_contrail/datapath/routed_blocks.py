"""Index 0 on other nodes: tunnels in the node's namespace, and routes to other nodes' blocks by them.

What is there and right is not touched, what moves is replaced in place, and routes come last and go first. A block of
this node is unreachable but for the addresses of its pods. Ours are links whose name begins with `contrail.`, what they
have, and routes of our protocol number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from cni_contrail.datapath import block_routes, routed_messages, tunnel_messages
from cni_contrail.datapath.block_entries import UNREACHABLE, BlockEntries, BlockPlan, entries_of, plan
from cni_contrail.datapath.block_routes import NextHop
from cni_contrail.datapath.block_state import BlockState, read_blocks, read_tunnels
from cni_contrail.datapath.desired import RoutedNetwork, Underlay
from cni_contrail.datapath.forwarding import enable_ipv6
from cni_contrail.datapath.remote_entries import no_address_for
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.datapath.tunnel_names import node_mac, routed_tunnel
from cni_contrail.datapath.tunnels import create_tunnel
from cni_contrail.link import links
from cni_contrail.link.addresses import remove_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

_NOTHING = BlockEntries(frozenset(), {}, {}, {})
_GONE = (errno.ENODEV, errno.ENOENT, errno.ESRCH, errno.EADDRNOTAVAIL)


class BlockOutcome(NamedTuple):
    """Number of changes made in the kernel, what is not as desired, and whether something is to be removed later."""

    changes: int
    problems: tuple[str, ...]
    has_stale: bool


def reconcile_blocks(
    network: RoutedNetwork, underlay: Underlay, *, removes: bool, sysctl_dir: str = "/proc/sys"
) -> BlockOutcome:
    """Brings tunnels and routes to their desired state, in the calling thread's network namespace.

    Addresses of pods that are on this node stay here, whatever other nodes claim. Without `removes` what is not desired
    stays. What concerns one block is in the outcome. Raises KernelError or SysctlError, each a LinkError; the next call
    continues where this one ended.
    """
    with RouteSocket() as kernel:
        wanted = tunnels_of(network, underlay)
        changes = _make_tunnels(kernel, wanted, read_tunnels(kernel), sysctl_dir)
        state = read_blocks(kernel)
        desired = entries_of(network, underlay, state.hosts)
        whole = plan(desired, state.entries)
        difference = whole if removes else whole.without_removals()
        stale = [info.ref for name, info in state.tunnels.items() if name not in wanted]
        problems = _apply(kernel, state, difference)
        changes += difference.changes()
        if removes:
            kernel.execute_all([links.delete(each) for each in stale])
            changes += len(stale)
    unreachable = no_address_for(network.nodes(), underlay)
    problems += [] if unreachable is None else [unreachable]
    return BlockOutcome(changes, tuple(problems), has_stale=not removes and bool(stale or whole != difference))


def purge_blocks() -> bool:
    """Removes all that this module has made in the calling thread's network namespace; returns whether there was any.

    Raises LinkError.
    """
    with RouteSocket() as kernel:
        state = read_blocks(kernel)
        problems = _apply(kernel, state, plan(_NOTHING, state.entries))
        kernel.execute_all([links.delete(info.ref) for info in state.tunnels.values()])
    if problems:
        raise LinkError("; ".join(problems))
    return bool(state.tunnels or state.entries.ways)


def tunnels_of(network: RoutedNetwork, underlay: Underlay) -> dict[str, Tunnel]:
    """Returns the desired tunnels of index 0 by name."""
    return {
        name: Tunnel(name, network.vni, local, underlay.port, node_mac(local), network.mtu)
        for local in underlay.used_addresses(network.nodes())
        for name in (routed_tunnel(local),)
    }


def _make_tunnels(
    kernel: RouteSocket, desired: Mapping[str, Tunnel], found: Mapping[str, TunnelInfo], sysctl_dir: str
) -> int:
    """Creates or corrects tunnels, and sets them up; returns the number of changes."""
    changes = 0
    for name, tunnel in desired.items():
        info = found.get(name)
        if info is not None and not (info.has_checksums and tunnel_messages.can_be_set(info, tunnel)):
            kernel.execute_all([links.delete(info.ref)])
            info = None
        if info is None:
            create_tunnel(tunnel)
            info = read_tunnels(kernel)[name]
            kernel.execute_all([tunnel_messages.disable_addresses(info.ref)] if _has_ipv6(sysctl_dir) else [])
            changes += 1
        corrections = list(tunnel_messages.set_tunnel(info, tunnel))
        kernel.execute_all(corrections)
        changes += len(corrections)
        if _has_ipv6(sysctl_dir):
            enable_ipv6(name, sysctl_dir=sysctl_dir)
        if not info.is_up:
            kernel.execute_all([links.set_up(info.ref)])
            changes += 1
    return changes


def _apply(kernel: RouteSocket, state: BlockState, difference: BlockPlan) -> list[str]:
    """Changes entries and routes; returns what could not be changed."""
    requests = list(_requests(state, difference))
    errors = kernel.execute(requests)
    return [str(error) for _, error in sorted(errors.items()) if error.errno not in _GONE]


def _requests(state: BlockState, difference: BlockPlan) -> Iterator[NetlinkRequest]:
    refs = {name: info.ref for name, info in state.tunnels.items()}
    for link, address in sorted(difference.add_addresses):
        yield routed_messages.add_gateway(refs[link], address)
    for (link, mac), node in difference.set_destinations.items():
        yield tunnel_messages.set_destination(mac, refs[link], node, bridged=False)
    for (link, address), mac in difference.set_neighbours.items():
        yield routed_messages.set_neighbour(refs[link], address, mac)
    yield from _way_requests(state, difference, refs)
    for link, address in sorted(difference.remove_neighbours):
        yield routed_messages.remove_neighbour(refs[link], address)
    for link, mac in sorted(difference.remove_destinations):
        yield tunnel_messages.remove_destination(mac, refs[link])
    for link, address in sorted(difference.remove_addresses):
        yield remove_address(refs[link], Address(address, 128 if ":" in address else 32))


def _way_requests(state: BlockState, difference: BlockPlan, refs: Mapping[str, LinkRef]) -> Iterator[NetlinkRequest]:
    for cidr, way in difference.set_ways.items():
        replaces = cidr in state.entries.ways
        if way == UNREACHABLE:
            yield block_routes.add_unreachable(cidr, replaces=replaces)
        else:
            to_node = block_routes.set_route if replaces else block_routes.add_route
            yield to_node(refs[way.link], cidr, NextHop(way.gateway, way.source))
    for cidr, way in difference.remove_ways.items():
        yield block_routes.remove_route(cidr, 0 if way == UNREACHABLE else refs[way.link].ifindex)


def _has_ipv6(sysctl_dir: str) -> bool:
    return os.path.isdir(f"{sysctl_dir}/net/ipv6")

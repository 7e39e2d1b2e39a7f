"""Index 0 on other nodes: tunnels in the node's namespace, and routes to other nodes' blocks by them.

What is there and right is not touched, what moves is replaced in place, and routes come last and go first. A block of
this node is unreachable but for the addresses of its pods. Ours are links whose name begins with `contrail.`, what they
have, and routes of our protocol number.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from cni_contrail.datapath import tunnel_messages
from cni_contrail.datapath.block_entries import BlockEntries, BlockPlan, entries_of, plan
from cni_contrail.datapath.block_requests import block_requests
from cni_contrail.datapath.block_state import BlockState, read_blocks, read_tunnels
from cni_contrail.datapath.desired import RoutedNetwork, Underlay
from cni_contrail.datapath.forwarding import enable_ipv6
from cni_contrail.datapath.remote_entries import no_address_for
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.datapath.tunnel_names import node_mac, routed_tunnel
from cni_contrail.datapath.tunnel_plan import plan_tunnels
from cni_contrail.datapath.tunnels import create_tunnel
from cni_contrail.link import links
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.sysctls import MIN_IPV6_MTU

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
        stale = plan_tunnels(wanted, state.tunnels).remove
        problems = _apply(kernel, state, difference)
        changes += difference.changes() - len(problems)
        if removes:
            kernel.execute_all(stale)
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
    missing = plan_tunnels(desired, found).create
    for tunnel, replaced in missing:
        kernel.execute_all([] if replaced is None else [links.delete(replaced)])
        create_tunnel(tunnel)
    now = read_tunnels(kernel) if missing else found
    remaining = plan_tunnels(desired, now)
    kernel.execute_all(remaining.correct)  # first: with a lower MTU a link may have no IPv6
    with_ipv6 = [name for name, tunnel in desired.items() if tunnel.mtu >= MIN_IPV6_MTU and _has_ipv6(sysctl_dir)]
    created = {tunnel.name for tunnel, _ in missing} & now.keys() & set(with_ipv6)
    kernel.execute_all([tunnel_messages.disable_addresses(now[name].ref) for name in sorted(created)])
    for name in with_ipv6:
        enable_ipv6(name, sysctl_dir=sysctl_dir)
    kernel.execute_all(remaining.set_up)
    return len(missing) + len(remaining.correct) + len(remaining.set_up)


def _apply(kernel: RouteSocket, state: BlockState, difference: BlockPlan) -> list[str]:
    """Changes entries and routes; returns what could not be changed."""
    requests = list(block_requests(state, difference))
    errors = kernel.execute(requests)
    return [str(error) for _, error in sorted(errors.items()) if error.errno not in _GONE]


def _has_ipv6(sysctl_dir: str) -> bool:
    return os.path.isdir(f"{sysctl_dir}/net/ipv6")

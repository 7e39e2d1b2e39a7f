"""Tunnels of a network: one VXLAN link for each family of addresses by which this node reaches others.

A tunnel is a port of the network's bridge, and its packets leave from the node's namespace, where it is created. It is
down until its entries are there (`tunnel_plan`).

A tunnel takes the longest packet of all pods: a bridge drops what is longer than a port's MTU without an answer, but a
packet that does not fit the underlay gets one.

Without an underlay (this node's tunnel addresses are not known) tunnels stay as they are.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping

from cni_contrail.datapath import tunnel_messages as messages
from cni_contrail.datapath.desired import Network, Underlay
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.datapath.tunnel_names import BRIDGED, bridged_tunnel, node_mac
from cni_contrail.datapath.tunnel_plan import plan_tunnels
from cni_contrail.deadline import Deadline
from cni_contrail.link import links
from cni_contrail.link.errors import KernelError
from cni_contrail.link.exchange import RouteSocket, open_route_socket
from cni_contrail.link.links import LinkRef

_TIMEOUT = 2.0  # seconds; the kernel removes links of a namespace that was deleted in the background
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05


def tunnels_of(network: Network, underlay: Underlay) -> dict[str, Tunnel]:
    """Returns the desired tunnels of a network by name."""
    return {
        name: Tunnel(name, network.vni, local, underlay.port, node_mac(local), network.longest_packet)
        for local in underlay.used_addresses(network.nodes())
        for name in (bridged_tunnel(local),)
    }


def make_tunnels(
    kernel: RouteSocket,
    netns: int,
    desired: Mapping[str, Tunnel],
    found: Mapping[str, TunnelInfo],
    bridge: LinkRef,
    *,
    is_new: bool,
) -> int:
    """Creates or corrects tunnels in the network's namespace, where the bridge is; returns the number of changes.

    `kernel` is a socket there, and the calling thread is in the node's namespace. `is_new`: the network's namespace is
    new, and the kernel may still have the links of an earlier one, which are waited for. Raises KernelError.
    """
    missing = plan_tunnels(desired, found, bridge).create
    for tunnel, replaced in missing:
        kernel.execute_all([] if replaced is None else [links.delete(replaced)])
        create_tunnel(tunnel, netns, bridge, timeout=_TIMEOUT if is_new else 0)
    answers = kernel.get([links.get(tunnel.name) for tunnel, _ in missing]) if missing else []
    created = [messages.parse_tunnel(answer) for answer in answers if not isinstance(answer, KernelError)]
    now = {**found, **{info.tunnel.name: info for info in created if info is not None}}
    corrections = plan_tunnels(desired, now, bridge).correct
    kernel.execute_all(corrections)
    return len(missing) + len(corrections)


def create_tunnel(
    tunnel: Tunnel, netns: int | None = None, bridge: LinkRef | None = None, *, timeout: float = 0
) -> None:
    """Creates a tunnel, in the namespace `netns` if that is not the calling thread's, which is the node's.

    Raises KernelError: EEXIST if another link has had its VNI for `timeout` seconds.
    """
    request = messages.create_tunnel(tunnel, netns, bridge)
    with RouteSocket() as node:
        for _ in Deadline(timeout).attempts(_FIRST_PAUSE, _LONGEST_PAUSE):
            errors = node.execute([request])
            if not errors:
                return
            if errors[0].errno != errno.EEXIST:
                break
    raise errors[0]


def remove_all_tunnels(netns: int) -> None:
    """Removes the tunnels in a network's namespace, before it goes: the kernel frees their VNI some time later.

    Raises LinkError.
    """
    with open_route_socket(netns) as kernel:
        found = [messages.parse_tunnel(body) for body in kernel.dump(links.dump())]
        tunnels = [each.ref for each in found if each is not None and each.tunnel.name in BRIDGED]
        kernel.execute_all([links.delete(each) for each in tunnels])

"""Links in a network's namespace that are neither the network's nor the kernel's own: host ends of pods, and strangers.

A namespace is not removed while it has one, since its links would go with it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link import links
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.exchange import open_route_socket
from cni_contrail.link.kernel_links import KERNEL_LINKS

HOST_END_PREFIX = "tap"
_OWN = frozenset(("lo", BRIDGE, UPLINK, *BRIDGED))


def ports_in(netns: int) -> set[str]:
    """Returns the names of the links. Raises LinkError."""
    with open_route_socket(netns) as kernel:
        return {links.parse_link(body).name for body in kernel.dump(links.dump())} - _OWN - KERNEL_LINKS


def strangers(ports: Iterable[str]) -> list[str]:
    """Returns the names of those that are not host ends of pods, sorted."""
    return sorted(name for name in ports if not name.startswith(HOST_END_PREFIX))

"""Links in a network's namespace that are neither the network's nor the kernel's own: host ends of pods, and strangers.

A namespace is not removed while it has one, since its links would go with it.

The kernel creates a link for each kind of tunnel in every namespace if the module of that kind is loaded, such as
`tunl0` where Calico uses IP-in-IP, and removes it with the namespace (`fb_tunnels_only_for_init_net` in
Documentation/admin-guide/sysctl/net.rst of Linux).
"""

from __future__ import annotations

from collections.abc import Iterable

from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link import links
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.exchange import open_route_socket

HOST_END_PREFIX = "tap"
_OWN = frozenset(("lo", BRIDGE.name, UPLINK, *BRIDGED))
_OF_THE_KERNEL = frozenset(("tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"))


def ports_in(netns: int) -> set[str]:
    """Returns the names of the links. Raises LinkError."""
    with open_route_socket(netns) as kernel:
        return {links.parse_link(body).name for body in kernel.dump(links.dump())} - _OWN - _OF_THE_KERNEL


def strangers(ports: Iterable[str]) -> list[str]:
    """Returns the names of those that are not host ends of pods, sorted."""
    return sorted(name for name in ports if not name.startswith(HOST_END_PREFIX))

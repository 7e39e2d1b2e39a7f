"""Kernel settings of a network's namespace, written before its first link exists.

Frames of a bridge pass no rules for IP: with an uplink its namespace has some, which are for what leaves the network,
and which would drop packets between its pods, and track them. The module `br_netfilter`, which kube-proxy needs, lets
them pass such rules in every new namespace, and may be loaded at any time.

A new namespace may inherit the host's (`net.core.devconf_inherit_init_net`), so each is written. Packets are not
forwarded in a network without an uplink (`uplinks`) whose bridge does not route between pods. Links created later have
IPv6 off, as host ends of pods need no address of their own; the bridge has it, without duplicate address detection: its
addresses exist on every node.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cni_contrail.datapath.kernel_settings import differing, read_settings, write_settings
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.sysctls import MIN_IPV6_MTU

_NAMESPACE = {
    "ipv6/conf/default/accept_ra": "0",
    "ipv6/conf/default/accept_dad": "0",
    "ipv6/conf/default/disable_ipv6": "1",
}
_NO_RULES_FOR_IP = {
    "bridge/bridge-nf-call-arptables": "0",
    "bridge/bridge-nf-call-ip6tables": "0",
    "bridge/bridge-nf-call-iptables": "0",
}
NO_FORWARDING = {
    "ipv4/ip_forward": "0",
    "ipv6/conf/all/forwarding": "0",
}
_BETWEEN_PODS = {
    "ipv4/ip_forward": "1",
    # Packets between pods leave by the bridge by which they came: a redirect would tell the pod to send them elsewhere.
    "ipv4/conf/all/send_redirects": "0",
    f"ipv4/conf/{BRIDGE}/send_redirects": "0",
    "ipv6/conf/all/forwarding": "1",
}
_OPTIONAL = ("bridge", "ipv6")
"""Settings of modules that a kernel may do without."""

_BRIDGE = {
    # Without it a gateway goes with another address of its subnet that was there before, and is removed.
    f"ipv4/conf/{BRIDGE}/promote_secondaries": "1",
}
_BRIDGE_WITH_IPV6 = {f"ipv6/conf/{BRIDGE}/disable_ipv6": "0"}


def configure_namespace(sysctl_dir: str) -> int:
    """Writes the settings of the namespace; returns the number of changes.

    For all functions here: the calling thread is in the network's namespace. Raises SysctlError.
    """
    return _apply(sysctl_dir, _NAMESPACE | _NO_RULES_FOR_IP)


def disable_forwarding(sysctl_dir: str) -> int:
    """Ends forwarding between links of the namespace; returns the number of changes."""
    return _apply(sysctl_dir, NO_FORWARDING)


def forward_between_pods(sysctl_dir: str) -> int:
    """Lets the bridge, which exists, route packets between pods; returns the number of changes."""
    return _apply(sysctl_dir, _BETWEEN_PODS)


def configure_bridge(sysctl_dir: str, *, mtu: int) -> int:
    """Writes the settings of the bridge, which exists and has this MTU; returns the number of changes."""
    has_ipv6 = mtu >= MIN_IPV6_MTU  # otherwise not even settings of it
    return _apply(sysctl_dir, _BRIDGE | _BRIDGE_WITH_IPV6 if has_ipv6 else _BRIDGE)


def _apply(sysctl_dir: str, desired: Mapping[str, str]) -> int:
    missing = tuple(f"{each}/" for each in _OPTIONAL if not os.path.isdir(f"{sysctl_dir}/net/{each}"))
    wanted = {key: value for key, value in desired.items() if not key.startswith(missing)}
    return write_settings(sysctl_dir, differing(wanted, read_settings(sysctl_dir, wanted)))

"""MAC addresses that ports and endpoints of pods must not have: those of gateways and nodes, and group addresses.

The bridge has one entry for each MAC. A pod with the gateway's MAC would receive what its network sends to the gateway,
one with a node's MAC what is routed to the pods of that node. The manager gives no pod such a MAC, and the agent serves
none; this is for what comes from elsewhere.
"""

from __future__ import annotations

from cni_contrail.datapath.desired import GATEWAY_MAC, Network

NODE_MAC_PREFIX = "0e:"
"""Beginning of MACs of nodes: locally administered, and not that of pods, which is 02."""

_ZERO = "00:00:00:00:00:00"
_GROUP_DIGITS = "13579bdf"  # the lowest bit of the first byte marks a group address


def mac_problem(mac: str) -> str | None:
    """Returns why a pod cannot have this MAC, in lower case with colons; None if it can."""
    if mac == GATEWAY_MAC:
        return f"MAC {mac} is reserved for gateways"
    if mac.startswith(NODE_MAC_PREFIX):
        return f"MAC {mac} is reserved for nodes"
    if mac[1] in _GROUP_DIGITS or mac == _ZERO:
        return f"MAC {mac} is not a unicast address"
    return None


def refused_macs(network: Network) -> str | None:
    """Returns which ports and endpoints of a network are not connected because of their MACs; None if all are."""
    found = [f"port {port.link}: {problem}" for port in network.ports if (problem := mac_problem(port.mac))]
    found += [
        f"pod on node {remote.tunnel}: {problem}" for remote in network.remotes if (problem := mac_problem(remote.mac))
    ]
    if not found:
        return None
    return f"{found[0]}; {len(found) - 1} more like this" if len(found) > 1 else found[0]

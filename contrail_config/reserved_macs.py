"""Reserved MAC addresses: what the datapath uses itself in networks, so that no interface of a pod may have it.

A pod with the gateway's MAC would receive what its network sends to the gateway, one with a node's MAC what is routed
to the pods of that node. `cni_contrail.datapath.reserved_macs` has the same values; a test compares both.
"""

from typing import Final

GATEWAY_MAC: Final = "00:00:5e:00:01:00"
"""MAC of every gateway on every node."""

NODE_MAC_PREFIX: Final = "0e:"
"""Beginning of MACs of nodes, in networks that are routed between nodes."""


def reserved_for(mac: str) -> str | None:
    """Returns what has this MAC, `gateways` or `nodes`; None if pods may. It is in lower case, with colons."""
    if mac == GATEWAY_MAC:
        return "gateways"
    return "nodes" if mac.startswith(NODE_MAC_PREFIX) else None

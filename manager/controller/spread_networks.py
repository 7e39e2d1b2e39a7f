"""Networks of NADs that have pods on so many nodes that the nodes should route them by block.

In an l2_l3 network each node gets each change of a pod; in an l3 network it gets one route for a block of addresses. So
a network whose NAD leaves the choice to the manager becomes l3 once it has pods on more than a number of nodes. It does
not go back by itself: that would only move the cost to the next change.
"""

import msgspec

from contrail_config.objects import ForwardingMode, FqName, VirtualNetwork
from manager.parsing.network_definition import NetworkDefinition


class SpreadNetworks:
    """Networks that have pods on too many nodes, until they are routed."""

    def __init__(self) -> None:
        self._nodes: dict[FqName, int] = {}

    def add(self, network: VirtualNetwork, nodes: int) -> bool:
        """Notes a network; returns False if it is known, or need not or cannot be routed."""
        is_new = not network.has_node_blocks and _can_be_routed(network) and network.fq_name not in self._nodes
        if is_new:
            self._nodes[network.fq_name] = nodes
        return is_new

    def remove(self, name: FqName) -> int | None:
        """Forgets a network; returns the number of its nodes, None if it is not known."""
        return self._nodes.pop(name, None)

    def with_mode(
        self, wanted: VirtualNetwork, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> VirtualNetwork:
        """Returns the network with the mode that its NAD states, or else `own`, as it is, has already or should get.

        Forgets a network whose mode is the NAD's choice, and one that is no more: `own` is then None.
        """
        if definition.forwarding_mode is not None or own is None:
            self.remove(wanted.fq_name)
            return wanted
        if not own.has_node_blocks and not (wanted.fq_name in self._nodes and _can_be_routed(wanted)):
            return wanted
        return msgspec.structs.replace(wanted, forwarding_mode=ForwardingMode.L3)


def _can_be_routed(network: VirtualNetwork) -> bool:
    """Returns whether pods have a gateway in each subnet, by which they would reach it."""
    return all(subnet.gateway is not None for subnet in network.subnets)

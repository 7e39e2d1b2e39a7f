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
        self._reported: set[FqName] = set()  # of those that cannot be routed

    def add(self, network: VirtualNetwork, nodes: int) -> bool:
        """Notes a network; returns False if it is known, or need not be routed."""
        is_new = not network.has_node_blocks and network.fq_name not in self._nodes
        if is_new:
            self._nodes[network.fq_name] = nodes
        return is_new

    def remove(self, name: FqName) -> int | None:
        """Forgets a network; returns the number of its nodes, None if it is not known."""
        self._reported.discard(name)
        return self._nodes.pop(name, None)

    def pop_unroutable(self, network: VirtualNetwork) -> tuple[int, list[str]] | None:
        """Returns the number of nodes of a noted network that cannot be routed, and why: its subnets without a gateway.

        Returns it once; None for all other networks.
        """
        name, subnets = network.fq_name, _without_gateway(network)
        if not subnets or name not in self._nodes or name in self._reported:
            return None
        self._reported.add(name)
        return self._nodes[name], subnets

    def with_mode(
        self, wanted: VirtualNetwork, definition: NetworkDefinition, own: VirtualNetwork | None
    ) -> VirtualNetwork:
        """Returns the network with the mode that its NAD states, or else `own`, as it is, has already or should get.

        Forgets a network whose mode is the NAD's choice, and one that is no more: `own` is then None.
        """
        if definition.forwarding_mode is not None or own is None:
            self.remove(wanted.fq_name)
            return wanted
        if not own.has_node_blocks and not (wanted.fq_name in self._nodes and not _without_gateway(wanted)):
            return wanted
        return msgspec.structs.replace(wanted, forwarding_mode=ForwardingMode.L3)


def _without_gateway(network: VirtualNetwork) -> list[str]:
    """Returns the subnets in which pods have no gateway, by which they would reach it."""
    return [subnet.cidr for subnet in network.subnets if subnet.gateway is None]

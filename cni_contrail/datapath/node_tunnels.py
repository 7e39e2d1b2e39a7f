"""What all tunnels of the node share in one round: whose packets are accepted, index 0 on other nodes, and the MTU.

A node's packets are accepted before anything leads to it, and no longer accepted when nothing does. Without the filter
no tunnel is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cni_contrail.datapath.desired import Network, RoutedNetwork, Underlay
from cni_contrail.datapath.removal_delay import RemovalDelay
from cni_contrail.datapath.routed_blocks import BlockOutcome, purge_blocks, reconcile_blocks
from cni_contrail.datapath.tunnel_filter import accept_nodes, forget_nodes, remove_filter
from cni_contrail.datapath.underlay_mtu import UNKNOWN, measure, mtu_problem

_FILTER, _INDEX_0 = "filter", 0
_MEASURED_FOR = 30.0  # seconds


class NodeTunnels:
    """The tunnels of this node; `removal_seconds` pass between a complete state and the removal of what it lacks.

    The calling thread is in the node's namespace. Methods raise LinkError.
    """

    def __init__(self, *, sysctl_dir: str, removal_seconds: float, clock: Callable[[], float]) -> None:
        self._sysctl_dir = sysctl_dir
        self._clock = clock
        self._removal_seconds = removal_seconds
        self._delay = RemovalDelay(removal_seconds, clock)
        self._mtu = UNKNOWN
        self._measured: tuple[tuple[str, ...], frozenset[str], float] | None = None
        self._stale_nodes = frozenset[str]()
        self.dropped = 0
        self.has_stale = False
        """Whether something is to be removed later."""

    @property
    def mtu(self) -> int | None:
        """The tunnel MTU of this node, None while it has no tunnel address, or no link has that."""
        return self._mtu.tunnel

    def begin(self, underlay: Underlay, networks: Sequence[Network]) -> int:
        """Accepts packets of all known nodes, and measures what fits; returns the number of changes."""
        self.has_stale = False
        self.dropped, self._stale_nodes = 0, frozenset()
        if not underlay.addresses:
            self._mtu, self._measured = UNKNOWN, None
            return 0
        outcome = accept_nodes(known_nodes(underlay, networks), underlay.port)
        self.dropped, self._stale_nodes = outcome.dropped, outcome.stale
        self._measure(underlay.addresses, used_nodes(underlay, networks))
        return outcome.changes

    def _measure(self, own: tuple[str, ...], nodes: frozenset[str]) -> None:
        """Measures what fits, unless that was done a moment ago."""
        now = self._clock()
        if self._measured is None or self._measured[:2] != (own, nodes) or now - self._measured[2] >= _MEASURED_FOR:
            self._mtu = measure(own, nodes)
            self._measured = own, nodes, now

    def may_remove(self, network: Network) -> bool:
        """Returns whether entries of a network for other nodes may be removed."""
        return self._delay.has_passed(network.vni, is_complete=network.is_complete)

    def mtu_problem(self, network: Network | RoutedNetwork) -> str | None:
        """Returns what is wrong with the MTU of a network, None if its packets fit into those of the underlay."""
        nodes = network.nodes()
        room = {node: each for node, each in self._mtu.room.items() if node in nodes}
        return mtu_problem(network.longest_packet, room)

    def reconcile_index_0(self, underlay: Underlay) -> BlockOutcome:
        """Brings index 0 on other nodes to its desired state."""
        network = underlay.routed
        removes = self._delay.has_passed(_INDEX_0, is_complete=network is None or network.is_complete)
        if network is None or not underlay.addresses:
            changes = int(purge_blocks()) if removes and network is None else 0
            return BlockOutcome(changes, (), has_stale=False)
        outcome = reconcile_blocks(network, underlay, removes=removes, sysctl_dir=self._sysctl_dir)
        problem = self.mtu_problem(network)
        return outcome if problem is None else outcome._replace(problems=(*outcome.problems, problem))

    def end(self, underlay: Underlay, networks: Sequence[Network]) -> int:
        """Accepts no more packets of nodes that are no longer known; returns the number of changes."""
        routed = underlay.routed
        is_complete = all(each.is_complete for each in networks) and (routed is None or routed.is_complete)
        if not self._delay.has_passed(_FILTER, is_complete=is_complete):
            self.has_stale = self.has_stale or bool(self._stale_nodes)
            return 0
        return forget_nodes(self._stale_nodes) if underlay.addresses else int(remove_filter())

    def forget_all(self) -> None:
        """Forgets since when states are complete."""
        self._delay = RemovalDelay(self._removal_seconds, self._clock)

    def forget(self, vni: int) -> None:
        """Forgets a network that is not desired any more."""
        self._delay.forget(vni)


def used_nodes(underlay: Underlay, networks: Sequence[Network]) -> frozenset[str]:
    """Returns the addresses of nodes that have something that this node reaches."""
    routed = frozenset[str]() if underlay.routed is None else underlay.routed.nodes()
    return routed.union(*(network.nodes() for network in networks))


def known_nodes(underlay: Underlay, networks: Sequence[Network]) -> frozenset[str]:
    """Returns the addresses between which tunnel packets pass: those of all nodes, and the node's own."""
    return underlay.peers.union(underlay.addresses, used_nodes(underlay, networks))

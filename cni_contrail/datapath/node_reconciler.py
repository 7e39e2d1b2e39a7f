"""Brings all networks of a node to their desired state, each on its own: one that fails does not stop the others.

A network that is no longer desired keeps what it has for `STALE_SECONDS`, and as long as it has a port: its list may be
late, and a namespace that is removed takes its links with it.

Blocking: a caller with an event loop runs it in a thread.

Not promised: that a network without a desired state was ours. The names of namespaces are reserved (`namespaces`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence

from cni_contrail.datapath.desired import UPLINK, Network, Routed
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.missing_modules import explained
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.routed_reconciler import reconcile_routed
from cni_contrail.datapath.uplinks import Uplinks, remove_uplink
from cni_contrail.link import links
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.errors import LinkError
from cni_contrail.link.exchange import open_route_socket
from cni_contrail.link.named_tuple import NamedTuple

STALE_SECONDS = 10.0
INDEX_0 = 0
"""Key of the routed ports in an outcome, whose other keys are VNIs; no network has this one."""

NOTHING_ROUTED = Routed((), None)
_OWN_LINKS = frozenset(("lo", BRIDGE.name, UPLINK))


class NodeOutcome(NamedTuple):
    """By number of the network: changes made, links of desired ports that do not exist, and what prevented the rest.

    `removed` are networks whose namespaces were removed. `drops` of a network without an entry are unknown.
    """

    changes: dict[int, int]
    missing: dict[int, frozenset[str]]
    problems: dict[int, str]
    removed: set[int]
    drops: dict[int, Drops]


class NodeReconciler:
    """The networks of this node. `clock` is monotonic, in seconds. Not thread-safe."""

    def __init__(
        self,
        namespaces: Namespaces,
        *,
        sysctl_dir: str = "/proc/sys",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._namespaces = namespaces
        self._sysctl_dir = sysctl_dir
        self._clock = clock
        self._stale_since: dict[int, float] = {}

    @property
    def has_stale(self) -> bool:
        """Whether there are networks to remove later."""
        return bool(self._stale_since)

    def forget(self) -> None:
        """Forgets since when networks are stale: another process programs them from now."""
        self._stale_since = {}

    def reconcile(self, desired: Sequence[Network], routed: Routed = NOTHING_ROUTED) -> NodeOutcome:
        """Brings every network and the routed ports to their desired state, and removes what is not desired.

        The calling thread is in the node's network namespace. Failures are in the outcome. Two networks with one number
        are a problem: their packets would meet.
        """
        outcome = NodeOutcome({}, {}, {}, set(), {})
        counts = Counter(network.vni for network in desired)
        unique = [network for network in desired if counts[network.vni] == 1]
        uplinks = Uplinks(unique, sysctl_dir=self._sysctl_dir)
        for network in desired:
            if counts[network.vni] > 1:
                outcome.problems[network.vni] = f"{counts[network.vni]} networks have the number {network.vni}"
            else:
                self._try_network(network, uplinks, outcome)
        for vni in self._stale(counts.keys()):
            self._try_to_remove(vni, outcome)
        self._try_routed(routed, outcome)
        return outcome

    def _try_routed(self, routed: Routed, outcome: NodeOutcome) -> None:
        try:
            result = reconcile_routed(routed, sysctl_dir=self._sysctl_dir)
        except LinkError as error:
            outcome.problems[INDEX_0] = str(explained(error))
            return
        outcome.changes[INDEX_0] = result.changes
        outcome.missing[INDEX_0] = result.missing
        outcome.drops[INDEX_0] = Drops(result.dropped, 0)
        problems = [f"{link}: {problem}" for link, problem in sorted(result.problems.items())]
        if result.node_problem:
            problems.insert(0, result.node_problem)
        if problems:
            outcome.problems[INDEX_0] = "; ".join(problems)

    def _try_network(self, network: Network, uplinks: Uplinks, outcome: NodeOutcome) -> None:
        try:
            with locked_network(self._namespaces, network.vni) as netns:
                result = reconcile_network(netns, network, sysctl_dir=self._sysctl_dir)
                outcome.changes[network.vni] = result.changes
                outcome.missing[network.vni] = result.missing
                outcome.drops[network.vni] = result.drops
                uplink = uplinks.reconcile(netns, network, result.uplink)
        except LinkError as error:
            outcome.problems[network.vni] = str(explained(error))
            return
        outcome.changes[network.vni] += uplink.changes
        if uplink.problem is not None:
            outcome.problems[network.vni] = uplink.problem

    def _stale(self, desired: Collection[int]) -> list[int]:
        """Returns the networks that have a namespace and have not been desired for STALE_SECONDS."""
        now = self._clock()
        unwanted = self._namespaces.existing().difference(desired)
        self._stale_since = {vni: self._stale_since.get(vni, now) for vni in unwanted}
        return [vni for vni, since in sorted(self._stale_since.items()) if now - since >= STALE_SECONDS]

    def _try_to_remove(self, vni: int, outcome: NodeOutcome) -> None:
        try:
            with locked_network(self._namespaces, vni) as netns:
                if self._has_ports(netns):
                    return
                remove_uplink(vni)
                self._namespaces.delete(vni)
            del self._stale_since[vni]
            outcome.removed.add(vni)
        except LinkError as error:
            outcome.problems[vni] = str(error)

    def _has_ports(self, netns: int) -> bool:
        return bool(ports_in(netns))


def ports_in(netns: int) -> set[str]:
    """Returns the links in a network's namespace that are not the network's own. Raises LinkError."""
    with open_route_socket(netns) as kernel:
        return {links.parse_link(body).name for body in kernel.dump(links.dump())} - _OWN_LINKS

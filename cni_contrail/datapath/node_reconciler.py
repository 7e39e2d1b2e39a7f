"""Brings all networks of a node to their desired state, each on its own: one that fails does not stop the others.

A network that is no longer desired keeps what it has for `STALE_SECONDS`, and as long as it has a port: its list may be
late, and a namespace that is removed takes its links with it. A link that is not a pod's is named then. Of many that
go at once, some are left to the next rounds.

What leads to pods of other nodes needs an underlay; without one it stays as it is.

Blocking: a caller with an event loop runs it in a thread.

Not promised: that a network without a desired state was ours. The names of namespaces are reserved (`namespaces`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from cni_contrail.datapath.desired import Network, Routed, Underlay
from cni_contrail.datapath.missing_modules import explained
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.network_ports import ports_in, strangers
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.node_outcome import INDEX_0, NodeOutcome
from cni_contrail.datapath.node_tunnels import NodeTunnels
from cni_contrail.datapath.port_counters import port_counters
from cni_contrail.datapath.routed_reconciler import reconcile_routed
from cni_contrail.datapath.tunnels import remove_all_tunnels
from cni_contrail.datapath.uplinks import Uplinks, remove_unused_table, remove_uplink
from cni_contrail.link.counters import Counters
from cni_contrail.link.errors import LinkError

STALE_SECONDS = 10.0
MOST_REMOVED = 50
"""Networks removed in one round, each of which takes up to 0.1 s: what else changes waits until the round ends."""
NOTHING_ROUTED = Routed((), None)


class NamespaceObserver(Protocol):
    """Learns of namespaces before and after they are reconciled."""

    def attached(self, vni: int, netns: int, /) -> None:
        """The namespace of a network is about to be reconciled; raises LinkError."""

    def audited(self, vni: int, generation: int, /) -> None:
        """The rules of a network, or those of the node (INDEX_0), are as desired in this generation."""


class _Unobserved:
    def attached(self, _vni: int, _netns: int, /) -> None:
        """Nobody learns of it."""

    def audited(self, _vni: int, _generation: int, /) -> None:
        """Nobody learns of it."""


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
        self._tunnels = NodeTunnels(sysctl_dir=sysctl_dir, removal_seconds=STALE_SECONDS, clock=clock)
        self._observer: NamespaceObserver = _Unobserved()
        self._fabric_subnets: tuple[str, ...] = ()

    def observe(self, observer: NamespaceObserver | None) -> None:
        """Passes what is done from now on to the observer, and to no other one."""
        self._observer = observer or _Unobserved()

    @property
    def has_stale(self) -> bool:
        """Whether there is something to remove later."""
        return bool(self._stale_since) or self._tunnels.has_stale

    @property
    def tunnel_mtu(self) -> int | None:
        """The longest packet of a pod that fits this node's tunnels, None if that is not known."""
        return self._tunnels.mtu

    def forget(self) -> None:
        """Forgets since when what is stale: another process programs the kernel from now."""
        self._stale_since = {}
        self._tunnels.forget_all()

    def counters(self, desired: Sequence[Network], routed: Routed) -> dict[int, dict[str, Counters]]:
        """Returns packets and bytes of the ports that exist, by number of the network and link."""
        return port_counters(self._namespaces, desired, routed)

    def reconcile(
        self,
        desired: Sequence[Network],
        routed: Routed = NOTHING_ROUTED,
        underlay: Underlay | None = None,
        fabric_subnets: Sequence[str] = (),
    ) -> NodeOutcome:
        """Brings every network and the routed ports to their desired state, and removes what is not desired.

        The calling thread is in the node's network namespace. Failures are in the outcome. Two networks with one number
        are a problem: their packets would meet. `fabric_subnets` are the CIDRs within which subnets may have a route.
        """
        self._fabric_subnets = tuple(fabric_subnets)
        outcome = NodeOutcome.nothing()
        counts = Counter(network.vni for network in desired)
        unique = [network for network in desired if counts[network.vni] == 1]
        self._try_routed(routed, outcome)
        underlay = self._try_to_accept_nodes(underlay, unique, counts.keys() | {INDEX_0}, outcome)
        self._try_networks(desired, counts.keys(), underlay, outcome)
        for vni in self._stale(counts.keys()):
            if len(outcome.removed) < MOST_REMOVED:
                self._try_to_remove(vni, outcome)
        if underlay is not None:
            self._try_blocks(underlay, unique, outcome)
        if INDEX_0 in outcome.changes and not any(network.snat or network.forwarding for network in desired):
            self._try_to_remove_table_of_uplinks(outcome)
        return outcome

    def _try_to_accept_nodes(
        self, underlay: Underlay | None, networks: Sequence[Network], chosen: Collection[int], outcome: NodeOutcome
    ) -> Underlay | None:
        """Returns the underlay if its nodes' packets pass the filter, so that the chosen networks may have tunnels."""
        if underlay is None:
            return None
        try:
            changes = self._tunnels.begin(underlay, networks)
        except LinkError as error:
            outcome.add_problem(INDEX_0, str(explained(error)))
            outcome.unconnected.update(chosen)
            return None
        outcome.changes[INDEX_0] = outcome.changes.get(INDEX_0, 0) + changes
        if INDEX_0 in outcome.drops:
            outcome.drops[INDEX_0] = outcome.drops[INDEX_0]._replace(tunnel=self._tunnels.dropped)
        return underlay

    def _try_blocks(self, underlay: Underlay, networks: Sequence[Network], outcome: NodeOutcome) -> None:
        try:
            result = self._tunnels.reconcile_index_0(underlay)
            self._tunnels.has_stale |= result.has_stale
            outcome.changes[INDEX_0] += result.changes
            for problem in result.problems:
                outcome.add_problem(INDEX_0, problem)
        except LinkError as error:
            outcome.add_problem(INDEX_0, str(explained(error)))
            outcome.unconnected.add(INDEX_0)
            return
        try:
            outcome.changes[INDEX_0] += self._tunnels.end(underlay, networks)
        except LinkError as error:
            outcome.add_problem(INDEX_0, str(explained(error)))

    def repair(
        self, desired: Sequence[Network], routed: Routed, underlay: Underlay | None, networks: Collection[int]
    ) -> NodeOutcome:
        """Brings only these networks to their desired state, and with `INDEX_0` the routed ports; removes no network.

        The rest is that of the latest `reconcile`.
        """
        outcome = NodeOutcome.nothing()
        had_stale = self._tunnels.has_stale
        if INDEX_0 in networks:
            self._try_routed(routed, outcome)
        underlay = self._try_to_accept_nodes(underlay, desired, networks, outcome)
        self._try_networks(desired, networks, underlay, outcome)
        if underlay is not None and INDEX_0 in networks:
            self._try_blocks(underlay, desired, outcome)
        self._tunnels.has_stale |= had_stale
        return outcome

    def _try_networks(
        self, desired: Sequence[Network], chosen: Collection[int], underlay: Underlay | None, outcome: NodeOutcome
    ) -> None:
        counts = Counter(network.vni for network in desired)
        unique = [network for network in desired if counts[network.vni] == 1]
        uplinks = Uplinks(unique, self._fabric_subnets, sysctl_dir=self._sysctl_dir)
        for network in unique:
            if network.vni in chosen:
                self._try_network(network, uplinks, underlay, outcome)
        for vni in chosen:
            if counts[vni] > 1:
                outcome.problems[vni] = f"{counts[vni]} networks have the number {vni}"
                outcome.unconnected.add(vni)

    def _try_routed(self, routed: Routed, outcome: NodeOutcome) -> None:
        try:
            result = reconcile_routed(routed, sysctl_dir=self._sysctl_dir)
        except LinkError as error:
            outcome.add_problem(INDEX_0, str(explained(error)))
            return
        self._observer.audited(INDEX_0, result.generation)
        outcome.changes[INDEX_0] = result.changes
        outcome.missing[INDEX_0] = result.missing
        outcome.links[INDEX_0] = result.links
        outcome.drops[INDEX_0] = result.drops
        outcome.add_problem(INDEX_0, result.node_problem)
        for link, problem in sorted(result.problems.items()):
            outcome.add_problem(INDEX_0, f"{link}: {problem}")

    def _try_network(self, network: Network, uplinks: Uplinks, underlay: Underlay | None, outcome: NodeOutcome) -> None:
        try:
            with locked_network(self._namespaces, network.vni) as netns:
                self._observer.attached(network.vni, netns)
                result = reconcile_network(
                    netns,
                    network,
                    underlay,
                    sysctl_dir=self._sysctl_dir,
                    removes_remotes=underlay is not None and self._tunnels.may_remove(network),
                )
                self._observer.audited(network.vni, result.generation)
                outcome.changes[network.vni] = result.changes
                outcome.missing[network.vni] = result.missing
                outcome.links[network.vni] = result.links
                outcome.drops[network.vni] = result.drops
                outcome.add_problem(network.vni, result.problem)
                if result.removed_tables:
                    outcome.removed_tables[network.vni] = result.removed_tables
                if not result.has_tunnels:
                    outcome.unconnected.add(network.vni)
                self._tunnels.has_stale |= result.has_stale
                uplink = uplinks.reconcile(netns, network, result.uplink)
        except LinkError as error:
            outcome.add_problem(network.vni, str(explained(error)))
            if network.vni not in outcome.changes:  # otherwise only the uplink failed
                outcome.unconnected.add(network.vni)
            return
        outcome.changes[network.vni] += uplink.changes
        outcome.refused.extend(uplink.refused)
        if underlay is not None:
            outcome.add_problem(network.vni, self._tunnels.mtu_problem(network))

    def _stale(self, desired: Collection[int]) -> list[int]:
        """Returns the networks that have a namespace and have not been desired for STALE_SECONDS."""
        now = self._clock()
        unwanted = self._namespaces.existing().difference(desired)
        self._stale_since = {vni: self._stale_since.get(vni, now) for vni in unwanted}
        for vni in unwanted:
            self._tunnels.forget(vni)
        return [vni for vni, since in sorted(self._stale_since.items()) if now - since >= STALE_SECONDS]

    def _try_to_remove(self, vni: int, outcome: NodeOutcome) -> None:
        try:
            with locked_network(self._namespaces, vni) as netns:
                ports = ports_in(netns)
                if ports:
                    if named := strangers(ports):
                        outcome.add_problem(vni, f"not removed: link {named[0]} is not of a pod")
                    return
                remove_uplink(vni)
                remove_all_tunnels(netns)
                self._namespaces.delete(vni)
            del self._stale_since[vni]
            outcome.removed.add(vni)
        except LinkError as error:
            outcome.problems[vni] = str(error)

    def _try_to_remove_table_of_uplinks(self, outcome: NodeOutcome) -> None:
        try:
            outcome.changes[INDEX_0] += remove_unused_table()
        except LinkError as error:
            outcome.add_problem(INDEX_0, str(explained(error)))

"""Default MTU: that of new interfaces in networks for which no MTU is configured.

Each node reports its tunnel MTU, the longest packet of a pod that fits into its tunnels. The smallest one is the
default, so packets between any two nodes fit. Running pods keep what they have when it changes.

One node with a wrong MTU must not slow down the whole cluster, nor be overlooked. So a node that has less than nine
tenths of what most nodes have does not count: it gets an event, and only its own pods get its MTU. TCP between them and
others adapts, since both sides state what they receive; larger packets of other protocols are lost on the way to it.
Without a majority (two nodes, or as many of one kind as of the other) the smallest counts. So a node, which need not
be honest, lowers the MTU of others by a tenth at most, or to `LOWEST` where it has half of the votes.
"""

import logging
from typing import Final

from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType
from manager.configuration import WITHOUT_TUNNELS
from manager.events import EventRecorder, Subject
from manager.reasons import Reason

log = logging.getLogger(__name__)

NOT_MEASURED: Final = 1430
"""Until a node has reported: fits tunnels over IPv6, and so over IPv4, between links of Ethernet's 1500 bytes."""

LOWEST: Final = 1210
"""What fits a tunnel over IPv6 on a link with the minimum MTU of IPv6, 1280; a node that reports less has this."""

_TENTHS: Final = 9

OUTLIERS: Final = "outliers"
"""Key of the queue."""

_SETTLED: Final = 60.0
"""Seconds between a change and the events on nodes: the reports of a cluster that starts arrive one by one."""


class DefaultMtu:
    """`spans_nodes`: whether packets go through tunnels. Belongs to one event loop."""

    def __init__(self, recorder: EventRecorder, *, spans_nodes: bool) -> None:
        self._recorder = recorder
        self._spans_nodes = spans_nodes
        self._reported: dict[str, int] = {}  # by node
        self._limit = 0  # nodes with less do not count
        self._smallest: int | None = None  # of those that count; None: to be computed
        self._outliers: dict[str, int] = {}  # that have an event
        self.queue = WorkQueue(self._report_outliers, limit=1)

    def reported(self, node: str, mtu: int | None) -> None:
        """Takes what a node reports. None changes nothing: its agent was just started, or its daemon does not run."""
        if not self._spans_nodes or mtu is None:
            return
        usable = max(mtu, LOWEST)
        if self._reported.get(node) != usable:
            self._reported[node] = usable
            self._changed()

    def removed(self, node: str) -> None:
        """Forgets a node whose report was deleted."""
        if self._reported.pop(node, None) is not None:
            self._changed()

    def of_cluster(self) -> int:
        """Returns the default MTU of pods on nodes that count."""
        if not self._spans_nodes:
            return WITHOUT_TUNNELS
        self._compute()
        return NOT_MEASURED if self._smallest is None else self._smallest

    def of_node(self, node: str) -> int:
        """Returns the default MTU of pods on a node."""
        default = self.of_cluster()
        return min(default, self._reported.get(node, default))

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    def _changed(self) -> None:
        self._smallest = None
        self.queue.add_after(OUTLIERS, _SETTLED)

    def _compute(self) -> None:
        if self._smallest is None and self._reported:
            mtus = sorted(self._reported.values())
            # Of the lower half the largest: at least half of all nodes have as much.
            self._limit = mtus[(len(mtus) - 1) // 2] * _TENTHS // 10
            self._smallest = next(mtu for mtu in mtus if mtu >= self._limit)

    async def _report_outliers(self, _key: str) -> None:
        default = self.of_cluster()
        outliers = {node: mtu for node, mtu in self._reported.items() if mtu < self._limit}
        new = {node: mtu for node, mtu in outliers.items() if self._outliers.get(node) != mtu}
        self._outliers = outliers
        for node, mtu in sorted(new.items()):
            message = (
                f"node {node}: packets of pods in its tunnels may have {mtu} bytes, those of most nodes {default}: new"
                f" pods on it get MTU {mtu}, others {default}; check the MTU of the link with its tunnel address"
            )
            log.warning("%s", message)
            await self._recorder.record(
                Subject("Node", "", node, node), EventType.WARNING, Reason.TUNNEL_MTU_TOO_LOW, message
            )

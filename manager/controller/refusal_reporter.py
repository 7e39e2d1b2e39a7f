"""Refusal reporter: events about networks that nodes do not connect, and subnets to which they have no route.

Nodes report states, again and again. A refusal gets one event when it appears, on the object that defines its network,
and another one if it disappears and appears again, but none if only its message changes. Of a refusal on many nodes
only the first few get an event, since each names its node. What cannot be reported, since the network or its NAD is
not known yet, is retried with the node's next report.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType, FqName, Refusal, VirtualNetwork
from manager.controller.nad_record import NadRecord
from manager.events import EventRecorder, Subject, about_nad
from manager.mapping.catalogue import Catalogue
from manager.reasons import Reason

log = logging.getLogger(__name__)

MAX_NODES = 8
"""Nodes with an event for one refusal."""

_Kind = tuple[FqName, str | None, str]
"""What a refusal is about, whatever its node: network, subnet, reason."""

FindNad = Callable[[str], NadRecord | None]
"""Returns the NAD `namespace/name`, None if it does not exist."""


class RefusalReporter:
    """Belongs to one event loop."""

    def __init__(self, *, catalogue: Catalogue, find_nad: FindNad, recorder: EventRecorder) -> None:
        self._catalogue = catalogue
        self._find_nad = find_nad
        self._recorder = recorder
        self._current: dict[str, tuple[Refusal, ...]] = {}  # as last reported, by node
        self._recorded: dict[str, frozenset[_Kind]] = {}  # by node
        self._nodes: Counter[_Kind] = Counter()
        self.queue = WorkQueue(self._reconcile, limit=1)

    def reported(self, node: str, refusals: Sequence[Refusal]) -> None:
        """Takes all refusals of a node; the same ones again cost nothing."""
        if not refusals and node not in self._recorded:
            return
        if self._recorded.get(node) != frozenset(map(_kind, refusals)):
            self._current[node] = tuple(refusals)
            self.queue.add(node)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    async def _reconcile(self, node: str) -> None:
        refusals = self._current.pop(node, None)
        if refusals is None:
            return
        before, current = self._recorded.get(node, frozenset()), {_kind(refusal) for refusal in refusals}
        self._nodes.subtract(before - current)
        recorded = before & current
        for refusal in refusals:
            if _kind(refusal) not in recorded and await self._record(node, refusal):
                recorded |= {_kind(refusal)}
        self._nodes = +self._nodes  # without those that no node has any more
        if recorded:
            self._recorded[node] = recorded
        else:
            self._recorded.pop(node, None)

    async def _record(self, node: str, refusal: Refusal) -> bool:
        """Records the event of a new refusal; returns False if its object is not known."""
        subject = self._subject(self._catalogue.networks.get(refusal.network))
        if subject is None:
            return False
        self._nodes[_kind(refusal)] += 1
        message = f"node {node}: {refusal.message}"
        log.warning("%s", message)
        if self._nodes[_kind(refusal)] <= MAX_NODES:
            reason = Reason.SUBNET_REFUSED if refusal.connected else Reason.NETWORK_NOT_CONNECTED
            await self._recorder.record(subject, EventType.WARNING, reason, message)
        return True

    def _subject(self, network: VirtualNetwork | None) -> Subject | None:
        """Returns the object that defines a network: its NAD, its isolated namespace, or the network itself."""
        if network is None:
            return None
        if network.nad is not None:
            record = self._find_nad(network.nad)
            return None if record is None else about_nad(record.nad)
        if network.namespace is not None:
            return Subject("Namespace", "", network.namespace, "")
        return Subject("VirtualNetwork", "", network.uuid, "")


def _kind(refusal: Refusal) -> _Kind:
    return refusal.network, refusal.subnet, refusal.reason

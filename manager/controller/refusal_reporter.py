"""Refusal reporter: events about networks that nodes do not connect, and subnets to which they have no route.

Nodes report states, again and again. A refusal gets one event when it appears, on the object that defines its network,
and another one if it disappears and appears again, but none if only its message changes. Of a refusal on many nodes
only the first few get an event, since each names its node. What cannot be reported, since the network, its NAD or the
node's pod is not known yet, or since the node has had too many events, is retried with the node's next report.

A node may report any network, since its agent may be compromised. So only networks of its own pods count. Events on the
objects of a tenant use up the limit of that tenant's namespace, so each node has a limit of its own, far below it.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence

from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType, FqName, Refusal, VirtualNetwork
from contrail_service.token_bucket import TokenBucket
from manager.controller.nad_record import NadRecord
from manager.events import EventRecorder, Subject, about_nad
from manager.mapping.catalogue import Catalogue
from manager.reasons import Reason

log = logging.getLogger(__name__)

MAX_NODES = 8
"""Nodes with an event for one refusal."""

RATE, BURST = 1.0, 32.0
"""Events per second, and at once, about the refusals of one node."""

_Kind = tuple[FqName, str | None, str]
"""What a refusal is about, whatever its node: network, subnet, reason."""

FindNad = Callable[[str], NadRecord | None]
"""Returns the NAD `namespace/name`, None if it does not exist."""

HasPods = Callable[[str, str], bool]
"""Returns whether a node, given by name, has pods in a network, given by uuid."""


class RefusalReporter:
    """Belongs to one event loop. `clock` returns monotonic seconds."""

    def __init__(
        self,
        *,
        catalogue: Catalogue,
        find_nad: FindNad,
        has_pods: HasPods,
        recorder: EventRecorder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalogue = catalogue
        self._find_nad = find_nad
        self._has_pods = has_pods
        self._recorder = recorder
        self._clock = clock
        self._limits: dict[str, TokenBucket] = {}  # by node
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
        self._limits = {name: limit for name, limit in self._limits.items() if limit.level < BURST}
        if recorded:
            self._recorded[node] = recorded
        else:
            self._recorded.pop(node, None)

    async def _record(self, node: str, refusal: Refusal) -> bool:
        """Records the event of a new refusal; returns False if it has to wait: see the module."""
        network = self._catalogue.networks.get(refusal.network)
        subject = self._subject(network)
        # The limit is first: the search for pods reads all records.
        if network is None or subject is None or not self._limit(node).take() or not self._has_pods(node, network.uuid):
            return False
        self._nodes[_kind(refusal)] += 1
        message = f"node {node}: {refusal.message}"
        log.warning("%s", message)
        if self._nodes[_kind(refusal)] <= MAX_NODES:
            reason = Reason.SUBNET_REFUSED if refusal.connected else Reason.NETWORK_NOT_CONNECTED
            await self._recorder.record(subject, EventType.WARNING, reason, message)
        return True

    def _limit(self, node: str) -> TokenBucket:
        if node not in self._limits:
            self._limits[node] = TokenBucket(rate=RATE, burst=BURST, clock=self._clock)
        return self._limits[node]

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

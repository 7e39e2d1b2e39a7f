"""Missing kernel modules: an event on each node whose kernel lacks what its datapath needs.

Nodes report states, again and again. There is one event when the modules of a node appear or change, and another one if
they disappear and appear again.
"""

import logging
from collections.abc import Sequence

from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType
from manager.events import EventRecorder, Subject
from manager.reasons import Reason

log = logging.getLogger(__name__)


class MissingModules:
    """Belongs to one event loop."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder
        self._reported: dict[str, frozenset[str]] = {}  # by node, of those that lack any
        self.queue = WorkQueue(self._record, limit=1)

    def reported(self, node: str, modules: Sequence[str]) -> None:
        """Takes all that a node reports; the same again costs nothing."""
        if not modules:
            self._reported.pop(node, None)
        elif self._reported.get(node) != frozenset(modules):
            self._reported[node] = frozenset(modules)
            self.queue.add(node)

    def removed(self, node: str) -> None:
        """Forgets a node whose report was deleted."""
        self._reported.pop(node, None)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    async def _record(self, node: str) -> None:
        modules = self._reported.get(node)
        if modules is None:  # loaded meanwhile
            return
        named = f"module{'s' if len(modules) > 1 else ''} {', '.join(sorted(modules))}"
        message = f"node {node}: its kernel lacks {named}: it takes no pods until it has what the datapath needs"
        log.warning("%s", message)
        subject = Subject("Node", "", node, node)
        await self._recorder.record(subject, EventType.WARNING, Reason.KERNEL_MODULE_MISSING, message)

"""Problems that nodes report of themselves: an event on each node that has any of one kind.

Nodes report states, again and again. There is one event when the problems of a node appear or change, and another one
if they disappear and appear again.
"""

import logging
from collections.abc import Callable, Sequence

from contrail_config.kube.work_queue import WorkQueue
from contrail_config.objects import EventType
from manager.events import EventRecorder, Subject
from manager.reasons import Reason

log = logging.getLogger(__name__)


class NodeProblems:
    """Problems of one kind, with the event `reason`; `describe` makes its message from what a node reports.

    Belongs to one event loop.
    """

    def __init__(self, recorder: EventRecorder, reason: Reason, describe: Callable[[Sequence[str]], str]) -> None:
        self._recorder = recorder
        self._reason = reason
        self._describe = describe
        self._reported: dict[str, frozenset[str]] = {}  # by node, of those that have any
        self.queue = WorkQueue(self._record, limit=1)

    def __len__(self) -> int:
        """The number of nodes that have any."""
        return len(self._reported)

    def reported(self, node: str, problems: Sequence[str]) -> None:
        """Takes all that a node reports; the same again costs nothing."""
        if not problems:
            self._reported.pop(node, None)
        elif self._reported.get(node) != frozenset(problems):
            self._reported[node] = frozenset(problems)
            self.queue.add(node)

    def removed(self, node: str) -> None:
        """Forgets a node whose report was deleted."""
        self._reported.pop(node, None)

    async def close(self) -> None:
        """Finishes the work in progress and starts no more."""
        await self.queue.close()

    async def _record(self, node: str) -> None:
        problems = self._reported.get(node)
        if problems is None:  # solved meanwhile
            return
        message = f"node {node}: {self._describe(sorted(problems))}"
        log.warning("%s", message)
        await self._recorder.record(Subject("Node", "", node, node), EventType.WARNING, self._reason, message)


def describe_missing_modules(modules: Sequence[str]) -> str:
    """Returns what a kernel lacks, and what that means."""
    named = f"module{'s' if len(modules) > 1 else ''} {', '.join(modules)}"
    return f"its kernel lacks {named}: it takes no pods until it has what the datapath needs"


def describe_conflicts(conflicts: Sequence[str]) -> str:
    """Returns what is in the way of this project on a node."""
    return "; ".join(conflicts)

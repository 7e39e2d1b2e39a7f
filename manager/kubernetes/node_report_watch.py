"""Watch of node reports: what the nodes have unplugged, do not connect or route, and can send to each other.

What was unplugged ends holds of addresses. A pod whose object was deleted before its sandbox was known to be removed
(by force, or because its node is unreachable) may still be plugged; the manager cannot tell, whatever agent the node
runs. So its addresses are held until the node reports its ports as unplugged, or until the longest hold ends.

Reports are states, not messages: an interface stays in the node's report for as long as it may matter, and all reports
are delivered again every few seconds. So the order of report and deletion does not matter, nor which manager sees it.
Outdated reports exist too (an agent that cannot reach the API server leaves its old one); callbacks recognize them
since all reports that exist at start are delivered before the manager does anything else, see `running`.

Stale reports (of nodes that are gone) are removed. Node objects are not read, and clocks of nodes are not trusted: a
report is stale after this manager has seen no change for a long time. An agent that still runs recreates its report.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeConflictError, KubeError, KubeNotFoundError
from contrail_config.kube.object_cache import Added, Deleted, Listed, Modified, ObjectChange
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, ContrailNodeObject, NodeReport
from contrail_config.kubernetes.validated import VALIDATED_REPORTS
from contrail_config.objects import Refusal

log = logging.getLogger(__name__)

REPEAT_INTERVAL = 10.0
"""Seconds after which all reports are delivered again."""

STALE_AFTER = 3600.0
"""Seconds without a change: ten times the longest interval between two writes of an agent."""

LIST_TIMEOUT = 10.0
"""Seconds for which a starting manager waits for the existing reports."""

OnUnplugged = Callable[[str, Sequence[str]], None]
"""Called with the node and uuids of interfaces whose ports it unplugged, for each delivery of a report."""

OnRefused = Callable[[str, Sequence[Refusal]], None]
"""Called with the node and all that it does not connect or route, for each delivery of a report."""

OnReport = Callable[[str, NodeReport], None]
"""Called with the node and its report, for each delivery of it."""

OnRemoved = Callable[[str], None]
"""Called with a node whose report was deleted."""


def may_be_plugged(_vm_uuid: str) -> bool:
    """Whether a port of a virtual machine may be plugged while its sandbox is not known to be removed: always."""
    return True


class NodeReportWatch:
    """Watches the reports of all nodes. Needs the verbs list, watch and delete.

    Times are in seconds; `clock` is monotonic.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        timings: ReflectorTimings | None = None,
        repeat_interval: float = REPEAT_INTERVAL,
        list_timeout: float = LIST_TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._reflector = Reflector(client, VALIDATED_REPORTS, timings=timings or ReflectorTimings())
        self.repeat_interval = repeat_interval
        self._list_timeout = list_timeout
        self._clock = clock
        self._changed_at: dict[str, float] = {}  # by node
        self._callbacks: list[OnUnplugged] = []
        self._refusal_callbacks: list[OnRefused] = []
        self._report_callbacks: list[OnReport] = []
        self._removal_callbacks: list[OnRemoved] = []
        self._listed = asyncio.Event()

    @property
    def nodes(self) -> list[str]:
        """Nodes with a known report."""
        return list(self._changed_at)

    def invalid_objects(self) -> list[InvalidObject]:
        """Reports that are skipped now."""
        return invalid_objects(VALIDATED_REPORTS, self._reflector.undecodable.values())

    def on_unplugged(self, callback: OnUnplugged) -> None:
        """Registers a callback for all reports from now on."""
        self._callbacks.append(callback)

    def on_refused(self, callback: OnRefused) -> None:
        """Registers a callback for all reports from now on, also for those without refusals."""
        self._refusal_callbacks.append(callback)

    def on_report(self, callback: OnReport) -> None:
        """Registers a callback for all reports from now on."""
        self._report_callbacks.append(callback)

    def on_removed(self, callback: OnRemoved) -> None:
        """Registers a callback for nodes whose reports are deleted."""
        self._removal_callbacks.append(callback)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watches until the context is left; on entry all existing reports are delivered, unless that times out."""
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._repeat())]
        for task in tasks:
            task.add_done_callback(_log_failure)
        try:
            await self._wait_until_listed()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def remove_stale(self) -> None:
        """Removes the reports that did not change for `STALE_AFTER`."""
        oldest = self._clock() - STALE_AFTER
        for node in [node for node, changed in self._changed_at.items() if changed <= oldest]:
            await self._remove(node)

    async def _wait_until_listed(self) -> None:
        try:
            async with asyncio.timeout(self._list_timeout):
                await self._listed.wait()
        except TimeoutError:
            log.warning("node reports: not listed within %g s: %s", self._list_timeout, self._reflector.problem)

    async def _follow(self) -> None:
        async with self._reflector.changes() as changes:
            async for change in changes:
                self._take(change)

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self.repeat_interval)
            for item in list(self._reflector.objects.values()):
                self._notify(item)
            await self.remove_stale()

    def _take(self, change: ObjectChange[ContrailNodeObject]) -> None:
        match change:
            case Added(found) | Modified(found):
                self._changed_at[found.metadata.name] = self._clock()
                self._notify(found)
            case Deleted(last):
                self._changed_at.pop(last.metadata.name, None)
                self._notify_refused(last.metadata.name, ())
                for callback in self._removal_callbacks:
                    callback(last.metadata.name)
            case Listed():
                self._listed.set()
            case UndecodableObject():
                log.warning("report of node %s: undecodable: %s", change.metadata.name, change.problem)

    def _notify(self, item: ContrailNodeObject) -> None:
        if item.status.unplugged:
            for callback in self._callbacks:
                callback(item.metadata.name, item.status.unplugged)
        self._notify_refused(item.metadata.name, item.status.refused)
        for notify in self._report_callbacks:
            notify(item.metadata.name, item.status)

    def _notify_refused(self, node: str, refusals: Sequence[Refusal]) -> None:
        for callback in self._refusal_callbacks:
            callback(node, refusals)

    async def _remove(self, node: str) -> None:
        item = self._reflector.objects.get(("", node))
        if item is None:
            return
        metadata = item.metadata
        # The version is a precondition: a report that was updated in the meantime is not removed.
        try:
            await self._client.delete(
                CONTRAIL_NODES, node, uid=metadata.uid, resource_version=metadata.resource_version
            )
        except (KubeNotFoundError, KubeConflictError):
            return  # the node reported again, or somebody else removed the report
        except KubeError as error:
            log.warning("report of node %s: not removed: %s", node, error)
            return
        log.info("report of node %s: removed, unchanged for %g s", node, STALE_AFTER)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("node reports are no longer watched", exc_info=error)

"""What nodes report: whose ports are unplugged, so that addresses need not be held back for them any longer.

A pod whose object went before anybody said that its sandbox had ended (it was deleted by force, or its node is away)
may still be plugged: no more is known of it here, whatever agent its node has. Its addresses are held back until the
node reports its ports unplugged, and where none does, for as long as addresses are held back at most.

Reports are not messages: what a node tells stands in its report for as long as it may matter, and is told on again
every few seconds. So it does not matter whether it came before or after whoever waits for it, nor to which manager. Who
has to tell old reports from new ones (an agent that cannot reach the server leaves its old one standing) knows them by
that: what stood there when a manager began is told before it does anything, see `followed`.

Reports that nobody writes any more (of nodes that are gone) are removed. Nodes themselves are not looked at, and
clocks of nodes are not believed: what counts is for how long this manager has seen no change. An agent that still
lives makes its report anew.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeConflictError, KubeError, KubeNotFoundError
from contrail_config.kube.object_cache import Added, Change, Deleted, Listed, Modified
from contrail_config.kube.reflector import Reflector, ReflectorTimings
from contrail_config.kubernetes.kinds import CONTRAIL_NODES, ContrailNodeObject

log = logging.getLogger(__name__)

REPEATED_EVERY = 10.0
"""Seconds after which all that is reported is told on again."""

FORGOTTEN_AFTER = 3600.0
"""Seconds without a change, ten times what agents leave between two writes at most."""

PATIENCE = 10.0
"""Seconds for which a manager that begins waits for the reports that stand."""

Unplugged = Callable[[Sequence[str]], None]
"""Told the uuids of interfaces whose ports are unplugged, as often as it is reported."""


def may_be_plugged(_vm_uuid: str) -> bool:
    """Whether a port of the machine may be plugged whose sandbox is not known to have ended: nobody knows better."""
    return True


class NodeReportWatch:
    """Follows the reports of all nodes. Needs the verbs list, watch and delete.

    Times are in seconds; `clock` is one that nobody sets.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        pace: ReflectorTimings | None = None,
        repeated_every: float = REPEATED_EVERY,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._reflector = Reflector(client, CONTRAIL_NODES, timings=pace or ReflectorTimings())
        self._repeated_every = repeated_every
        self._patience = patience
        self._clock = clock
        self._changed: dict[str, float] = {}  # when, by node
        self._unplugged: list[Unplugged] = []
        self._listed = asyncio.Event()

    def on_unplugged(self, callback: Unplugged) -> None:
        """Has the callback told of all that is reported from now on."""
        self._unplugged.append(callback)

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Follows until the context is left; inside, all that stood there was told, unless that took too long."""
        tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._repeat())]
        for task in tasks:
            task.add_done_callback(_log_failure)
        try:
            await self._until_listed()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def forget_silent(self) -> None:
        """Removes the reports that did not change for too long."""
        oldest = self._clock() - FORGOTTEN_AFTER
        for node in [node for node, changed in self._changed.items() if changed <= oldest]:
            await self._remove(node)

    async def _until_listed(self) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self._listed.wait()
        except TimeoutError:
            log.warning("it is not known yet what nodes report: %s", self._reflector.problem)

    async def _follow(self) -> None:
        async with self._reflector.changes() as changes:
            async for change in changes:
                self._take(change)

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self._repeated_every)
            for item in list(self._reflector.objects.values()):
                self._tell(item)
            await self.forget_silent()

    def _take(self, change: Change[ContrailNodeObject]) -> None:
        match change:
            case Added(found) | Modified(found):
                self._changed[found.metadata.name] = self._clock()
                self._tell(found)
            case Deleted(last):
                self._changed.pop(last.metadata.name, None)
            case Listed():
                self._listed.set()
            case UndecodableObject():
                log.warning("the report of node %s cannot be read: %s", change.metadata.name, change.problem)

    def _tell(self, item: ContrailNodeObject) -> None:
        if item.status.unplugged:
            for callback in self._unplugged:
                callback(item.status.unplugged)

    async def _remove(self, node: str) -> None:
        item = self._reflector.objects.get(("", node))
        if item is None:
            return
        metadata = item.metadata
        try:
            await self._client.delete(
                CONTRAIL_NODES, node, uid=metadata.uid, resource_version=metadata.resource_version
            )
        except (KubeNotFoundError, KubeConflictError):
            return  # the node is heard of again, or somebody else removed it
        except KubeError as error:
            log.warning("the report of node %s is not removed: %s", node, error)
            return
        log.info("removed the report of node %s, which was silent for an hour", node)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("nodes are not followed any more", exc_info=error)

"""A manager on a Kubernetes API server that can crash at any moment."""

import asyncio
import contextlib
import contextvars
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.kube.access import Access
from contrail_config.kube.client import connect
from contrail_config.kube.reflector import Pace
from contrail_config.store import Store
from manager.configuration import ManagerConfiguration
from manager.kubernetes.definition import NadDefinition
from manager.kubernetes.event_log import KubernetesEventLog
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter
from manager.manager import Manager
from tests.support.fake_apiserver.server import FakeApiServer

_PACE = Pace(first_pause=0.001, longest_pause=0.01, silence=0.2, short_watch=0.0, page_length=2)

_IN_MANAGER = contextvars.ContextVar("_IN_MANAGER", default=False)
"""Whether a task was begun by a manager, or by what a manager began."""


class ManagerLife:
    """One life of a manager, from its start to a crash in which nothing of it goes on, nor cleans up after itself."""

    def __init__(self, server: FakeApiServer, store: Store) -> None:
        self._server = server
        self._store = store
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        asyncio.get_running_loop().set_task_factory(self._make_task)
        client = await self._stack.enter_async_context(connect(Access(self._server.url), deadline=5))
        source = KubernetesSource(client, definition=NadDefinition(client), pace=_PACE, patience=0.2)
        statuses = StatusWriter(client, has_status=source.has_status)
        manager = Manager(
            ManagerConfiguration(),
            source=source,
            store=self._store,
            event_log=KubernetesEventLog(client, instance=""),
            registry=CollectorRegistry(),
            plugged=set[str]().__contains__,
            assigned=statuses.assigned,
        )
        context = contextvars.copy_context()
        context.run(_IN_MANAGER.set, True)
        self._main = asyncio.get_running_loop().create_task(manager.run(), context=context)

    def check(self) -> None:
        """Raises what the manager failed by."""
        if self._main.done():
            self._main.result()

    async def crash(self) -> None:
        asyncio.get_running_loop().set_task_factory(None)
        while alive := [task for task in self._tasks if not task.done()]:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive, timeout=0.01)
        await self._stack.aclose()

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
        if _IN_MANAGER.get() if context is None else context.get(_IN_MANAGER):
            self._tasks.add(task)
        return task

"""A manager on a Kubernetes API server that can crash at any moment."""

import asyncio
import contextlib
import contextvars
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.kube.access import Access
from contrail_config.kube.client import connect
from contrail_config.kube.reflector import Pace
from contrail_config.kubernetes.definitions import ensure_definitions
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import Store
from manager.configuration import ManagerConfiguration
from manager.kubernetes.definition import NadDefinition
from manager.kubernetes.event_log import KubernetesEventLog
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter
from manager.manager import Manager
from tests.support.fake_apiserver.server import FakeApiServer

_PACE = Pace(first_pause=0.001, longest_pause=0.01, silence=0.2, short_watch=0.0, page_length=2)

_LIFE: contextvars.ContextVar["ManagerLife | None"] = contextvars.ContextVar("_LIFE", default=None)
"""Whose a task is: of which manager, or of what that began."""


class ManagerLife:
    """One life of a manager, from its start to a crash in which nothing of it goes on, nor cleans up after itself.

    Without a `store` it keeps its own, on the API server.
    """

    def __init__(self, server: FakeApiServer, store: Store | None = None) -> None:
        self._server = server
        self._given_store = store
        self._stack = contextlib.AsyncExitStack()
        self.tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        asyncio.get_running_loop().set_task_factory(_make_task)
        client = await self._stack.enter_async_context(connect(Access(self._server.url), deadline=5))
        if self._given_store is None:
            await ensure_definitions(client)
        self.store = self._given_store or KubernetesStore(client, pace=0.0)
        source = KubernetesSource(client, definition=NadDefinition(client), pace=_PACE, patience=0.2)
        self.statuses = StatusWriter(client, has_status=source.has_status)
        self.manager = Manager(
            ManagerConfiguration(),
            source=source,
            store=self.store,
            event_log=KubernetesEventLog(client, instance=""),
            registry=CollectorRegistry(),
            plugged=set[str]().__contains__,
            assigned=self.statuses.assigned,
        )
        context = contextvars.copy_context()
        context.run(_LIFE.set, self)
        self._main = asyncio.get_running_loop().create_task(self.manager.run(), context=context)

    def check(self) -> None:
        """Raises what the manager failed by."""
        if self._main.done():
            self._main.result()

    async def crash(self) -> None:
        while alive := [task for task in self.tasks if not task.done()]:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive, timeout=0.01)
        await self._stack.aclose()


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    life = _LIFE.get() if context is None else context.get(_LIFE)
    if life is not None:
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
    return task

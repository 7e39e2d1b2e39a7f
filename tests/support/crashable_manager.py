"""A manager on a Kubernetes API server that can crash at any moment."""

import asyncio
import contextlib
import contextvars
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.errors import StoreError
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from contrail_config.kube.reflector import ReflectorTimings
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import UNPLUGGED_HOLD, Store
from manager.configuration import ManagerConfiguration
from manager.deletions import no_deletions
from manager.kubernetes.deleted_virtual_machines import DeletedVirtualMachines
from manager.kubernetes.event_log import KubernetesEventLog
from manager.kubernetes.nad_crd import NadCrd
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter
from manager.manager import Manager
from tests.support.fake_apiserver.server import FakeApiServer

_PACE = ReflectorTimings(first_pause=0.001, longest_pause=0.01, silence=2.0, short_watch=0.0, page_length=2)

_TURNS_TO_ARRIVE = 20
"""Of the event loop, until the server did what it was sent."""

_LIFE: contextvars.ContextVar["CrashableManager | None"] = contextvars.ContextVar("_LIFE", default=None)
"""Whose a task is: of which manager, or of what that began."""


class CrashableManager:
    """One life of a manager, from its start to a crash in which nothing of it goes on, nor cleans up after itself.

    Without a `store` it keeps its own, on the API server, where holds of addresses last a hundredth of their time.
    `access` leads to the server if it wants to know who asks.
    """

    def __init__(
        self, server: FakeApiServer, store: Store | None = None, *, access: ClientConfig | None = None
    ) -> None:
        self._access = access or ClientConfig(server.url)
        self._given_store = store
        self._stack = contextlib.AsyncExitStack()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.crashed = False

    async def start(self) -> None:
        asyncio.get_running_loop().set_task_factory(_make_task)
        client = await self._stack.enter_async_context(connect(self._access))
        context = contextvars.copy_context()
        context.run(_LIFE.set, self)
        context.run(self._begin, client)

    def _begin(self, client: KubeClient) -> None:
        self._client = client
        self.store = self._given_store or KubernetesStore(client, clock=_hasty_clock, flush_interval=0.0)
        source = KubernetesSource(client, nad_crd=NadCrd(client), timings=_PACE, timeout=0.2)
        self.statuses = StatusWriter(client, pod_of=source.pod_of)
        deletions = DeletedVirtualMachines(client, is_gone=source.is_gone, timings=_PACE)
        self.manager = Manager(
            ManagerConfiguration(),
            source=source,
            store=self.store,
            event_log=KubernetesEventLog(client, instance=""),
            registry=CollectorRegistry(),
            is_plugged=set[str]().__contains__,
            orphan_hold=UNPLUGGED_HOLD,
            on_assigned=self.statuses.on_assigned,
            watch_deletions=no_deletions if self._given_store else deletions.watch,
        )
        self._main = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        if self._given_store is None:
            await ensure_crds(self._client)
        await self.manager.run()

    def check(self) -> None:
        """Raises what the manager failed by."""
        if self._main.done():
            self._main.result()

    @property
    def gave_up(self) -> bool:
        """Whether it ended since the server refused what it needs: a supervisor starts the next one."""
        return self._main.done() and isinstance(self._main.exception(), StoreError)

    async def crash(self) -> None:
        """Ends it; what it sent arrives before the next one leads, as its lease sees to."""
        self.crashed = True
        while alive := [task for task in self.tasks if not task.done()]:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive, timeout=0.01)
        await self._stack.aclose()
        for _ in range(_TURNS_TO_ARRIVE):
            await asyncio.sleep(0)


def _hasty_clock() -> float:
    return asyncio.get_running_loop().time() * 100


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    life = _LIFE.get() if context is None else context.get(_LIFE)
    if life is not None:
        life.tasks.add(task)
        task.add_done_callback(life.tasks.discard)
        if life.crashed:
            task.cancel()  # a timer of then made it
    return task

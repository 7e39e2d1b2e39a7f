"""Manager on a Kubernetes API server that a test can crash at any moment."""

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
from manager.kubernetes.orphaned_virtual_machines import OrphanedVirtualMachines
from manager.kubernetes.source import KubernetesSource
from manager.kubernetes.status_writer import StatusWriter
from manager.manager import Manager, run_until_first_ends
from tests.support.fake_apiserver.server import FakeApiServer

_PACE = ReflectorTimings(first_pause=0.001, longest_pause=0.01, silence=2.0, short_watch=0.0, page_length=2)

_ITERATIONS_TO_ARRIVE = 20
"""Iterations of the event loop after which the server has processed all requests that were sent."""

_MANAGER: contextvars.ContextVar["CrashableManager | None"] = contextvars.ContextVar("_MANAGER", default=None)
"""The manager that started the current task, directly or through other tasks."""


class CrashableManager:
    """A manager from its start to its crash, after which none of its tasks runs on or cleans up.

    Without a `store` it uses one on the API server, with a clock that makes holds of addresses 100 times shorter.
    `access` has credentials for a server that authenticates clients.
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
        context.run(_MANAGER.set, self)
        context.run(self._begin, client)

    def _begin(self, client: KubeClient) -> None:
        self._client = client
        self.store = self._given_store or KubernetesStore(client, clock=_fast_clock, flush_interval=0.0)
        source = KubernetesSource(client, nad_crd=NadCrd(client), timings=_PACE, timeout=0.2)
        self.statuses = StatusWriter(client, pod_of=source.pod_of)
        self._orphans = OrphanedVirtualMachines(pod_exists=source.pod_exists, problems=source.problems)
        deletions = DeletedVirtualMachines(
            client, is_gone=source.is_gone, on_appeared=self._orphans.appeared, timings=_PACE
        )
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
        self._orphans.on_orphaned(self.manager.orphaned)
        self._main = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        if not isinstance(self.store, KubernetesStore):
            await self.manager.run()
            return
        await ensure_crds(self._client)
        await run_until_first_ends(self.manager.run(), self.store.watch_lost_addresses())

    def check(self) -> None:
        """Raises the manager's error if it failed."""
        if self._main.done():
            self._main.result()

    @property
    def gave_up(self) -> bool:
        """Whether it ended with a store error, after which a supervisor restarts it."""
        return self._main.done() and isinstance(self._main.exception(), StoreError)

    async def crash(self) -> None:
        """Cancels all tasks. Sent requests arrive before the next manager leads, as the lease ensures in reality."""
        self.crashed = True
        self._orphans.close()
        while alive := [task for task in self.tasks if not task.done()]:
            for task in alive:
                task.cancel()
            await asyncio.wait(alive, timeout=0.01)
        await self._stack.aclose()
        for _ in range(_ITERATIONS_TO_ARRIVE):
            await asyncio.sleep(0)


def _fast_clock() -> float:
    return asyncio.get_running_loop().time() * 100


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Any, *, context: contextvars.Context | None = None
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
    manager = _MANAGER.get() if context is None else context.get(_MANAGER)
    if manager is not None:
        manager.tasks.add(task)
        task.add_done_callback(manager.tasks.discard)
        if manager.crashed:
            task.cancel()  # started by a timer of the crashed manager
    return task

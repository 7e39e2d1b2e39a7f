"""A running manager on a real store, with a scripted source."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from prometheus_client import CollectorRegistry

from contrail_config.objects import Event, Subnet, VirtualMachine, VirtualNetwork, network_uuid
from contrail_config.store import ChangeType, Store, WatchStart
from contrail_config.vnc.store import VncStore
from manager.api.queries import ItemFilter
from manager.api.types import PodView
from manager.configuration import ManagerConfiguration
from manager.kubernetes.store_deletions import StoreDeletions
from manager.manager import Manager
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, Source, SourceEvent
from tests.support.recorded_reflector import eventually
from tests.support.stores_with_events import StoreWithEvents

MARK = ("default-domain", "marks", "mark")
"""Name of a network that tests write to the store to see when the manager's watch has delivered it."""

DEADLINE = 50.0
"""Seconds, for each wait of a test."""


class ScriptedSource:
    """A source that sends the events of a test."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[SourceEvent] = asyncio.Queue()

    def send(self, *events: SourceEvent) -> None:
        """Queues the events for the manager, in order."""
        for event in events:
            self._events.put_nowait(event)

    async def taken(self) -> None:
        """Waits until the manager has consumed all events."""
        await self._events.join()

    @contextlib.asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
        yield self._stream()

    async def _stream(self) -> AsyncIterator[SourceEvent]:
        while True:
            event = await self._events.get()
            yield event
            self._events.task_done()


class RunningManager:
    """A manager with the actions and queries of tests."""

    def __init__(
        self,
        store: StoreWithEvents,
        configuration: ManagerConfiguration,
        *,
        source: Source | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.scripted = ScriptedSource()
        self.registry = CollectorRegistry()
        self.plugged: set[str] = set()
        self.manager = Manager(
            configuration,
            source=source or self.scripted,
            store=store,
            event_log=store,
            registry=self.registry,
            is_plugged=self.plugged.__contains__,
            clock=clock,
            **_shared_store_options(store),
        )

    async def apply(self, *objects: Pod | Nad | Namespace) -> None:
        """Sends the objects as applied, and waits until the manager is idle."""
        await self.send(*(Applied(each) for each in objects))

    async def remove(self, *objects: Pod | Nad | Namespace) -> None:
        """Sends the objects as gone, and waits until the manager is idle."""
        await self.send(*(Gone(each) for each in objects))

    async def send_list(self, *objects: Pod | Nad | Namespace, complete: bool = True) -> None:
        """Sends the objects as a complete list, or an incomplete one, and waits until the manager is idle."""
        await self.send(*(Applied(each) for each in objects), Listed(complete=complete))

    async def send(self, *events: SourceEvent) -> None:
        """Sends the events, and waits until the manager is idle."""
        self.scripted.send(*events)
        async with asyncio.timeout(DEADLINE):
            await self.scripted.taken()
            await self.idle()

    async def idle(self) -> None:
        """Returns when the manager has nothing left to do now."""
        await self.manager.idle()

    async def catch_up(self) -> None:
        """Returns when the manager's watch has delivered all changes of the store so far, and it is idle."""
        uuid = network_uuid(MARK)
        known = self.manager.catalogue.networks
        async with asyncio.timeout(DEADLINE):
            await self.store.put_network(VirtualNetwork(MARK, uuid, (Subnet("192.0.2.0/24", None),)))
            await eventually(lambda: MARK in known)
            await self.store.delete_network(uuid)
            await eventually(lambda: MARK not in known)
            await self.idle()

    async def vm(self, pod: Pod) -> VirtualMachine:
        """The pod's virtual machine."""
        return await self.store.virtual_machine(pod.uid)

    async def view(self, pod: Pod) -> PodView:
        """The pod as the API shows it."""
        page = await self.manager.queries.pods(ItemFilter(namespace=pod.namespace, name=pod.name))
        (view,) = page.items
        return view

    async def network(self, name: str) -> VirtualNetwork | None:
        """The network whose name ends so."""
        return next((network for network in await self.store.networks() if network.fq_name[2] == name), None)

    async def events_on(self, about: Pod | Nad) -> list[tuple[str, str]]:
        """(reason, message) of the events on the object, in order of their creation."""
        events = await self.store.events(namespace=about.namespace, name=about.name)
        return [(event.reason, event.message) for event in sorted(events, key=_first_seen) if event.uid == about.uid]

    async def reasons(self, about: Pod | Nad) -> list[str]:
        """The reasons only."""
        return [reason for reason, _ in await self.events_on(about)]

    async def allocated_count(self) -> int:
        """Number of interfaces that have addresses."""
        return len(await self.store.address_owners())

    async def wait_for_vm(self, pod: Pod) -> VirtualMachine:
        """The pod's virtual machine, once it is written."""
        return await self.wait_for(lambda vm: vm.uuid == pod.uid)

    async def wait_for(self, condition: Callable[[VirtualMachine], bool]) -> VirtualMachine:
        """The first virtual machine that fulfils the condition, once there is one."""
        async with asyncio.timeout(DEADLINE), self.store.watch_virtual_machines() as changes:
            async for change in changes:
                if change.object and change.type is not ChangeType.DELETED and condition(change.object):
                    return change.object
        raise AssertionError("the watch ended")

    async def wait_until_deleted(self, name: str) -> None:
        """Returns when no pod of this name has a virtual machine."""
        async with asyncio.timeout(DEADLINE), self.store.watch_virtual_machines(start=WatchStart.NOW) as changes:
            if all(vm.pod != name for vm in await self.store.virtual_machines()):
                return
            async for change in changes:
                if change.object and change.object.pod == name and change.type is ChangeType.DELETED:
                    return

    async def wait_until_network_deleted(self, name: str) -> None:
        """Returns when there is no network whose name ends so."""
        async with asyncio.timeout(DEADLINE), self.store.watch_networks(start=WatchStart.NOW) as changes:
            if await self.network(name) is None:
                return
            async for change in changes:
                if change.object and change.object.fq_name[2] == name and change.type is ChangeType.DELETED:
                    return


@contextlib.asynccontextmanager
async def running_manager(
    store: StoreWithEvents,
    configuration: ManagerConfiguration | None = None,
    *,
    source: Source | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[RunningManager]:
    """Runs a manager until the context is left, then cancels it."""
    running = RunningManager(store, configuration or ManagerConfiguration(), source=source, clock=clock)
    task = asyncio.create_task(running.manager.run())
    try:
        yield running
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=DEADLINE)


def _shared_store_options(store: Store) -> dict[str, Any]:
    """Returns what the manager has of a store to which others write, too."""
    if not isinstance(store, VncStore):
        return {}
    deletions = StoreDeletions(store, is_gone=lambda _: False, on_appeared=lambda _: None)
    return {"watch_deletions": deletions.watch, "find_network": store.find_network}


def _first_seen(event: Event) -> float:
    return event.first_seen

"""A manager at work on a real store, with a source that a test plays."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from prometheus_client import CollectorRegistry

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import Event, Subnet, VirtualMachine, VirtualNetwork, network_uuid
from contrail_config.store import ChangeType, WatchStart
from manager.api.queries import ItemFilter
from manager.api.types import PodView
from manager.configuration import ManagerConfiguration
from manager.manager import Manager
from manager.source import Applied, Gone, Listed, Nad, Namespace, Pod, Source, SourceEvent
from tests.support.following import eventually

MARK = ("default-domain", "marks", "mark")
"""Name of a network that tests put into the store to see when the manager has heard of it."""

DEADLINE = 10.0
"""Seconds, for whatever a test waits for."""


class PlayedSource:
    """A source whose events a test sends."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[SourceEvent] = asyncio.Queue()

    def send(self, *events: SourceEvent) -> None:
        """Has the manager take the events, in order."""
        for event in events:
            self._events.put_nowait(event)

    async def taken(self) -> None:
        """Returns when the manager has taken all that was sent, and asks for more."""
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
    """What a test does with a manager, and asks of it."""

    def __init__(
        self,
        store: SqliteStore,
        configuration: ManagerConfiguration,
        *,
        source: Source | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.played = PlayedSource()
        self.registry = CollectorRegistry()
        self.plugged: set[str] = set()
        self.manager = Manager(
            configuration,
            source=source or self.played,
            store=store,
            event_log=store,
            registry=self.registry,
            is_plugged=self.plugged.__contains__,
            clock=clock,
        )

    async def apply(self, *objects: Pod | Nad | Namespace) -> None:
        """The source tells of these, and the manager does what it can."""
        await self.send(*(Applied(each) for each in objects))

    async def remove(self, *objects: Pod | Nad | Namespace) -> None:
        """The source tells that these are no more, and the manager does what it can."""
        await self.send(*(Gone(each) for each in objects))

    async def tell_all(self, *objects: Pod | Nad | Namespace, complete: bool = True) -> None:
        """The source tells of these and that they are all."""
        await self.send(*(Applied(each) for each in objects), Listed(complete=complete))

    async def send(self, *events: SourceEvent) -> None:
        """The source tells this, and the manager does what it can."""
        self.played.send(*events)
        async with asyncio.timeout(DEADLINE):
            await self.played.taken()
            await self.idle()

    async def idle(self) -> None:
        """Returns when the manager has nothing to do, but for what waits."""
        await self.manager.idle()

    async def caught_up(self) -> None:
        """Returns when the manager has heard of all that the store did so far, and has nothing to do."""
        uuid = network_uuid(MARK)
        known = self.manager.catalogue.networks
        async with asyncio.timeout(DEADLINE):
            await self.store.put_network(VirtualNetwork(MARK, uuid, (Subnet("192.0.2.0/24", None),)))
            await eventually(lambda: MARK in known)
            await self.store.delete_network(uuid)
            await eventually(lambda: MARK not in known)
            await self.idle()

    async def machine(self, pod: Pod) -> VirtualMachine:
        """What is written for the pod."""
        return await self.store.virtual_machine(pod.uid)

    async def view(self, pod: Pod) -> PodView:
        """How far the manager got with the pod."""
        (view,) = await self.manager.queries.pods(ItemFilter(namespace=pod.namespace, name=pod.name))
        return view

    async def network(self, name: str) -> VirtualNetwork | None:
        """The network with this last part of its name."""
        return next((network for network in await self.store.networks() if network.fq_name[2] == name), None)

    async def told(self, about: Pod | Nad) -> list[tuple[str, str]]:
        """(reason, message) of the events on the object, in the order in which they came."""
        events = await self.store.events(namespace=about.namespace, name=about.name)
        return [(event.reason, event.message) for event in sorted(events, key=_first_seen) if event.uid == about.uid]

    async def reasons(self, about: Pod | Nad) -> list[str]:
        """The reasons alone."""
        return [reason for reason, _ in await self.told(about)]

    async def given(self) -> int:
        """Number of interfaces that have addresses."""
        return len(await self.store.address_owners())

    async def written(self, pod: Pod) -> VirtualMachine:
        """The pod's machine, as soon as it is there."""
        return await self.machine_when(lambda machine: machine.uuid == pod.uid)

    async def machine_when(self, condition: Callable[[VirtualMachine], bool]) -> VirtualMachine:
        """The first machine that fulfils the condition, as soon as there is one."""
        async with asyncio.timeout(DEADLINE), self.store.watch_virtual_machines() as changes:
            async for change in changes:
                if change.object and change.type is not ChangeType.DELETED and condition(change.object):
                    return change.object
        raise AssertionError("the watch ended")

    async def machine_gone(self, name: str) -> None:
        """Returns as soon as no pod of this name has a machine."""
        async with asyncio.timeout(DEADLINE), self.store.watch_virtual_machines(start=WatchStart.NOW) as changes:
            if all(machine.pod != name for machine in await self.store.virtual_machines()):
                return
            async for change in changes:
                if change.object and change.object.pod == name and change.type is ChangeType.DELETED:
                    return

    async def network_gone(self, name: str) -> None:
        """Returns as soon as no network has this last part of its name."""
        async with asyncio.timeout(DEADLINE), self.store.watch_networks(start=WatchStart.NOW) as changes:
            if await self.network(name) is None:
                return
            async for change in changes:
                if change.object and change.object.fq_name[2] == name and change.type is ChangeType.DELETED:
                    return


@contextlib.asynccontextmanager
async def running_manager(
    store: SqliteStore,
    configuration: ManagerConfiguration | None = None,
    *,
    source: Source | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[RunningManager]:
    """A manager that runs until the context is left, by being cancelled."""
    running = RunningManager(store, configuration or ManagerConfiguration(), source=source, clock=clock)
    task = asyncio.create_task(running.manager.run())
    try:
        yield running
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=DEADLINE)


def _first_seen(event: Event) -> float:
    return event.first_seen

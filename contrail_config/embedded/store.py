"""The embedded store: what the manager and the agent of one machine share without a cluster.

Promised: an operation that was acknowledged outlives a kill -9 at any moment, and nothing half written is ever seen
(what a loss of power may take is told in `database`). The event loop is never blocked; watchers see every change once,
in the order of the commits, however slow they are (up to a bound, told in `watcher`). Objects are kept in the file, not
in memory: what grows in memory with the number of pods are bits of address pools.

Not promised: that other processes can write. One process owns the file, others may read it with SQLite's tools.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from contrail_config.embedded.engine import Engine
from contrail_config.embedded.feed import Subscription
from contrail_config.embedded.rows import Table, decode_machine, decode_network
from contrail_config.embedded.watcher import Watcher
from contrail_config.embedded.worker import Worker
from contrail_config.objects import Event, InterfaceAddress, VirtualMachine, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressRequest, Change, T_co, WatchStart

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """A `Store` and an `EventLog`, and remembers the uids that a source gave; made by `open`.

    Every method raises StoreUnavailableError once the store is closed, or when the file cannot be read or written.
    """

    def __init__(self, worker: Worker, engine: Engine) -> None:
        self._worker = worker
        self._engine = engine
        self._watchers: set[Watcher[VirtualMachine] | Watcher[VirtualNetwork]] = set()

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> "SqliteStore":
        """Opens the file, or makes it (0600) with its directory (0700). `clock` tells seconds since the epoch.

        Raises StoreUnavailableError, which names the file, if another process holds it (the message has its id), if it
        is damaged, not ours or of a newer version, or if the system refuses.
        """
        path = os.fspath(path)
        worker = Worker(partial(Engine, path, clock=clock), name=f"store {path}")
        return cls(worker, await worker.start())

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network of this uuid and returns it as kept: with its vni.

        Raises ConflictError if another network has the fq_name or the vni, or if given addresses would lose their
        subnet or meet their gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        return await self._write(self._engine.networks.put, network)

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network; one that is not there is no error. Raises InUseError while an address is given."""
        await self._write(self._engine.delete_network, uuid)

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, by name."""
        return await self._read(self._engine.networks.all)

    async def put_virtual_machine(self, machine: VirtualMachine) -> None:
        """Creates or replaces the machine of this uuid. Raises ConflictError if another machine has the name."""
        await self._write(self._engine.machines.put, machine)

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a machine and frees its interfaces' addresses, which are held back for `hold` seconds.

        A retired network that it was the last one in goes with it. A machine that is not there is no error.
        """
        await self._write(self._engine.machines.delete, uuid, hold=hold)

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The machine of this uuid. Raises NotFoundError."""
        return await self._read(self._engine.machines.get, uuid)

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All machines, of one node if it is given, by name."""
        return await self._read(self._engine.machines.all, node=node)

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Gives an address for each request, in the same order: all or none.

        Raises NotFoundError (network), AddressUnavailableError (wish), ExhaustedError.
        """
        return await self._write(self._engine.addresses.allocate, requests)

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Frees all addresses of these owners; of those freed already it shortens the hold, never lengthens it."""
        await self._write(self._engine.addresses.release, owners, hold=hold)

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """The same for what these owners had: what they have now they keep."""
        await self._write(self._engine.addresses.shorten_holds, owners, hold=hold)

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses now."""
        return await self._read(self._engine.addresses.owners)

    async def held_owners(self) -> dict[str, str]:
        """Interfaces that have no address any more, but had one that is still held back, with their networks' uuids."""
        return await self._read(self._engine.addresses.held_owners)

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of machines (of one node if it is given), once and in order, until the context is left.

        The iteration ends when the store is closed. It raises StoreUnavailableError when its reader is more than
        `watcher.MAX_BEHIND` changes behind.
        """
        read_page = partial(self._engine.machines.page, node=node)
        return self._watch(Subscription(Table.MACHINES, read_page, start=start, node=node), decode_machine)

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """The same for networks."""
        subscription = Subscription(Table.NETWORKS, self._engine.networks.page, start=start)
        return self._watch(subscription, decode_network)

    async def record_event(self, event: Event) -> None:
        """Adds an event; one that equals an earlier one in object, type, reason and message adds to its count."""
        await self._write(self._engine.events.record, event)

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Those events, oldest `last_seen` first."""
        return await self._read(self._engine.events.find, kind=kind, namespace=namespace, name=name)

    async def identities(self) -> dict[tuple[str, str, str], str]:
        """(kind, namespace, name) to uid."""
        return await self._read(self._engine.identities.all)

    async def remember_identity(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Keeps the uid until it is forgotten."""
        await self._write(self._engine.identities.put, kind, namespace, name, uid)

    async def forget_identity(self, kind: str, namespace: str, name: str) -> None:
        """Forgets it; one that is not there is no error."""
        await self._write(self._engine.identities.delete, kind, namespace, name)

    async def close(self) -> None:
        """Finishes what was begun, ends all watchers, and gives the file free. Repeatable."""
        await self._worker.stop()
        for watcher in self._watchers:
            watcher.end()

    async def _write(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.run(partial(operation, *args, **kwargs), writes=True)

    async def _read(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.run(partial(operation, *args, **kwargs), writes=False)

    @asynccontextmanager
    async def _watch(
        self, subscription: Subscription, decode: Callable[[bytes], T_co]
    ) -> AsyncIterator[AsyncIterator[Change[T_co]]]:
        feed = self._engine.feed
        ask_for_page = partial(self._worker.post, partial(feed.next_page, subscription))
        watcher = Watcher(decode, ask_for_page, listing=subscription.listed_to is not None)
        self._watchers.add(watcher)
        try:
            await self._read(feed.subscribe, subscription, watcher.take)
            yield watcher
        finally:
            watcher.cut()
            self._watchers.discard(watcher)
            self._worker.post(partial(feed.unsubscribe, subscription))

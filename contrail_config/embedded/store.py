"""Embedded store: shared by the manager and the agent of one node without a cluster.

Guaranteed: an acknowledged operation survives kill -9 at any moment, and no partial write is ever visible (see
`database` for the effect of a power loss). The event loop is never blocked. Watchers see every change once, in commit
order, however slow they are (up to a bound, see `watcher`). Objects are in the file, not in memory: only the bits of
the address pools grow in memory with the number of pods.

Not guaranteed: writes by other processes. One process owns the file; others may read it with SQLite's tools.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from contrail_config.embedded.change_feed import Subscription
from contrail_config.embedded.engine import Engine
from contrail_config.embedded.full_disk import FullDisk
from contrail_config.embedded.rows import Table, decode_network, decode_virtual_machine
from contrail_config.embedded.watcher import Watcher
from contrail_config.embedded.worker import Worker
from contrail_config.errors import StoreFullError
from contrail_config.objects import Event, InterfaceAddress, NetworkSlice, VirtualMachine, VirtualNetwork
from contrail_config.steady_clock import SteadyClock
from contrail_config.store import (
    DEFAULT_HOLD,
    AddressPage,
    AddressRequest,
    Change,
    EventPage,
    HeldAddress,
    T_co,
    WatchStart,
)

P = ParamSpec("P")
T = TypeVar("T")


class SqliteStore:
    """`Store` and `EventLog`; also stores the uids that a source assigned. Created by `open`.

    Every method raises StoreUnavailableError if the store is closed, or the file cannot be read or written, and those
    that write StoreFullError if the disk is full: then nothing of the operation is written.
    """

    def __init__(self, worker: Worker, engine: Engine) -> None:
        self._worker = worker
        self._engine = engine
        self._watchers: set[Watcher[VirtualMachine] | Watcher[VirtualNetwork] | Watcher[NetworkSlice]] = set()
        self._full_disk = FullDisk(partial(worker.run, engine.database.probe, writes=True))

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *, clock: Callable[[], float] | None = None) -> "SqliteStore":
        """Opens the file, or creates it (0600) with its directory (0700). `clock` returns seconds since the epoch.

        Raises StoreUnavailableError, which names the file, if another process has locked it (the message has its id),
        if it is damaged, belongs to another application or a newer release, or on a system error.
        """
        path = os.fspath(path)
        worker = Worker(partial(Engine, path, clock=clock or SteadyClock()), name=f"store {path}")
        return cls(worker, await worker.start())

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network of this uuid and returns it as stored, with its vni.

        Raises ConflictError if another network has the fq_name or the vni, if an allocated address would be in no
        subnet or equal a gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        return await self._write(self._engine.networks.put, network)

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network. Idempotent. Raises InUseError while an address is allocated."""
        await self._write(self._engine.delete_network, uuid)

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, sorted by name."""
        return await self._read(self._engine.networks.all)

    async def put_virtual_machine(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine of this uuid. Raises ConflictError if another one has the name."""
        await self._write(self._engine.virtual_machines.put, virtual_machine)

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine of this uuid.

        No effect if a virtual machine with interfaces has the uuid or the name.
        """
        await self._write(self._engine.virtual_machines.put_pending, virtual_machine)

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        """Deletes the virtual machine of this uuid if it is pending. Idempotent."""
        await self._write(self._engine.virtual_machines.delete_pending, virtual_machine.uuid)

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a virtual machine, releases its addresses and holds them for `hold` seconds. Idempotent.

        Also deletes retired networks that have no other interface.
        """
        await self._write(self._engine.virtual_machines.delete, uuid, hold=hold)

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The virtual machine of this uuid. Raises NotFoundError, also if it is pending."""
        return await self._read(self._engine.virtual_machines.get, uuid)

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All virtual machines (of one node) that are not pending, sorted by name."""
        return await self._read(self._engine.virtual_machines.all, node=node, include_pending=False)

    async def recover_virtual_machines(self) -> Iterable[VirtualMachine]:
        """All virtual machines, also pending ones, sorted by name: a transaction leaves nothing unfinished."""
        return await self._read(self._engine.virtual_machines.all, node=None, include_pending=True)

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Allocates one address for each request and returns them in the same order: all or none.

        Raises NotFoundError (network), AddressUnavailableError (requested address), ExhaustedError.
        """
        return await self._write(self._engine.addresses.allocate, requests)

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Releases all addresses of these owners. Shortens the holds of those released before, never extends them."""
        await self._write(self._engine.addresses.release, owners, hold=hold)

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Shortens the holds of addresses that these owners released. Allocated addresses stay."""
        await self._write(self._engine.addresses.shorten_holds, owners, hold=hold)

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses."""
        return await self._read(self._engine.addresses.owners)

    async def held_owners(self) -> dict[str, HeldAddress]:
        """By interface uuid, for interfaces that have no address but still a held one."""
        found = await self._read(self._engine.addresses.held_owners)
        return {owner: HeldAddress(network_uuid, None) for owner, network_uuid in found.items()}

    async def address_page(self, network_uuid: str, *, limit: int, after: str | None = None) -> AddressPage:
        """Allocated and held addresses of a network, by their text, which an index orders."""
        return await self._read(self._engine.addresses.page, network_uuid, limit=limit, after=after or "")

    async def recover_addresses(self, virtual_machines: Iterable[VirtualMachine]) -> list[str]:  # noqa: ARG002 - protocol
        """None is lost: a virtual machine and the record of its addresses are rows of one file, in one transaction."""
        return []

    async def has_addresses(self, network_uuid: str) -> bool:
        """Whether an address of the network is allocated."""
        return await self._read(self._engine.addresses.has_any, network_uuid)

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None, include_pending: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of virtual machines (of one node), once and in order, until the context is left.

        Without `include_pending`, a virtual machine that is pending does not exist for the watch. The iteration ends
        when the store is closed. It raises StoreUnavailableError when its reader is more than `watcher.MAX_BEHIND`
        changes behind.
        """
        read_page = partial(self._engine.virtual_machines.page, node=node, include_pending=include_pending)
        subscription = Subscription(
            Table.VIRTUAL_MACHINES, read_page, start=start, node=node, include_pending=include_pending
        )
        return self._watch(subscription, decode_virtual_machine)

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """Like `watch_virtual_machines`, for networks."""
        subscription = Subscription(Table.NETWORKS, self._engine.networks.page, start=start)
        return self._watch(subscription, decode_network)

    async def record_event(self, event: Event) -> Event:
        """Adds an event, or increases the count of the one with the same object, type, reason and message."""
        return await self._write(self._engine.events.record, event)

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Matching events, oldest `last_seen` first."""
        return await self._read(self._engine.events.find, kind=kind, namespace=namespace, name=name)

    async def event_page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        """At most `limit` events, oldest `last_seen` first. Raises StoreError if the token is malformed."""
        return await self._read(self._engine.events.page, namespace=namespace, limit=limit, token=token)

    async def identities(self) -> dict[tuple[str, str, str], str]:
        """(kind, namespace, name) to uid."""
        return await self._read(self._engine.identities.all)

    async def remember_identity(self, kind: str, namespace: str, name: str, uid: str) -> None:
        """Stores the uid until `forget_identity`."""
        await self._write(self._engine.identities.put, kind, namespace, name, uid)

    async def forget_identity(self, kind: str, namespace: str, name: str) -> None:
        """Deletes the uid. Idempotent."""
        await self._write(self._engine.identities.delete, kind, namespace, name)

    def problems(self) -> list[str]:
        """Why writes fail: the disk is full; empty if they do not."""
        return [] if self._full_disk.problem is None else [self._full_disk.problem]

    async def close(self) -> None:
        """Finishes pending operations, ends all watches and releases the file. Idempotent."""
        await self._full_disk.close()
        await self._worker.stop()
        for watcher in self._watchers:
            watcher.end()

    async def _write(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._worker.run(partial(operation, *args, **kwargs), writes=True)
        except StoreFullError as error:
            self._full_disk.note(error)
            raise

    async def _read(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._worker.run(partial(operation, *args, **kwargs), writes=False)

    @asynccontextmanager
    async def _watch(
        self, subscription: Subscription, decode: Callable[[bytes], T_co]
    ) -> AsyncIterator[AsyncIterator[Change[T_co]]]:
        feed = self._engine.feed
        request_page = partial(self._worker.post, partial(feed.next_page, subscription))
        watcher = Watcher(decode, request_page, listing=subscription.listed_to is not None)
        self._watchers.add(watcher)
        try:
            # In the worker thread, so the start of the watch has a definite place among the commits.
            await self._read(feed.subscribe, subscription, watcher.push)
            yield watcher
        finally:
            watcher.abort()
            self._watchers.discard(watcher)
            # Queued without waiting: a second cancellation could interrupt an await here.
            self._worker.post(partial(feed.unsubscribe, subscription))

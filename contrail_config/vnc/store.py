"""Store on a Contrail API server, whose objects reach vrouter agents.

Reads are answered from a cache, which a watch keeps up to date and to which own writes are applied at once. The server
has no compare-and-swap and no transactions: see `mapping` and `machine_writer` for how each operation stays atomic for
its readers, `allocator` for how addresses stay unique.
"""

import asyncio
import heapq
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import NamedTuple, Self

from contrail_config.errors import ConflictError, NotFoundError, StoreError
from contrail_config.objects import FqName, InterfaceAddress, VirtualMachine, VirtualNetwork
from contrail_config.store import (
    DEFAULT_HOLD,
    AddressPage,
    AddressRequest,
    Change,
    HeldAddress,
    StoredAddress,
    WatchStart,
)
from contrail_config.vnc.allocator import Allocator
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.duplicates import Duplicates
from contrail_config.vnc.errors import VncServerError
from contrail_config.vnc.failed_writes import FailedWrites
from contrail_config.vnc.follower import DEFAULT_INTERVALS, Follower, Intervals
from contrail_config.vnc.foreign_networks import ForeignNetworks, NamespaceExists, Project
from contrail_config.vnc.hold_timer import HoldTimer
from contrail_config.vnc.holds import Clock, Holds
from contrail_config.vnc.keyed_locks import KeyedLocks
from contrail_config.vnc.leftovers import Leftovers
from contrail_config.vnc.machine_writer import MachineWriter
from contrail_config.vnc.named_networks import NamedNetworks
from contrail_config.vnc.network_adoption import NetworkAdoption
from contrail_config.vnc.network_leftovers import NetworkLeftovers
from contrail_config.vnc.network_writer import NetworkWriter
from contrail_config.vnc.repairs import Repairs
from contrail_config.vnc.router_links import RouterLinks
from contrail_config.vnc.store_errors import as_store_error
from contrail_config.vnc.stray_addresses import StrayAddresses
from contrail_config.vnc.takeover import StaticPods, Takeover, no_static_pods
from contrail_config.vnc.virtual_routers import NodeAddresses, VirtualRouters, no_addresses


class _Deletion(NamedTuple):
    """A deletion that failed after readers saw it, perhaps. `hold` is in seconds."""

    machine: VirtualMachine
    hold: float


class VncStore:
    """`Store` of one cluster, from `start` to `close`. `clock` returns seconds since the epoch (`ServerClock`).

    `node_addresses` returns the addresses of a node, to find its virtual router by. `take_over`: pods and networks that
    another program wrote for the cluster become ours, unless one of the pods is one of `static_pods`. `projects` are
    those whose networks may be named (`find_network`), beside those of the cluster's namespaces (`use_namespaces`).
    """

    def __init__(
        self,
        client: VncClient,
        *,
        cluster: str,
        clock: Clock | None = None,
        intervals: Intervals = DEFAULT_INTERVALS,
        node_addresses: NodeAddresses = no_addresses,
        take_over: bool = False,
        static_pods: StaticPods = no_static_pods,
        projects: Collection[Project] = (),
    ) -> None:
        self._foreign = foreign = ForeignNetworks(client, cluster, projects)
        self._cache = Cache(cluster, read_foreign=foreign.read)
        self._named = NamedNetworks(client, self._cache, foreign)
        self._clock = clock = clock or client.clock
        self._unfinished: dict[str, _Deletion] = {}
        self._failed = FailedWrites()
        self._locks = KeyedLocks()
        self._follower = Follower(client, self._cache, intervals)
        self.routers = routers = VirtualRouters(client, node_addresses)
        self._takeover = Takeover(client, cluster, static_pods) if take_over else None
        adoption = NetworkAdoption(client, cluster) if take_over else None
        self._networks = NetworkWriter(client, self._cache, cluster, foreign=foreign, adoption=adoption)
        self._machines = MachineWriter(client, self._cache, self._networks, routers)
        self._allocator = Allocator(client, self._cache, cluster, clock)
        self._holds = Holds(client, self._cache, cluster, clock)
        self._timer = HoldTimer(self._cache.addresses, clock, self._expire)
        self.router_links = RouterLinks(client, self._cache, routers, self._locks)
        self._network_leftovers = NetworkLeftovers(client, self._networks, self._locks, cluster)
        self._leftovers = Leftovers(
            client, self._machines, self._locks, cluster=cluster, release=self._release_until, clock=clock
        )
        self._duplicates = Duplicates(client, self._leftovers)
        self.repairs = Repairs(
            client,
            self._cache,
            self._machines,
            self._locks,
            cluster=cluster,
            allocate=self.allocate,
            leftovers=self._leftovers,
            networks=self._network_leftovers,
            strays=StrayAddresses(self._cache, self._locks, partial(self._holds.hold, hold=DEFAULT_HOLD)),
        )

    @classmethod
    async def open(
        cls,
        client: VncClient,
        *,
        cluster: str,
        clock: Clock | None = None,
        intervals: Intervals = DEFAULT_INTERVALS,
        take_over: bool = False,
    ) -> Self:
        """Returns a started store. Raises StoreError, see `start`."""
        store = cls(client, cluster=cluster, clock=clock, intervals=intervals, take_over=take_over)
        await store.start()
        return store

    async def start(self) -> None:
        """Reads the cluster's objects, and follows them from then on.

        Raises StoreUnavailableError; StoreError if another program writes the pods of this cluster, and may not or
        cannot be taken over from.
        """
        if self._takeover is not None:
            await self._takeover.run()
        self._follower.start()
        try:
            await self._follower.wait_until_synced()
            self._cache.other_writers.check()
            await self._named.find_used()
        except StoreError:
            await self._follower.stop()
            raise

    def problems(self) -> list[str]:
        """Returns why the objects read may be out of date; empty if they are not."""
        return [] if self._follower.problem is None else [self._follower.problem]

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network of this uuid and returns it as stored, with its vni."""
        async with self._locks.held([network.uuid, network.name]):
            return await self._networks.put(network)

    def use_namespaces(self, exists: NamespaceExists) -> None:
        """Permits to name networks in the projects of these namespaces, too."""
        self._foreign.namespace_exists = exists

    async def find_network(self, name: FqName) -> VirtualNetwork | None:
        """Returns the network of a name, also one that others made and that may be used; None if there is none.

        The latter is among the networks of the store from then on, or as soon as somebody makes it.
        """
        return await self._named.find(name)

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network. Idempotent. Raises InUseError while an address is allocated."""
        async with self._locks.held([uuid]):
            await self._networks.delete(uuid)

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, sorted by name."""
        return sorted(self._cache.networks, key=lambda network: network.name)

    async def put_virtual_machine(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine of this uuid. Raises ConflictError if another one has the name."""
        async with (
            self._without_duplicates(virtual_machine),
            self._locks.held([virtual_machine.uuid, virtual_machine.name]),
        ):
            for other in self._namesakes(virtual_machine):
                if not other.is_pending:
                    problem = f"virtual machine {other.name}: already exists with uuid {other.uuid}"
                    raise ConflictError(problem, holder=other.uuid)
                await self._remove(other, hold=0.0)
            await self._finish_deletions(virtual_machine)
            with self._failed.noted(virtual_machine):
                await self._machines.put(virtual_machine)

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a virtual machine, releases its addresses and holds them for `hold` seconds. Idempotent."""
        async with self._locks.held([uuid]):
            machine = self._known(uuid)
            if machine is not None:
                await self._delete_retired(await self._remove(machine, hold=hold))

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine of this uuid, unless one with interfaces is there."""
        async with (
            self._without_duplicates(virtual_machine),
            self._locks.held([virtual_machine.uuid, virtual_machine.name]),
        ):
            old = self._cache.machines.get(virtual_machine.uuid)
            others = [*self._namesakes(virtual_machine), *([old] if old is not None else [])]
            if all(other.is_pending for other in others):
                for other in self._namesakes(virtual_machine):
                    await self._remove(other, hold=0.0)
                await self._finish_deletions(virtual_machine)
                await self._machines.put(virtual_machine)

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        """Deletes the virtual machine of this uuid if it is pending. Idempotent."""
        async with self._locks.held([virtual_machine.uuid]):
            found = self._known(virtual_machine.uuid)
            if found is not None and found.is_pending:
                await self._remove(found, hold=0.0)

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The virtual machine of this uuid. Raises NotFoundError, also if it is pending."""
        found = self._cache.machines.get(uuid)
        if found is None or found.is_pending:
            raise NotFoundError(f"virtual machine {uuid}: not found")
        return found

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All virtual machines (of one node) that are not pending, sorted by name."""
        found = [each for each in self._cache.machines if not each.is_pending and node in (None, each.node)]
        return sorted(found, key=lambda machine: machine.name)

    async def recover_virtual_machines(self) -> Iterable[VirtualMachine]:
        """All, also pending ones, after finishing what a killed writer left unfinished."""
        await self._leftovers.finish()
        await self._network_leftovers.delete_hidden()
        return sorted(self._cache.machines, key=lambda machine: machine.name)

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Allocates one address for each request and returns them in the same order: all or none."""
        async with self._locks.held([request.owner for request in requests]):
            await self._expire({request.network_uuid for request in requests})
            allocation = await self._allocator.allocate(requests)
            await self._holds.hold(allocation.replaced, hold=DEFAULT_HOLD)
        return allocation.addresses

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Releases all addresses of these owners. Shortens the holds of those released before, never extends them."""
        await self._delete_failed(owners)
        await self._release(owners, hold=hold)

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Shortens the holds of addresses that these owners released. Allocated addresses stay."""
        async with self._locks.held(owners):
            await self._holds.shorten(owners, hold=hold)

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses."""
        return {record.owner for record in self._cache.addresses if record.held_until is None}

    async def held_owners(self) -> dict[str, HeldAddress]:
        """By interface uuid, for interfaces that have no address but still a held one."""
        allocated = await self.address_owners()
        held = [record for record in self._holds.held() if record.owner not in allocated]
        return {record.owner: HeldAddress(record.network_uuid, None) for record in held}

    async def address_page(self, network_uuid: str, *, limit: int, after: str | None = None) -> AddressPage:
        """Allocated and held addresses of a network, by their text. Takes as long as the network has addresses."""
        now, last = self._clock(), after or ""
        following = (
            StoredAddress(record.address, record.owner, record.held_until)
            for record in self._cache.addresses.of_network(network_uuid)
            if record.address > last and (record.held_until is None or record.held_until > now)
        )
        found = heapq.nsmallest(limit + 1, following, key=lambda each: each.address)
        if len(found) <= limit:
            return AddressPage(found, None)
        return AddressPage(found[:limit], found[limit - 1].address)

    async def recover_addresses(self, virtual_machines: Iterable[VirtualMachine]) -> list[str]:  # noqa: ARG002 - protocol
        """None is lost: the server keeps each address as an object of its own."""
        return []

    async def has_addresses(self, network_uuid: str) -> bool:
        """Whether an address of the network is allocated."""
        return any(record.held_until is None for record in self._cache.addresses.of_network(network_uuid))

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None, include_pending: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of virtual machines (of one node), once and in order, until the context is left."""

        def sees(machine: VirtualMachine) -> bool:
            return node in (None, machine.node) and (include_pending or not machine.is_pending)

        return self._cache.machines.watch(start=start, sees=sees)

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """Like `watch_virtual_machines`, for networks."""
        return self._cache.networks.watch(start=start, sees=lambda _network: True)

    async def maintain(self) -> None:
        """Frees held addresses in time, and repairs what is incomplete, until it is cancelled: for the writer."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._timer.run())
            tasks.create_task(self.router_links.run())
            tasks.create_task(self.repairs.run())
            tasks.create_task(self._named.run())

    async def watch_other_writers(self) -> None:
        """Waits until another program writes pods of this cluster. Raises StoreError then: the process must end."""
        await self._cache.other_writers.wait()

    async def close(self) -> None:
        """Ends all watches. Idempotent."""
        await self._follower.stop()
        await self.routers.close()
        self._cache.machines.end()
        self._cache.networks.end()

    @asynccontextmanager
    async def _without_duplicates(self, machine: VirtualMachine) -> AsyncIterator[None]:
        """Deletes others of the name that nobody committed if a write fails because of them: a retry succeeds then.

        Raises ConflictError.
        """
        try:
            yield
        except StoreError as error:
            has_holder = isinstance(error, ConflictError) and error.holder is not None
            if has_holder or isinstance(error.__cause__, VncServerError):
                await self._duplicates.resolve(machine)
            raise

    def _namesakes(self, machine: VirtualMachine) -> list[VirtualMachine]:
        """Returns other virtual machines of this name."""
        return [other for other in self._cache.machines.named(machine.name) if other.uuid != machine.uuid]

    async def _remove(self, machine: VirtualMachine, *, hold: float) -> set[str]:
        """Deletes a virtual machine, and returns the networks in which it had addresses.

        Readers see that it is gone first. If a later step fails, the next call for the same uuid continues.
        """
        self._unfinished[machine.uuid] = _Deletion(machine, hold)
        await self._machines.delete(machine, until=self._clock() + hold)
        await self._machines.disconnect(machine)
        networks = await self._holds.release([interface.uuid for interface in machine.interfaces], hold=hold)
        await self._machines.remove(machine)
        del self._unfinished[machine.uuid]
        return networks

    async def _release(self, owners: Sequence[str], *, hold: float) -> None:
        async with self._locks.held(owners):
            released = await self._holds.release(owners, hold=hold)
        await self._delete_retired(released)

    async def _release_until(self, owners: Sequence[str], ends: float) -> None:
        await self._release(owners, hold=max(0.0, ends - self._clock()))

    async def _delete_failed(self, owners: Sequence[str]) -> None:
        """Deletes virtual machines that were not written whole and that own these addresses."""
        for uuid in self._failed.of_owners(owners):
            with as_store_error(f"virtual machine {uuid}"):
                await self._leftovers.delete(uuid)
            self._failed.forget(uuid)

    def _known(self, uuid: str) -> VirtualMachine | None:
        """Returns a virtual machine, also one whose deletion failed."""
        found = self._cache.machines.get(uuid)
        return self._unfinished[uuid].machine if found is None and uuid in self._unfinished else found

    async def _finish_deletions(self, machine: VirtualMachine) -> None:
        """Continues deletions that failed, before their uuid or name is written again."""
        for uuid, (other, hold) in list(self._unfinished.items()):
            if uuid != machine.uuid and other.name != machine.name:
                continue
            if self._cache.machines.get(uuid) is None:
                await self._remove(other, hold=hold)
            else:
                del self._unfinished[uuid]  # it was not even begun, or somebody wrote it again

    async def _delete_retired(self, networks: set[str]) -> None:
        for uuid in networks:
            async with self._locks.held([uuid]):
                network = self._cache.networks.get(uuid)
                if network is not None and network.retired and not await self.has_addresses(uuid):
                    await self._networks.delete(uuid)
                await self._networks.delete_hidden(uuid)

    async def _expire(self, networks: Collection[str] | None = None) -> None:
        for uuid in await self._holds.expire(networks):
            async with self._locks.held([uuid]):
                await self._networks.delete_hidden(uuid)

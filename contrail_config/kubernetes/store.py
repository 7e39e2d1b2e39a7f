"""Kubernetes store: shared by the managers and the agents of a cluster through the API server.

Guaranteed: an acknowledged write is in etcd, a virtual machine is stored as a whole, and no address is allocated twice
although several managers write concurrently: the server rejects a change to an object that is not at the version that
was read. An agent reads the virtual machines of its own node and no other kind. Other kinds are read on demand.

Not guaranteed: that watchers see every intermediate state. After a disconnection, a watcher gets the changes since as
one change. Addresses that are part of an existing virtual machine are released only with it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NoReturn

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Deleted, Listed, Modified
from contrail_config.kube.object_cache import ObjectChange as KubeChange
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kubernetes.address_operations import (
    Allocate,
    ListAddresses,
    ListHeldOwners,
    ListOwners,
    Release,
    ShortenHolds,
)
from contrail_config.kubernetes.address_recovery import recovery_operations, unrecorded_addresses
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import AddressKey, BlockKey, PoolKey, block_key, decode_block
from contrail_config.kubernetes.committer import FLUSH_INTERVAL, Committer
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.informer import Informer
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCK_DOCUMENTS,
    ADDRESS_BLOCKS,
    NETWORK_LABEL,
    Document,
    NetworkSliceObject,
    VirtualMachineObject,
    VirtualNetworkObject,
)
from contrail_config.kubernetes.lost_blocks import CHANGED, DELETED, LostBlocks
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.network_slices import NetworkSlices
from contrail_config.kubernetes.node_blocks import NodeBlocks
from contrail_config.kubernetes.pending_virtual_machines import PendingVirtualMachineClient
from contrail_config.kubernetes.port_requests import PortRequests
from contrail_config.kubernetes.validated import VALIDATED_NETWORKS, VALIDATED_SLICES, VALIDATED_VIRTUAL_MACHINES
from contrail_config.kubernetes.virtual_machines import VirtualMachineClient, node_selector
from contrail_config.kubernetes.virtual_networks import VirtualNetworkClient
from contrail_config.kubernetes.watcher import ConfigObjectOf, Watcher
from contrail_config.objects import InterfaceAddress, NetworkSlice, VirtualMachine, VirtualNetwork
from contrail_config.steady_clock import SteadyClock
from contrail_config.store import (
    DEFAULT_HOLD,
    AddressPage,
    AddressRequest,
    Change,
    HeldAddress,
    T_co,
    WatchStart,
)

log = logging.getLogger(__name__)

_RECOVERIES = 8
"""Recovery operations at a time."""


class KubernetesStore:
    """`Store` on a client, which the caller closes after the store. `flush_interval` as in `committer`.

    With `slices` it keeps the network slices of its virtual machines, while `maintain_slices` runs. `port_requests`
    takes the requests in the virtual machines of a node that is watched.

    `clock` returns seconds since the epoch, since holds outlive the process. Every method raises StoreUnavailableError
    if the store is closed, or the server is unreachable, rejects the request or is overloaded; callers may retry.
    """

    def __init__(
        self,
        client: KubeClient,
        *,
        clock: Callable[[], float] | None = None,
        flush_interval: float = FLUSH_INTERVAL,
        slices: bool = False,
        port_requests: PortRequests | None = None,
    ) -> None:
        self._client = client
        self._port_requests = port_requests
        self._clock = clock or SteadyClock()
        self._allocations = AllocationCache(self._note_dropped)
        self._lost = LostBlocks()
        self._committer = Committer(
            client, self._allocations, self._lost, clock=self._clock, flush_interval=flush_interval
        )
        self._virtual_machines = VirtualMachineClient(client)
        self._pending = PendingVirtualMachineClient(client.low_priority())
        self._networks = VirtualNetworkClient(client, self._allocations, self._committer, self._virtual_machines)
        self.node_blocks = NodeBlocks(self._committer, self._networks, self._sync_addresses)
        self.slices = NetworkSlices(client, self._networks.find, self._home_of, self._node_address_of, enabled=slices)
        self._networks.on_change(self.slices.network_changed)
        self._block_informer = Informer(client, ADDRESS_BLOCK_DOCUMENTS, self._apply_block)
        self._watchers: set[Watcher[VirtualMachine] | Watcher[VirtualNetwork] | Watcher[NetworkSlice]] = set()
        self._invalid_blocks: dict[str, UndecodableObject] = {}
        self._closed = False

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it as stored, with its vni.

        Raises ConflictError if another network has the fq_name or the vni, if an allocated address would be in no
        subnet or equal a gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        with self._mapping_errors(f"network {network.name}"):
            await self._sync_addresses()
            return await self._networks.put(network)

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network. Idempotent. Raises InUseError while an address is allocated."""
        with self._mapping_errors(f"network {uuid}"):
            await self._sync_addresses()
            await self._networks.delete(uuid)

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, sorted by name."""
        with self._mapping_errors("networks"):
            return await self._networks.all()

    async def put_virtual_machine(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine of this uuid.

        Raises ConflictError if another one that this process wrote or read has the name, or another manager wrote this
        one with other addresses; it is then cached here, and a new attempt with its addresses succeeds.
        """
        with self._mapping_errors(f"virtual machine {virtual_machine.name}"):
            self._lost.check()  # its addresses may be lost, and no other manager knows them yet
            self.slices.put(virtual_machine)
            await self._virtual_machines.put(virtual_machine)

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine of this uuid. No effect if one with interfaces has it."""
        with self._mapping_errors(f"pending virtual machine {virtual_machine.name}"):
            await self._pending.put(virtual_machine)

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        """Deletes the virtual machine of this uuid if it is pending. Idempotent."""
        with self._mapping_errors(f"pending virtual machine {virtual_machine.name}"):
            await self._pending.delete(virtual_machine)

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a virtual machine, releases its addresses and holds them for `hold` seconds. Idempotent.

        Also deletes retired networks that have no other interface. If the virtual machine does not exist, the addresses
        that it is known to have had are released.
        """
        with self._mapping_errors(f"virtual machine {uuid}"):
            self._lost.check()  # the next leader recovers addresses, and their holds, from the virtual machines
            deleted = await self._virtual_machines.delete(uuid)
            if deleted is not None:
                self.slices.remove(deleted.interfaces)
                node = deleted.node if hold > DEFAULT_HOLD else None  # else nothing ends the hold earlier
                await self._release(dict.fromkeys(deleted.interfaces, ()), hold=hold, node=node)
            self._virtual_machines.forget(uuid)  # last: a retry after a failure still needs the interfaces

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The virtual machine of this uuid. Raises NotFoundError, also if it is pending."""
        with self._mapping_errors(f"virtual machine {uuid}"):
            found = await self._virtual_machines.get(uuid)
            self.slices.put(found)  # another manager may have written it
            return found

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All virtual machines (of one node) that are not pending, sorted by name."""
        with self._mapping_errors("virtual machines"):
            return await self._virtual_machines.all(node=node)

    async def recover_virtual_machines(self) -> Iterable[VirtualMachine]:
        """All virtual machines, also pending ones, after their interrupted moves between nodes were finished."""
        with self._mapping_errors("virtual machines"):
            found = await self._virtual_machines.recover()
            await self.slices.load(found)
            return found

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Allocates one address for each request and returns them in the same order: all or none.

        Raises NotFoundError (network), AddressUnavailableError (requested address), ExhaustedError.
        """
        with self._mapping_errors("addresses"):
            await self._sync_addresses()
            # Before the round starts: operations are applied without waiting for the server.
            networks = {uuid for request in requests for uuid in (request.network_uuid, request.reserved_in) if uuid}
            for uuid in networks:
                await self._networks.ensure_cached(uuid)
            return await self._committer.execute(Allocate(requests, self._networks.cached))

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Releases the addresses of these owners. Shortens the holds of those released before, never extends them.

        Addresses that are part of an existing virtual machine that is cached here stay: they are released with it.
        """
        with self._mapping_errors("addresses"):
            in_use = [await self._virtual_machines.addresses_in_use(owner) for owner in owners]
            self.slices.remove(owner for owner, addresses in zip(owners, in_use, strict=True) if not addresses)
            await self._release(dict(zip(owners, in_use, strict=True)), hold=hold)

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Shortens the holds of addresses that these owners released. Allocated addresses stay."""
        with self._mapping_errors("addresses"):
            await self._sync_addresses()
            await self._committer.execute(ShortenHolds(owners, hold))

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses."""
        with self._mapping_errors("addresses"):
            await self._sync_addresses()
            return await self._committer.execute(ListOwners())

    async def held_owners(self) -> dict[str, HeldAddress]:
        """By interface uuid, for interfaces that have no address but one that is held on a known node."""
        with self._mapping_errors("addresses"):
            await self._sync_addresses()
            return await self._committer.execute(ListHeldOwners())

    async def address_page(self, network_uuid: str, *, limit: int, after: str | None = None) -> AddressPage:
        """Allocated and held addresses of a network by family and number, as far as this process knows."""
        with self._mapping_errors(f"network {network_uuid}"):
            await self._sync_addresses()
            return await self._committer.execute(ListAddresses(network_uuid, limit, after or ""))

    async def recover_addresses(self, virtual_machines: Iterable[VirtualMachine]) -> list[str]:
        """Allocates the addresses of these virtual machines to their interfaces where the record of that is lost.

        Other addresses of a lost block are held, since holds are lost too. Returns conflicts, for people: addresses of
        two virtual machines. To be called before anything else is allocated.
        """
        with self._mapping_errors("addresses"):
            await self._sync_addresses()
            missing, conflicts = await unrecorded_addresses(self._allocations, virtual_machines)
            if missing:
                log.warning("%d addresses in use are not allocated: allocating them again", len(missing))
            for uuid in {each.key.pool.network_uuid for each in missing}:
                await self._networks.ensure_cached(uuid)
            operations = recovery_operations(missing, self._networks.cached)
            for batch in (operations[first : first + _RECOVERIES] for first in range(0, len(operations), _RECOVERIES)):
                await asyncio.gather(*(self._committer.execute(operation) for operation in batch))
            return conflicts

    async def has_addresses(self, network_uuid: str) -> bool:
        """Whether an address of the network is allocated, as far as this process knows."""
        with self._mapping_errors(f"network {network_uuid}"):
            await self._sync_addresses()
            return any(self._allocations.allocated_in(network_uuid))

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None, include_pending: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of virtual machines (of one node), in order, until the context is left.

        Without `include_pending`, a virtual machine that is pending does not exist for the watch. The iteration ends
        when the store is closed. It waits while the server is unreachable.
        """
        selector = EVERYTHING if node is None else node_selector(node)
        visible: ConfigObjectOf[VirtualMachine]
        visible = _virtual_machine if include_pending else _complete_virtual_machine
        if node is not None and self._port_requests is not None:
            visible = self._port_requests.seen_by(visible)
        resource, per_node = VALIDATED_VIRTUAL_MACHINES, node is not None
        return self._watch(Watcher(self._client, resource, selector, visible, start=start, per_node=per_node))

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """Like `watch_virtual_machines`, for networks."""
        return self._watch(Watcher(self._client, VALIDATED_NETWORKS, EVERYTHING, _confirmed_network, start=start))

    def slice_group(self, network_uuid: str) -> str:
        """The group of a network: slices of networks of one group are watched together."""
        return network_bucket(network_uuid)

    def watch_slices(
        self, networks: Collection[str]
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[NetworkSlice]]]:
        """Every change of the slices of these networks, by uuid and of one group, until the context is left."""
        (bucket,) = {network_bucket(uuid) for uuid in networks}
        selector = Selector(namespace=bucket, labels=f"{NETWORK_LABEL} in ({','.join(sorted(networks))})")
        watcher = Watcher(
            self._client, VALIDATED_SLICES, selector, _network_slice, start=WatchStart.LIST, per_node=True
        )
        return self._watch(watcher)

    async def maintain_slices(self) -> None:
        """Writes network slices until it is cancelled, from `recover_virtual_machines` on."""
        await self.slices.run(self._sync_addresses)

    def problems(self) -> list[str]:
        """Why watchers are not up to date; empty if they are."""
        return [watcher.problem for watcher in self._watchers if watcher.problem is not None]

    async def watch_lost_addresses(self) -> NoReturn:
        """Waits until somebody else deletes a record of addresses in use. Raises AddressesLostError.

        From then on no address is allocated and no virtual machine is written or deleted: the process must end, and the
        next leader recovers the addresses from the virtual machines.
        """
        await self._lost.wait()

    def invalid_objects(self) -> list[InvalidObject]:
        """Objects that this store skips now, each once."""
        readers = (self._block_informer, self._networks, self._virtual_machines, self.slices, *self._watchers)
        found = {invalid for reader in readers for invalid in reader.invalid_objects}
        return sorted(found.union(invalid_objects(ADDRESS_BLOCKS, self._invalid_blocks.values())))

    async def check_invalid_objects(self) -> None:
        """Forgets invalid objects that are gone or valid by now, where no watch does so. Raises StoreError."""
        with self._mapping_errors("invalid objects"):
            await self._virtual_machines.check_invalid()

    async def close(self) -> None:
        """Finishes pending operations, and ends all watches after the committed changes. Idempotent.

        Records of addresses that somebody else deleted are written again, as far as possible.
        """
        self._closed = True
        await self.slices.close()
        await self._committer.close()
        await self._lost.restore(self._client)
        # After the committer: watchers list once more, and report what it has written.
        await asyncio.gather(*(watcher.drain() for watcher in self._watchers))
        await self._block_informer.close()
        await self._networks.informer.close()

    async def _release(self, owners: Mapping[str, Collection[str]], *, hold: float, node: str | None = None) -> None:
        await self._sync_addresses()
        for uuid in await self._committer.execute(Release(owners, hold, node)):
            await self._networks.delete_retired(uuid)

    async def _sync_addresses(self) -> None:
        await self._networks.informer.wait_until_synced()
        await self._block_informer.wait_until_synced()

    def _apply_block(self, change: KubeChange[Document]) -> None:
        now = self._clock()
        if isinstance(change, Listed):
            return
        if isinstance(change, UndecodableObject):
            self._seal_block(change.metadata.name)
            return
        try:
            block = decode_block(change.object)
        except ValueError as error:
            self._skip_block(change, str(error))
            return
        self._invalid_blocks.pop(change.object.metadata.name, None)
        self._allocations.unseal(block.key)
        if isinstance(change, Deleted):
            self.slices.set_block(block.key, None)
            if (lost := self._allocations.apply_deletion(block, now=now)) is not None:
                self._lost.add(lost.key.name, lost, problem=DELETED)
        else:
            self.slices.set_block(block.key, block.node)
            self._allocations.apply_update(block, now=now)

    def _skip_block(self, change: Added[Document] | Modified[Document] | Deleted[Document], problem: str) -> None:
        metadata = change.object.metadata
        if isinstance(change, Deleted):
            self._invalid_blocks.pop(metadata.name, None)
            if block_key(metadata.name) is not None:  # else no manager has written it, and no address was in it
                self._lost.add(metadata.name, None, problem=DELETED)  # it may have had any address
        else:
            self._invalid_blocks[metadata.name] = UndecodableObject(metadata, problem)
            self._seal_block(metadata.name)

    def _note_dropped(self, block: BlockKey, owners: Collection[str]) -> None:
        """Treats a block as lost that somebody else has written without addresses of virtual machines."""
        if any(self._virtual_machines.is_known(owner) for owner in owners):
            self._lost.add(block.name, None, problem=CHANGED)

    def _home_of(self, network_uuid: str, address: str) -> str | None:
        family = family_of(address)
        key = AddressKey(PoolKey(network_uuid, family), parse_address(address, family=family))
        return self._allocations.block(key.block).node

    def _node_address_of(self, block: BlockKey) -> str | None:
        network = self._networks.find(block.pool.network_uuid)
        found = None if network is None else self._allocations.node_address(network, block)
        return None if found is None else found.text

    def _seal_block(self, name: str) -> None:
        if (key := block_key(name)) is not None:
            self._allocations.seal(key)

    @contextmanager
    def _mapping_errors(self, what: str) -> Iterator[None]:
        """Raises only StoreError, also if the store is closed; `what` names the object."""
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        with as_store_error(what):
            yield

    @asynccontextmanager
    async def _watch(self, watcher: Watcher[T_co]) -> AsyncIterator[AsyncIterator[Change[T_co]]]:
        self._watchers.add(watcher)
        try:
            with self._mapping_errors("watch"):
                await watcher.start()
            yield watcher
        finally:
            self._watchers.discard(watcher)
            await watcher.abort()


def _virtual_machine(item: VirtualMachineObject) -> VirtualMachine | None:
    return item.spec if item.is_trusted else None


def _complete_virtual_machine(item: VirtualMachineObject) -> VirtualMachine | None:
    return item.spec if item.is_trusted and not item.spec.is_pending else None


def _network_slice(item: NetworkSliceObject) -> NetworkSlice:
    return item.spec


def _confirmed_network(item: VirtualNetworkObject) -> VirtualNetwork | None:
    return item.spec if item.is_confirmed else None

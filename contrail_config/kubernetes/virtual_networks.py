"""Networks as objects named by uuid; `network_creation` keeps their numbers and names unique.

Networks are created, changed and deleted outside the lock of addresses, since one tenant's networks must not delay the
pods of others: only a network whose subnets change, or that is deleted, gives no addresses meanwhile.

A network is never renamed. Not guaranteed: that a subnet stays that one manager allocates from while another removes
it.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec
from tenacity import TryAgain

from contrail_config.addressing.pool import AddressPool
from contrail_config.errors import ConflictError, InUseError, NotFoundError, StoreError, StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.object_cache import Deleted, Listed, ObjectChange
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import has_allocations
from contrail_config.kubernetes.committer import Committer
from contrail_config.kubernetes.informer import Informer
from contrail_config.kubernetes.invalid_objects import InvalidObject, invalid_objects
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    NETWORK_LABEL,
    VIRTUAL_NETWORK_DOCUMENTS,
    VIRTUAL_NETWORKS,
    Document,
    VirtualNetworkObject,
    replacement,
    virtual_network_object,
)
from contrail_config.kubernetes.network_cache import NetworkCache
from contrail_config.kubernetes.network_creation import NetworkCreation, delete_at_version
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.kubernetes.validated import VALIDATED_NETWORKS, network_problem, valid_network
from contrail_config.kubernetes.virtual_machines import VirtualMachineClient
from contrail_config.objects import VirtualNetwork

log = logging.getLogger(__name__)


class _Stored(NamedTuple):
    """A network as the server has it; `item` is None if it is invalid."""

    document: Document
    item: VirtualNetworkObject | None

    @property
    def name(self) -> str:
        """Name of the network, or of its object."""
        return self.document.metadata.name if self.item is None else self.item.spec.name


class VirtualNetworkClient:
    """Networks by uuid. All coroutines raise KubeError and StoreError.

    `informer` follows them and calls `apply`; it must have listed them before the first write.
    """

    def __init__(
        self,
        client: KubeClient,
        allocations: AllocationCache,
        committer: Committer,
        virtual_machines: VirtualMachineClient,
    ) -> None:
        self._client = client
        self.informer = Informer(client, VIRTUAL_NETWORKS, self.apply)
        self._virtual_machines = virtual_machines
        self._numbers = virtual_machines.network_numbers
        self._creation = NetworkCreation(client, self.informer, self._numbers)
        self._allocations = allocations
        self._committer = committer
        self._cache = NetworkCache(self._removed)
        self._invalid: dict[str, UndecodableObject] = {}
        self._closed: Counter[str] = Counter()  # networks in which no address is allocated now
        self._on_change: Callable[[str], None] | None = None

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Calls back with the uuid of each network that the watch reports as changed."""
        self._on_change = callback

    def find(self, uuid: str) -> VirtualNetwork | None:
        """Returns the network from the cache, None if it is not cached."""
        return self._cache.get(uuid)

    def cached(self, uuid: str) -> VirtualNetwork:
        """Returns the network from the cache. Raises NotFoundError, and StoreUnavailableError while it is changed."""
        if uuid in self._closed:
            raise StoreUnavailableError(f"network {uuid}: is being changed or deleted")
        network = self._cache.get(uuid)
        if network is None:
            raise NotFoundError(f"network {uuid}: not found")
        return network

    async def ensure_cached(self, uuid: str) -> None:
        """Reads a network that is not cached or uncertain: other managers may have created or deleted it."""
        if self._cache.is_certain(uuid):
            return
        found = await self._read(uuid)
        if found is not None and found.item is not None and found.item.is_confirmed:
            self._cache.put(found.item)
        else:
            self._cache.remove(uuid)

    async def all(self) -> list[VirtualNetwork]:
        """Returns all valid networks, sorted by name."""
        listed = await self._client.list_each(VALIDATED_NETWORKS)
        found = [item.spec for item in listed if not isinstance(item, UndecodableObject) and item.is_confirmed]
        return sorted(found, key=lambda network: network.name)

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """The networks that are skipped now."""
        return [*self.informer.invalid_objects, *invalid_objects(VIRTUAL_NETWORKS, self._invalid.values())]

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it with its current, requested or lowest free vni.

        Raises ConflictError if another network has the fq_name or the vni, if an allocated address would be in no
        subnet or equal a gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        await self._creation.delete_stale_proposals()
        async for attempt in retry_on_conflict(
            f"network {network.name}", KubeConflictError, KubeExistsError, KubeNotFoundError
        ):
            with attempt:
                written = await self._put(network)
        self._cache.put(written)
        self._numbers.end_reservation(network.uuid)
        return written.spec

    async def delete(self, uuid: str) -> None:
        """Deletes the network. Idempotent. Raises InUseError while an address of it is allocated."""
        async with self._without_allocations(uuid):
            async for attempt in retry_on_conflict(f"network {uuid}"):
                with attempt:
                    found = await self._read(uuid)
                    if await self._is_used(uuid):  # also if somebody else deleted the object
                        name = uuid if found is None else found.name
                        raise InUseError(f"network {name}: still in use: interfaces have addresses in it")
                    if found is not None and not await delete_at_version(self._client, found.document):
                        raise TryAgain
            self._remove(uuid)

    async def delete_retired(self, uuid: str) -> None:
        """Deletes the network if it is retired and has no allocated address."""
        cached = self._cache.get(uuid)
        if cached is None or not cached.retired or any(self._allocations.allocated_in(uuid)):
            return
        async with self._without_allocations(uuid):
            found = await self._read(uuid)
            if found is None or found.item is None or not found.item.spec.retired or await self._is_used(uuid):
                return
            if await delete_at_version(self._client, found.document):
                self._remove(uuid)

    def _removed(self, network: VirtualNetwork) -> None:
        self._allocations.drop_pools(network.uuid)
        self._numbers.reserve(network)

    def _remove(self, uuid: str) -> None:
        """Removes a network that nobody needs any more."""
        self._cache.remove(uuid)
        self._numbers.end_reservation(uuid)

    def apply(self, change: ObjectChange[VirtualNetworkObject]) -> None:
        """Applies a change of the watch to the cache; instead of an invalid state the last valid one stays."""
        if isinstance(change, Listed | UndecodableObject):
            self._cache.apply(change)
            return
        name = change.object.metadata.name
        self._invalid.pop(name, None)
        problem = network_problem(change.object)
        if problem is None:
            self._cache.apply(change)
        elif isinstance(change, Deleted):
            self._cache.remove(name)
        else:
            self._invalid[name] = UndecodableObject(change.object.metadata, problem)
        if self._on_change is not None:
            self._on_change(name)

    @asynccontextmanager
    async def _without_allocations(self, uuid: str) -> AsyncIterator[None]:
        """Lets no address be allocated in the network inside the context; other networks are not affected."""
        self._closed[uuid] += 1
        try:
            await self._committer.finish_round()  # which may allocate in it
            yield
        finally:
            self._closed[uuid] -= 1
            if not self._closed[uuid]:
                del self._closed[uuid]

    async def _put(self, network: VirtualNetwork) -> VirtualNetworkObject:
        stored = await self._read(network.uuid)
        if stored is not None and stored.item is None:
            await self._delete_invalid(stored.document)
            stored = None
        found = None if stored is None else stored.item
        if stored is None or found is None or not found.is_confirmed:
            await self._virtual_machines.ensure_listed()
            async with self._without_allocations(network.uuid):
                self._check_subnets(network)
                return await self._creation.create(network, found)
        if found.spec.fq_name != network.fq_name:
            raise ConflictError(f"network {network.name}: already exists as {found.spec.name}, and cannot be renamed")
        wanted = msgspec.structs.replace(network, vni=found.spec.vni)
        if found.spec == wanted:
            return found
        if found.spec.subnets == network.subnets:
            return await self._replace(stored.document, wanted)
        async with self._without_allocations(network.uuid):
            self._check_subnets(network)
            return await self._replace(stored.document, wanted)

    async def _replace(self, document: Document, wanted: VirtualNetwork) -> VirtualNetworkObject:
        body = replacement(document, virtual_network_object(wanted))
        return await self._client.replace(VIRTUAL_NETWORKS, wanted.uuid, body)

    async def _read(self, uuid: str) -> _Stored | None:
        try:
            document = await self._client.get(VIRTUAL_NETWORK_DOCUMENTS, uuid)
        except KubeNotFoundError:
            return None
        return _Stored(document, valid_network(document))

    async def _delete_invalid(self, document: Document) -> None:
        """Deletes an invalid network, which is then created again: rules of the server may forbid to correct it."""
        log.warning("network %s: invalid: recreating it", document.metadata.name)
        if not await delete_at_version(self._client, document):
            raise TryAgain

    async def _is_used(self, uuid: str) -> bool:
        """Returns whether the network has an allocated address, according to the server or to the cache.

        The cache may lag behind another manager's allocations, and the server finds no block without its label.
        """
        if self._allocations.may_be_used(uuid):
            return True
        blocks = await self._client.list_each(ADDRESS_BLOCKS, Selector(labels=f"{NETWORK_LABEL}={uuid}"))
        return any(isinstance(block, UndecodableObject) or has_allocations(block) for block in blocks)

    def _check_subnets(self, network: VirtualNetwork) -> None:
        try:
            pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        except ValueError as error:
            raise StoreError(f"network {network.name}: invalid subnets: {error}") from error
        for key in self._allocations.allocated_in(network.uuid):
            try:
                bounds = pools[key.pool.family].bounds(key.address)
            except ValueError as error:
                problem = f"cannot remove the subnet of {key.text}: the address is allocated"
                raise ConflictError(f"network {network.name}: {problem}") from error
            if bounds.gateway == key.text:
                problem = f"gateway {key.text} is already allocated to an interface"
                raise ConflictError(f"network {network.name}: {problem}")

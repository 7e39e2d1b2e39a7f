"""Networks as objects named by uuid, each with a unique number (vni) and a unique name.

The server does not enforce uniqueness, and no lock is trusted. So creation has two phases. The network is first
*proposed*: written with an annotation that makes everybody except other writers ignore it. Then all networks are read.
If a confirmed one has the vni, another vni is tried; if one has the name, the network is rejected. Other proposals with
the same vni or name are deleted at the version that was read, so their writers start again. Finally the network is
*confirmed*: the annotation is removed from the proposal at the version that was written, which fails if somebody has
deleted it. Of two writers, the one that reads later sees the proposal of the other one, so they never both confirm. The
proposal of a killed writer blocks nobody; the next writer deletes it before its first write.

Not guaranteed: unique names when an existing network is renamed, which our managers never do; nor that a subnet
stays that one manager allocates from while another removes it.
"""

import msgspec
from tenacity import TryAgain

from contrail_config.addressing.pool import AddressPool
from contrail_config.errors import ConflictError, InUseError, NotFoundError, StoreError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.object_cache import ObjectChange
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import has_allocations
from contrail_config.kubernetes.committer import Committer
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    NETWORK_LABEL,
    PROPOSED,
    VIRTUAL_NETWORK_DOCUMENTS,
    VIRTUAL_NETWORKS,
    Document,
    VirtualNetworkObject,
    replacement,
    virtual_network_object,
)
from contrail_config.kubernetes.network_cache import NetworkCache
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.objects import VirtualNetwork


class VirtualNetworkClient:
    """Networks by uuid. All coroutines raise KubeError and StoreError."""

    def __init__(self, client: KubeClient, allocations: AllocationCache, committer: Committer) -> None:
        self._client = client
        self._allocations = allocations
        self._committer = committer
        self._cache = NetworkCache(allocations.drop_pools)
        self._has_written = False

    def cached(self, uuid: str) -> VirtualNetwork:
        """Returns the network from the cache. Raises NotFoundError."""
        network = self._cache.get(uuid)
        if network is None:
            raise NotFoundError(f"network {uuid}: not found")
        return network

    async def ensure_cached(self, uuid: str) -> None:
        """Reads a network that is not cached or uncertain: other managers may have created or deleted it."""
        if self._cache.is_certain(uuid):
            return
        found = await self._read(uuid)
        if found is not None and found.is_confirmed:
            self._cache.put(found)
        else:
            self._cache.remove(uuid)

    async def all(self) -> list[VirtualNetwork]:
        """Returns all networks, sorted by name."""
        found = await self._client.list_all(VIRTUAL_NETWORKS)
        return sorted((item.spec for item in found if item.is_confirmed), key=lambda network: network.name)

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it with its current, requested or lowest free vni.

        Raises ConflictError if another network has the fq_name or the vni, if an allocated address would be in no
        subnet or equal a gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        # The lock keeps allocations out between the check of the subnets and the write.
        async with self._committer.lock:
            await self._committer.read_uncertain()
            async for attempt in retry_on_conflict(
                f"network {network.name}", KubeConflictError, KubeExistsError, KubeNotFoundError
            ):
                with attempt:
                    await self._delete_stale_proposals()
                    written = await self._put(network)
            self._cache.put(written)
            return written.spec

    async def delete(self, uuid: str) -> None:
        """Deletes the network. Idempotent. Raises InUseError while an address of it is allocated."""
        async with self._committer.lock:
            async for attempt in retry_on_conflict(f"network {uuid}"):
                with attempt:
                    found = await self._read(uuid)
                    if found is not None and await self._is_used(uuid):
                        raise InUseError(f"network {found.spec.name}: still in use: interfaces have addresses in it")
                    if found is not None and not await self._delete(found):
                        raise TryAgain
            self._cache.remove(uuid)

    async def delete_retired(self, uuid: str) -> None:
        """Deletes the network if it is retired and has no allocated address."""
        cached = self._cache.get(uuid)
        if cached is None or not cached.retired or any(self._allocations.allocated_in(uuid)):
            return
        async with self._committer.lock:
            found = await self._read(uuid)
            if found is not None and found.spec.retired and not await self._is_used(uuid) and await self._delete(found):
                self._cache.remove(uuid)

    def apply(self, change: ObjectChange[VirtualNetworkObject]) -> None:
        """Applies a change of the watch to the cache."""
        self._cache.apply(change)

    async def _delete_stale_proposals(self) -> None:
        """Deletes all proposals before the first write. The writer of one that is still pending starts again."""
        if not self._has_written:
            for found in await self._client.list_all(VIRTUAL_NETWORKS):
                if not found.is_confirmed:
                    await self._delete(found)
            self._has_written = True

    async def _put(self, network: VirtualNetwork) -> VirtualNetworkObject:
        document = await self._read_document(network.uuid)
        found = None if document is None else _decoded(document)
        if document is None or found is None or not found.is_confirmed:
            self._check_subnets(network)
            return await self._create(network, found)
        if found.spec.fq_name != network.fq_name:
            _check_name(network, await self._client.list_all(VIRTUAL_NETWORKS))
        if found.spec.subnets != network.subnets:
            self._check_subnets(network)
        wanted = msgspec.structs.replace(network, vni=found.spec.vni)
        if found.spec == wanted:
            return found
        return await self._client.replace(
            VIRTUAL_NETWORKS, network.uuid, replacement(document, virtual_network_object(wanted))
        )

    async def _create(self, network: VirtualNetwork, unfinished: VirtualNetworkObject | None) -> VirtualNetworkObject:
        """Proposes the network, and confirms it if nobody else has its name or vni."""
        others = await self._client.list_all(VIRTUAL_NETWORKS)
        _check_name(network, others)
        wanted = virtual_network_object(msgspec.structs.replace(network, vni=_select_vni(network, others)))
        proposal = await self._propose(wanted, unfinished)
        # Listed again after the proposal: of two concurrent writers, at least one sees the other's proposal.
        rivals = [other for other in await self._client.list_all(VIRTUAL_NETWORKS) if _conflict(other, proposal)]
        if any(rival.is_confirmed for rival in rivals):
            await self._delete(proposal)
            raise KubeConflictError(
                f"network {network.name}: another network with its name or vni was confirmed meanwhile"
            )
        for rival in rivals:
            await self._client.delete(
                VIRTUAL_NETWORKS, rival.metadata.name, resource_version=rival.metadata.resource_version
            )
        metadata = msgspec.structs.replace(proposal.metadata, annotations={})  # at the proposal's version
        return await self._client.replace(
            VIRTUAL_NETWORKS, network.uuid, msgspec.structs.replace(wanted, metadata=metadata)
        )

    async def _propose(
        self, wanted: VirtualNetworkObject, unfinished: VirtualNetworkObject | None
    ) -> VirtualNetworkObject:
        """Writes the proposal, unless the same one exists already, from any writer."""
        metadata = msgspec.structs.replace(wanted.metadata, annotations={PROPOSED: "true"})
        if unfinished is None:
            return await self._client.create(VIRTUAL_NETWORKS, msgspec.structs.replace(wanted, metadata=metadata))
        if unfinished.spec == wanted.spec:
            return unfinished
        metadata = msgspec.structs.replace(metadata, resource_version=unfinished.metadata.resource_version)
        proposal = msgspec.structs.replace(wanted, metadata=metadata)
        return await self._client.replace(VIRTUAL_NETWORKS, wanted.metadata.name, proposal)

    async def _read(self, uuid: str) -> VirtualNetworkObject | None:
        try:
            return await self._client.get(VIRTUAL_NETWORKS, uuid)
        except KubeNotFoundError:
            return None

    async def _read_document(self, uuid: str) -> Document | None:
        try:
            return await self._client.get(VIRTUAL_NETWORK_DOCUMENTS, uuid)
        except KubeNotFoundError:
            return None

    async def _delete(self, found: VirtualNetworkObject) -> bool:
        """Deletes the network at the version found; returns False if it has been changed."""
        try:
            await self._client.delete(
                VIRTUAL_NETWORKS, found.metadata.name, resource_version=found.metadata.resource_version
            )
        except KubeNotFoundError:
            return True
        except KubeConflictError:
            return False
        return True

    async def _is_used(self, uuid: str) -> bool:
        """Returns whether the network has an allocated address, according to the server."""
        # Not from the cache, which may lag behind another manager's allocations.
        blocks = await self._client.list_all(ADDRESS_BLOCKS, Selector(labels=f"{NETWORK_LABEL}={uuid}"))
        return any(has_allocations(block) for block in blocks)

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


def _decoded(document: Document) -> VirtualNetworkObject:
    return VirtualNetworkObject(document.metadata, msgspec.convert(document.spec, VirtualNetwork))


def _select_vni(network: VirtualNetwork, others: list[VirtualNetworkObject]) -> int:
    """Returns the requested vni, or else the lowest free one. Raises ConflictError if another network has it."""
    confirmed = [other.spec for other in others if other.is_confirmed and other.spec.uuid != network.uuid]
    taken = {other.vni: other.name for other in confirmed}
    if network.vni in taken and network.vni != 0:
        problem = f"vni {network.vni} is already used by network {taken[network.vni]}"
        raise ConflictError(f"network {network.name}: {problem}")
    return network.vni or next(vni for vni in range(1, len(taken) + 2) if vni not in taken)


def _check_name(network: VirtualNetwork, others: list[VirtualNetworkObject]) -> None:
    for other in others:
        if other.is_confirmed and other.spec.fq_name == network.fq_name and other.spec.uuid != network.uuid:
            raise ConflictError(f"network {network.name}: already exists with uuid {other.spec.uuid}")


def _conflict(one: VirtualNetworkObject, other: VirtualNetworkObject) -> bool:
    return one.spec.uuid != other.spec.uuid and (
        one.spec.vni == other.spec.vni or one.spec.fq_name == other.spec.fq_name
    )

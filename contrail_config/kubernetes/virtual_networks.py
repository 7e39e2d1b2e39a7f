"""Networks as objects, named by their uuids, each with a number (vni) and a name that no other one has.

Nothing on the server keeps numbers and names apart, and no lock is trusted to. So a new network is first *proposed*: it
is written with a mark by which everybody but other writers leaves it aside. Then all networks are read. If a settled
one has the number, another is tried; if one has the name, the network is refused. Other proposals in the way are
deleted, as they were read, so that whoever made them begins anew. At last the mark is removed, from the proposal
as it was written: if somebody deleted it, that fails. Of two writers, the one who reads later sees the other one's
proposal, so never do both settle. What a killed writer left is in nobody's way, and goes when the next one first
writes.

Not promised: that names are kept apart where an existing network takes another one, which no manager of ours does, and
that a subnet which two managers use and remove at the same moment is kept.
"""

import msgspec
from tenacity import TryAgain

from contrail_config.addressing.pool import AddressPool
from contrail_config.errors import ConflictError, InUseError, NotFoundError, StoreError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeConflictError, KubeExistsError, KubeNotFoundError
from contrail_config.kube.object_cache import Change
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import gives
from contrail_config.kubernetes.committer import Committer
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    NETWORK_LABEL,
    PROPOSED,
    VIRTUAL_NETWORKS,
    VirtualNetworkObject,
    succeed,
    virtual_network_object,
)
from contrail_config.kubernetes.network_cache import NetworkCache
from contrail_config.kubernetes.retry_on_conflict import retry_on_conflict
from contrail_config.objects import VirtualNetwork


class VirtualNetworkClient:
    """Networks by uuid. All methods that wait raise KubeError and StoreError."""

    def __init__(self, client: KubeClient, ledger: AllocationCache, clerk: Committer) -> None:
        self._client = client
        self._ledger = ledger
        self._clerk = clerk
        self._known = NetworkCache(ledger.forget_choices)
        self._wrote = False

    def known(self, uuid: str) -> VirtualNetwork:
        """The network, as it is known here. Raises NotFoundError."""
        known = self._known.get(uuid)
        if known is None:
            raise NotFoundError(f"there is no network {uuid}")
        return known

    async def look_up(self, uuid: str) -> None:
        """Asks for a network that is not known here, or not for certain: others may have made or removed it."""
        if self._known.is_certain(uuid):
            return
        found = await self._read(uuid)
        if found is not None and found.is_settled:
            self._known.take(found)
        else:
            self._known.forget(uuid)

    async def all(self) -> list[VirtualNetwork]:
        """All networks, by name."""
        found = await self._client.list_all(VIRTUAL_NETWORKS)
        return sorted((item.spec for item in found if item.is_settled), key=lambda network: network.name)

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it with its vni: the one it had, or asks for, or the lowest free.

        Raises ConflictError if another network has the fq_name or the vni, or if given addresses would lose their
        subnet or meet their gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        async with self._clerk.lock:
            await self._clerk.read_doubtful()
            async for attempt in retry_on_conflict(
                f"network {network.name}", KubeConflictError, KubeExistsError, KubeNotFoundError
            ):
                with attempt:
                    await self._drop_abandoned()
                    kept = await self._put(network)
            self._known.take(kept)
            return kept.spec

    async def delete(self, uuid: str) -> None:
        """Deletes the network, if it is there. Raises InUseError while an address of it is given."""
        async with self._clerk.lock:
            async for attempt in retry_on_conflict(f"network {uuid}"):
                with attempt:
                    found = await self._read(uuid)
                    if found is not None and await self._is_used(uuid):
                        raise InUseError(f"network {found.spec.name} cannot go: interfaces still have addresses in it")
                    if found is not None and not await self._delete(found):
                        raise TryAgain
            self._known.forget(uuid)

    async def delete_retired(self, uuid: str) -> None:
        """Deletes the network if it is retired and nobody has an address of it."""
        known = self._known.get(uuid)
        if known is None or not known.retired or any(self._ledger.given_in(uuid)):
            return
        async with self._clerk.lock:
            found = await self._read(uuid)
            if found is not None and found.spec.retired and not await self._is_used(uuid) and await self._delete(found):
                self._known.forget(uuid)

    def follow(self, change: Change[VirtualNetworkObject]) -> None:
        """Takes news of a network."""
        self._known.follow(change)

    async def _drop_abandoned(self) -> None:
        """Before the first write: deletes all proposals. If one is a living writer's, that begins anew."""
        if not self._wrote:
            for found in await self._client.list_all(VIRTUAL_NETWORKS):
                if not found.is_settled:
                    await self._delete(found)
            self._wrote = True

    async def _put(self, network: VirtualNetwork) -> VirtualNetworkObject:
        found = await self._read(network.uuid)
        if found is None or not found.is_settled:
            self._check_subnets(network)
            return await self._settle(network, found)
        if found.spec.fq_name != network.fq_name:
            _refuse_namesake(network, await self._client.list_all(VIRTUAL_NETWORKS))
        if found.spec.subnets != network.subnets:
            self._check_subnets(network)
        wanted = msgspec.structs.replace(network, vni=found.spec.vni)
        if found.spec == wanted:
            return found
        return await self._client.replace(
            VIRTUAL_NETWORKS, network.uuid, succeed(found, virtual_network_object(wanted))
        )

    async def _settle(self, network: VirtualNetwork, unfinished: VirtualNetworkObject | None) -> VirtualNetworkObject:
        """Proposes the network, and settles it if nobody else has its name and number."""
        others = await self._client.list_all(VIRTUAL_NETWORKS)
        _refuse_namesake(network, others)
        wanted = virtual_network_object(msgspec.structs.replace(network, vni=_choose_vni(network, others)))
        proposal = await self._propose(wanted, unfinished)
        rivals = [other for other in await self._client.list_all(VIRTUAL_NETWORKS) if _are_rivals(other, proposal)]
        if any(rival.is_settled for rival in rivals):
            await self._delete(proposal)
            raise KubeConflictError(f"network {network.name}: another one was settled at the same moment")
        for rival in rivals:
            await self._client.delete(
                VIRTUAL_NETWORKS, rival.metadata.name, resource_version=rival.metadata.resource_version
            )
        metadata = msgspec.structs.replace(proposal.metadata, annotations={})
        return await self._client.replace(
            VIRTUAL_NETWORKS, network.uuid, msgspec.structs.replace(wanted, metadata=metadata)
        )

    async def _propose(
        self, wanted: VirtualNetworkObject, unfinished: VirtualNetworkObject | None
    ) -> VirtualNetworkObject:
        """Writes the proposal, unless it is there already, by whomever."""
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

    async def _delete(self, found: VirtualNetworkObject) -> bool:
        """Deletes the network as it was found; tells whether it is gone."""
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
        """Whether anybody has an address of the network, as the server knows it now."""
        blocks = await self._client.list_all(ADDRESS_BLOCKS, Selector(labels=f"{NETWORK_LABEL}={uuid}"))
        return any(gives(block) for block in blocks)

    def _check_subnets(self, network: VirtualNetwork) -> None:
        try:
            pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        except ValueError as error:
            raise StoreError(f"network {network.name} cannot be kept: {error}") from error
        for place in self._ledger.given_in(network.uuid):
            try:
                bounds = pools[place.pool.family].bounds(place.address)
            except ValueError as error:
                problem = f"cannot lose the subnet of {place.text}: it is given"
                raise ConflictError(f"network {network.name} {problem}") from error
            if bounds.gateway == place.text:
                problem = f"cannot have the gateway {place.text}: it is given to an interface"
                raise ConflictError(f"network {network.name} {problem}")


def _choose_vni(network: VirtualNetwork, others: list[VirtualNetworkObject]) -> int:
    """The number that is asked for, else the lowest that is free. Raises ConflictError if another network has it."""
    settled = [other.spec for other in others if other.is_settled and other.spec.uuid != network.uuid]
    taken = {other.vni: other.name for other in settled}
    if network.vni in taken and network.vni != 0:
        problem = f"cannot have vni {network.vni}: network {taken[network.vni]} has it"
        raise ConflictError(f"network {network.name} {problem}")
    return network.vni or next(vni for vni in range(1, len(taken) + 2) if vni not in taken)


def _refuse_namesake(network: VirtualNetwork, others: list[VirtualNetworkObject]) -> None:
    for other in others:
        if other.is_settled and other.spec.fq_name == network.fq_name and other.spec.uuid != network.uuid:
            raise ConflictError(f"network {network.name} is there already, with uuid {other.spec.uuid}")


def _are_rivals(one: VirtualNetworkObject, other: VirtualNetworkObject) -> bool:
    return one.spec.uuid != other.spec.uuid and (
        one.spec.vni == other.spec.vni or one.spec.fq_name == other.spec.fq_name
    )

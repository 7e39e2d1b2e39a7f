"""Creation of networks, each with a unique number (vni).

The server does not enforce uniqueness, and no lock is trusted. So creation has two phases. The network is first
*proposed*: written with an annotation that makes everybody except other writers ignore it. Then the writer waits until
its own watch has delivered the proposal, and with it every network that was written before. If a confirmed one has the
vni, another vni is tried. Other proposals with the same vni are deleted at the version that was observed, so their
writers start again. Finally the network is *confirmed*: the
annotation is removed from the proposal at the version that was written, which fails if somebody has deleted it. Of two
writers, the one that proposes later observes the proposal of the other one, so they never both confirm. The proposal of
a killed writer blocks nobody; the next writer deletes it before its first write.

Names are unique since objects are: a network's uuid, which names its object, is derived from its name. One of another
uuid is invalid, and holds no name.

A number is free only if no virtual machine has it either, and no network that somebody else deleted: `network_numbers`.

No network is listed, so a network costs the same three requests however many there are. Only if the watch is late, as
one on a dead connection, are the networks listed instead.
"""

import asyncio
import itertools
from collections.abc import Iterable

import msgspec

from contrail_config.errors import ConflictError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeConflictError, KubeNotFoundError
from contrail_config.kubernetes.informer import Informer
from contrail_config.kubernetes.kinds import (
    PROPOSED,
    VIRTUAL_NETWORKS,
    Document,
    VirtualNetworkObject,
    virtual_network_object,
)
from contrail_config.kubernetes.network_numbers import NetworkNumbers
from contrail_config.objects import VirtualNetwork, network_uuid


class NetworkCreation:
    """Creates networks of one process.

    `informer` follows the networks; it must have listed them before, and `numbers` must have all virtual machines.
    """

    def __init__(self, client: KubeClient, informer: Informer[VirtualNetworkObject], numbers: NetworkNumbers) -> None:
        self._client = client
        self._informer = informer
        self._numbers = numbers
        self._in_creation: set[int] = set()  # vnis
        self._responses: dict[int, VirtualNetworkObject] = {}  # networks that the informer may not show yet, by vni
        self._first_write = asyncio.Lock()
        self._has_written = False

    async def delete_stale_proposals(self) -> None:
        """Deletes all proposals before the first write. The writer of one that is still pending starts again."""
        async with self._first_write:
            if not self._has_written:
                for found in [found for found in self._informer.objects if not found.is_confirmed]:
                    await delete_at_version(self._client, found)
                self._has_written = True

    async def create(self, network: VirtualNetwork, unfinished: VirtualNetworkObject | None) -> VirtualNetworkObject:
        """Proposes the network, and confirms it if nobody else has its vni.

        Raises ConflictError if another network has, and KubeConflictError if it has to be tried again.
        """
        others = [other for other in self._informer.objects if other.is_confirmed and not _same(other, network)]
        await self._check_conflicts(network, others)
        vni = network.vni or self._free_vni(network.uuid, others)
        self._in_creation.add(vni)
        try:
            wanted = virtual_network_object(msgspec.structs.replace(network, vni=vni))
            created = await self._confirm(wanted, await self._propose(wanted, unfinished))
        finally:
            self._in_creation.discard(vni)
        self._responses[vni] = created
        return created

    def _free_vni(self, uuid: str, others: Iterable[VirtualNetworkObject]) -> int:
        """Returns the number that the network's virtual machines have, else the lowest; one that nobody else has."""
        for vni, known in list(self._responses.items()):
            if self._informer.has_observed(known.metadata.name, known.metadata.resource_version):
                del self._responses[vni]
        taken = {other.spec.vni for other in others} | self._in_creation | self._responses.keys()
        taken |= self._numbers.of_others(uuid)
        return next(vni for vni in itertools.chain(self._numbers.of(uuid), itertools.count(1)) if vni not in taken)

    async def _check_conflicts(self, network: VirtualNetwork, others: Iterable[VirtualNetworkObject]) -> None:
        for other in others:
            if other.spec.fq_name == network.fq_name and _has_name(other) and await self._exists(other):
                raise ConflictError(f"network {network.name}: already exists with uuid {other.spec.uuid}")
            if network.vni and other.spec.vni == network.vni and await self._exists(other):
                problem = f"vni {network.vni} is already used by network {other.spec.name}"
                raise ConflictError(f"network {network.name}: {problem}")
        if network.vni in self._numbers.of_others(network.uuid):
            problem = f"vni {network.vni} still belongs to another network, which was deleted or has virtual machines"
            raise ConflictError(f"network {network.name}: {problem}")

    async def _exists(self, observed: VirtualNetworkObject) -> bool:
        """Whether the network still exists: the watch may not have delivered its deletion, and nobody tries again."""
        try:
            found = await self._client.get(VIRTUAL_NETWORKS, observed.metadata.name)
        except KubeNotFoundError:
            return False
        return found.is_confirmed

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

    async def _confirm(self, wanted: VirtualNetworkObject, proposal: VirtualNetworkObject) -> VirtualNetworkObject:
        observed = await self._informer.observe(proposal.metadata.name, proposal.metadata.resource_version)
        others = self._informer.objects if observed else await self._list()
        rivals = [other for other in others if _conflict(other, proposal)]
        if confirmed := [rival for rival in rivals if rival.is_confirmed]:
            self._responses.update({rival.spec.vni: rival for rival in confirmed})
            await delete_at_version(self._client, proposal)
            raise KubeConflictError(f"network {wanted.spec.name}: another network with its vni was confirmed meanwhile")
        for rival in rivals:
            await self._client.delete(
                VIRTUAL_NETWORKS, rival.metadata.name, resource_version=rival.metadata.resource_version
            )
        metadata = msgspec.structs.replace(proposal.metadata, annotations={})  # at the proposal's version
        return await self._client.replace(
            VIRTUAL_NETWORKS, wanted.metadata.name, msgspec.structs.replace(wanted, metadata=metadata)
        )

    async def _list(self) -> list[VirtualNetworkObject]:
        listed = await self._client.list_each(VIRTUAL_NETWORKS)
        return [item for item in listed if not isinstance(item, UndecodableObject)]


async def delete_at_version(client: KubeClient, found: VirtualNetworkObject | Document) -> bool:
    """Deletes the network at the version found; returns False if it has been changed."""
    try:
        await client.delete(VIRTUAL_NETWORKS, found.metadata.name, resource_version=found.metadata.resource_version)
    except KubeNotFoundError:
        return True
    except KubeConflictError:
        return False
    return True


def _same(one: VirtualNetworkObject, other: VirtualNetwork) -> bool:
    return one.spec.uuid == other.uuid


def _has_name(one: VirtualNetworkObject) -> bool:
    return one.spec.uuid == network_uuid(one.spec.fq_name)


def _conflict(one: VirtualNetworkObject, other: VirtualNetworkObject) -> bool:
    return one.spec.uuid != other.spec.uuid and one.spec.vni == other.spec.vni

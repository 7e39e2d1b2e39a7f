"""Writes of networks: project, IPAM and network on the server.

Project and IPAM are made where they are missing, and never altered; only an IPAM that was made here is deleted with its
network. Of a network that others made, only the annotation that makes it ours is written. A network with held addresses
cannot be deleted on the server: it loses the annotation that makes it ours, so nobody sees it, and goes with its last
hold.
"""

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from contrail_config.addressing.notation import parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.errors import ConflictError, InUseError, StoreError
from contrail_config.objects import VirtualNetwork
from contrail_config.stored_identity import has_equal_subnets
from contrail_config.vnc.cache import Cache
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncExistsError, VncInUseError, VncNotFoundError
from contrail_config.vnc.foreign_networks import ForeignNetworks
from contrail_config.vnc.ipams import read_allocation_pools
from contrail_config.vnc.mapping import addresses, annotations, networks
from contrail_config.vnc.mapping.subnets import subnet_problem
from contrail_config.vnc.network_adoption import NetworkAdoption
from contrail_config.vnc.store_errors import as_store_error


class NetworkWriter:
    """Creates, changes and deletes networks of one cluster. `adoption` finds those of others that may be used."""

    def __init__(
        self,
        client: VncClient,
        cache: Cache,
        cluster: str,
        *,
        foreign: ForeignNetworks,
        adoption: NetworkAdoption | None = None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._cluster = cluster
        self._foreign = foreign
        self._adoption = adoption
        self._projects: set[tuple[str, ...]] = set()

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates, adopts or replaces a network and returns it with its vni. Raises StoreError."""
        old = self._own(network.uuid)
        if old is None and self._adoption is not None:
            with as_store_error(f"network {network.name}"):
                network = await self._adoption.adopted(network)
            old = self._own(network.uuid)
        self._check_name(network, old)
        self._check_subnets(network)
        if old is not None and msgspec.structs.replace(network, vni=old.vni) == old:
            return old
        with as_store_error(f"network {network.name}"):
            if networks.was_adopted(network) and await self._exists(network):
                await self._annotate(network, old)
            elif old is None:
                await self.in_project(network.fq_name[:2], partial(self._create, network))
            else:
                await self._change(network, old)
            return await self._read_back(network)

    async def delete(self, uuid: str) -> None:
        """Deletes a network, or hides it while addresses are held. Raises InUseError while one is allocated."""
        network = self._own(uuid)
        if network is None:
            return
        records = self._cache.addresses.of_network(uuid)
        if any(record.held_until is None for record in records):
            raise InUseError(f"network {network.name}: still in use: interfaces have addresses in it")
        with as_store_error(f"network {network.name}"):
            if records:
                with contextlib.suppress(VncNotFoundError):
                    await self._client.set_annotations(
                        uuid, {annotations.HIDDEN: "true"}, removed=[annotations.NETWORK]
                    )
            else:
                await self._delete(network)
        self._cache.networks.wrote(uuid, None)

    async def delete_hidden(self, uuid: str) -> None:
        """Deletes a hidden network whose last hold has ended; no effect on any other network."""
        if self._cache.networks.get(uuid) is not None or self._cache.addresses.of_network(uuid):
            return
        with as_store_error(f"network {uuid}"), contextlib.suppress(VncNotFoundError, VncInUseError):
            found = await self._client.read(networks.KIND, uuid, fields=["annotations", "network_ipam_refs"])
            if annotations.HIDDEN in annotations.from_object(found):
                await self._client.delete(networks.KIND, uuid)
                for link in found.get("network_ipam_refs", ()):
                    await self._delete_own_ipam(link["uuid"])

    async def delete_ipam(self, uuid: str) -> None:
        """Deletes an IPAM unless a network uses it. Idempotent."""
        with as_store_error(f"IPAM {uuid}"), contextlib.suppress(VncInUseError):
            await self._client.delete(networks.IPAM, uuid)

    async def in_project(self, fq_name: tuple[str, ...], create: Callable[[], Awaitable[None]]) -> None:
        """Creates children of a project, and before them the project if it is missing."""
        await self._ensure_project(fq_name)
        try:
            await create()
        except VncNotFoundError:
            if not await self._is_missing(fq_name):
                raise
            self._projects.discard(fq_name)  # deleted by others since it was last needed
            await self._ensure_project(fq_name)
            await create()

    def _own(self, uuid: str) -> VirtualNetwork | None:
        """Returns a network of ours; None if there is none of this uuid."""
        return None if self._foreign.is_shown(uuid) else self._cache.networks.get(uuid)

    async def _is_missing(self, project: tuple[str, ...]) -> bool:
        try:
            await self._client.find_uuid(networks.PROJECT, project)
        except VncNotFoundError:
            return True
        return False

    async def _ensure_project(self, fq_name: tuple[str, ...]) -> None:
        if fq_name not in self._projects:
            with contextlib.suppress(VncExistsError):
                await self._client.create(networks.PROJECT, {"fq_name": list(fq_name), "parent_type": "domain"})
            self._projects.add(fq_name)

    async def _create(self, network: VirtualNetwork) -> None:
        with contextlib.suppress(VncExistsError):
            await self._client.create(networks.IPAM, networks.ipam_body(network, self._cluster))
        try:
            await self._client.create(networks.KIND, networks.network_body(network, self._cluster))
        except VncExistsError:
            # ours, hidden or from a lost answer; or another one has the name
            found = await self._client.find_uuid(networks.KIND, network.fq_name)
            if found != network.uuid:
                raise ConflictError(f"network {network.name}: already exists with uuid {found}") from None
            await self._check_cluster(network)
            await self._replace(network, subnets_changed=True)

    async def _check_cluster(self, network: VirtualNetwork) -> None:
        """Raises ConflictError if another cluster has this network.

        The names of cluster and namespace, joined by a hyphen, name the project: those of two clusters may be equal.
        """
        item = await self._client.read(networks.KIND, network.uuid, fields=["annotations"])
        cluster = annotations.from_object(item).get(annotations.CLUSTER, self._cluster)
        if cluster != self._cluster:
            problem = f"belongs to cluster {cluster}: give one of both namespaces another name"
            raise ConflictError(f"network {network.name}: {problem}")

    async def _change(self, network: VirtualNetwork, old: VirtualNetwork) -> None:
        await self._replace(network, subnets_changed=network.subnets != old.subnets)

    async def _replace(self, network: VirtualNetwork, *, subnets_changed: bool) -> None:
        changes: dict[str, Any] = networks.properties(network)
        if subnets_changed:
            await self._free_outside(network)
            changes["network_ipam_refs"] = networks.ipam_links(network)
        await self._client.update(networks.KIND, network.uuid, changes)
        await self._set_annotation(network)

    async def _annotate(self, network: VirtualNetwork, old: VirtualNetwork | None) -> None:
        """Writes a network that others made. Raises ConflictError if its subnets would change."""
        if old is not None and not has_equal_subnets(network, old):
            raise ConflictError(f"network {network.name}: made by another program, so its subnets cannot change")
        await self._set_annotation(network)

    async def _exists(self, network: VirtualNetwork) -> bool:
        """Whether the server has a network of this uuid; else it was deleted by others, and is created."""
        return bool(await self._client.list_by_uuid(networks.KIND, [network.uuid], fields=["id_perms"]))

    async def _set_annotation(self, network: VirtualNetwork) -> None:
        # read again: a newer release may have added fields since the cache was told
        item = await self._client.read(networks.KIND, network.uuid, fields=["annotations"])
        annotation = networks.network_annotation(network, annotations.json_in(item, annotations.NETWORK))
        pairs = {annotations.CLUSTER: self._cluster, annotations.NETWORK: annotation}
        await self._client.set_annotations(network.uuid, pairs, removed=[annotations.HIDDEN])

    async def _free_outside(self, network: VirtualNetwork) -> None:
        """Frees held addresses in subnets that the network loses: nobody can be given them any more."""
        pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
        for record in self._cache.addresses.of_network(network.uuid):
            address = parse_address(record.address, family=record.family)
            if record.held_until is not None and not pools[record.family].contains(address):
                await self._client.delete(addresses.KIND, record.uuid)
                self._cache.addresses.wrote(record.uuid, None)

    async def _read_back(self, network: VirtualNetwork) -> VirtualNetwork:
        item = await self._client.read(networks.KIND, network.uuid, fields=networks.FIELDS)
        stored = networks.read_network(item, self._cluster)
        if stored is None:
            raise ConflictError(f"network {network.name}: deleted by others while it was written")
        self._foreign.taken_over(network.uuid)
        self._cache.addresses.set_flat_ipam(network.uuid, networks.flat_ipam(item))
        self._cache.addresses.set_ranges(network.uuid, networks.allocation_pools(item))
        await read_allocation_pools(self._client, self._cache.addresses)
        self._cache.networks.wrote(network.uuid, stored)
        return stored

    async def _delete(self, network: VirtualNetwork) -> None:
        await self._client.delete(networks.KIND, network.uuid)
        with contextlib.suppress(VncNotFoundError, VncInUseError):  # shared with a network of others
            await self._delete_own_ipam(await self._client.find_uuid(networks.IPAM, networks.ipam_name(network)))

    async def _delete_own_ipam(self, uuid: str) -> None:
        """Deletes an IPAM unless others made it: a network of ours uses theirs where one of its name is there."""
        if networks.is_own_ipam(await self._client.read(networks.IPAM, uuid, fields=["annotations"]), self._cluster):
            await self._client.delete(networks.IPAM, uuid)

    def _check_name(self, network: VirtualNetwork, old: VirtualNetwork | None) -> None:
        if old is not None and old.fq_name != network.fq_name:
            raise ConflictError(f"network {network.name}: already exists as {old.name}, and cannot be renamed")
        for other in self._cache.networks.named(network.name):
            if other.uuid != network.uuid:
                raise ConflictError(f"network {network.name}: already exists with uuid {other.uuid}")

    def _check_subnets(self, network: VirtualNetwork) -> None:
        try:
            pools = {family: AddressPool(network.subnets, family=family) for family in (4, 6)}
            problems = [problem for subnet in network.subnets if (problem := subnet_problem(subnet))]
        except ValueError as error:
            raise StoreError(f"network {network.name}: invalid subnets: {error}") from error
        if problems:
            raise StoreError(f"network {network.name}: invalid subnets: {problems[0]}")
        for record in self._cache.addresses.of_network(network.uuid):
            if record.held_until is None:
                _check_allocated(network, pools[record.family], record.address, family=record.family)


def _check_allocated(network: VirtualNetwork, pool: AddressPool, address: str, *, family: int) -> None:
    """Raises ConflictError if an allocated address would be in no subnet, or equal the gateway of its subnet."""
    try:
        bounds = pool.bounds(parse_address(address, family=family))
    except ValueError as error:
        problem = f"cannot remove the subnet of {address}: the address is allocated"
        raise ConflictError(f"network {network.name}: {problem}") from error
    if bounds.gateway == address:
        raise ConflictError(f"network {network.name}: gateway {address} is already allocated to an interface")

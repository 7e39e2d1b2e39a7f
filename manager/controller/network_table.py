"""Networks that the store holds, kept in the catalogue: the manager's own, the pod network, and those of others.

The manager's own networks are known from its writes, at once and in order. Those of others (in a Contrail system, for
example) come from a watch, as do deletions. A store may delete a retired network with its last interface. Any other
network that pods use, or may use, was deleted by mistake: it is written again, with its uuid and vni.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from contrail_config.errors import ConflictError, InUseError, StoreError
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.store import Change, ChangeType, Store, WatchStart
from contrail_config.stored_identity import with_stored_identity
from contrail_service.errors import ConfigurationError
from manager.store_space import once_there_is_space

log = logging.getLogger(__name__)

FindNetwork = Callable[[FqName], Awaitable[VirtualNetwork | None]]
"""Returns a network of others that the store does not show before it is named; None if there is none."""


async def no_others(_name: FqName) -> None:
    """The store shows all networks."""


class NetworkTable:
    """`networks` is the catalogue's; `on_change` is called with the name of each network that changed in any way.

    `find` is asked for networks that are named and not known.

    `on_deleted` is called with each network of the table that the watch reports as deleted, so that
    `restore_if_deleted` is called where nobody else changes it.
    """

    def __init__(
        self,
        store: Store,
        networks: dict[FqName, VirtualNetwork],
        *,
        on_change: Callable[[FqName], None],
        on_deleted: Callable[[VirtualNetwork], None],
        find: FindNetwork = no_others,
    ) -> None:
        self._find = find
        self._store = store
        self._networks = networks
        self._on_change = on_change
        self._on_deleted = on_deleted
        self._deleted: dict[FqName, VirtualNetwork] = {}  # reported as deleted, and not restored yet
        self._retired: dict[str, FqName] = {}  # by uuid
        self._unconfirmed: dict[FqName, VirtualNetwork] = {}  # written, but the store did not confirm it
        self._pod_network = ""

    @asynccontextmanager
    async def load(self, pod_network: VirtualNetwork) -> AsyncIterator[AsyncIterator[Change[VirtualNetwork]]]:
        """Creates or updates the pod network, reads all networks, and yields the changes from then on, for `follow`.

        Raises ConfigurationError if the pod network cannot become as configured.
        """
        # The watch begins before the list, so that no change between them is missed.
        async with self._store.watch_networks(start=WatchStart.NOW) as changes:
            kept = await once_there_is_space(partial(_ensure_pod_network, self._store, pod_network))
            self._pod_network = kept.uuid
            for network in await self._store.networks():
                self._note(network)
            yield changes

    async def follow(self, changes: AsyncIterator[Change[VirtualNetwork]]) -> None:
        """Applies changes that others make; ends only by cancellation."""
        async for change in changes:
            if change.object is not None:
                self._take(change.type, change.object)

    async def look_for(self, name: FqName) -> None:
        """Adds a network of others if it is not known and exists. Raises StoreError."""
        if name not in self._networks and (found := await self._find(name)) is not None:
            self._note(found)
            self._on_change(name)

    def may_adopt(self, network: VirtualNetwork) -> bool:
        """Whether others made the network, and the store may let it become one of ours."""
        return self._find is not no_others and not self._is_own(network)

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Writes an own network and returns it as stored. Raises ConflictError if another network has its name."""
        self._unconfirmed[network.fq_name] = network
        try:
            kept = await self._store.put_network(network)
        except ConflictError:
            self._unconfirmed.pop(network.fq_name, None)
            raise
        self._note(kept)
        self._on_change(kept.fq_name)
        return kept

    async def restore_if_deleted(self, name: FqName) -> None:
        """Writes a network again that the watch reported as deleted, if pods use it or may use it."""
        deleted = self._deleted.pop(name, None)
        if deleted is None:
            return
        try:
            if not self._is_own(deleted) or deleted.retired:
                if await self._store.has_addresses(deleted.uuid):
                    await self._restore(deleted)
            elif (current := self._networks.get(name)) is not None:  # else it is retired and deleted since
                await self._restore(current)
        except StoreError:
            self._deleted.setdefault(name, deleted)
            raise

    async def _restore(self, network: VirtualNetwork) -> None:
        """Does nothing if it exists: the watch may report the deletion of a predecessor late."""
        kept = await self._put_perhaps_deleted(network)
        self._note(kept)
        self._on_change(kept.fq_name)

    async def _put_perhaps_deleted(self, network: VirtualNetwork) -> VirtualNetwork:
        """Writes a network whose number may have been given to another one, if it was deleted meanwhile."""
        try:
            return await self._store.put_network(network)
        except ConflictError as error:
            kept = await self._store.put_network(msgspec.structs.replace(network, vni=0))
            log.warning(
                "network %s: restored with vni %d: %s; recreate its pods that have vni %d",
                network.name,
                kept.vni,
                error,
                network.vni,
            )
            return kept

    def unconfirmed(self, name: FqName) -> VirtualNetwork | None:
        """Returns an own network that the store may hold although its answer was lost."""
        return self._unconfirmed.get(name)

    async def retire(self, network: VirtualNetwork) -> bool:
        """Deletes an own network, or closes it to new pods while it has interfaces; returns whether it is deleted."""
        retired = msgspec.structs.replace(network, retired=True)
        self._note(retired)  # first, so that pods mapped during the writes below do not get it
        # Until the deletion is confirmed: another manager may have created the network again.
        self._unconfirmed[network.fq_name] = retired
        # Stored as retired before the deletion is tried: a manager that is killed in between leaves it closed.
        retired = await self._put_perhaps_deleted(retired)
        self._note(retired)
        while not await self._delete(network):
            if network.fq_name in self._networks:
                self._unconfirmed.pop(network.fq_name, None)
                return False
            # The watch reported a deletion meanwhile: by the last interface's release, or an earlier one, late.
            self._note(retired)
        self._forget(network)
        self._unconfirmed.pop(network.fq_name, None)
        self._deleted.pop(network.fq_name, None)
        return True

    async def _delete(self, network: VirtualNetwork) -> bool:
        """Returns whether the network is deleted, and not in use."""
        try:
            await self._store.delete_network(network.uuid)
        except InUseError:
            return False
        return True

    def released(self, network_uuid: str) -> None:
        """Reports a retired network as changed: an address of it was released, so it may be deletable now."""
        if name := self._retired.get(network_uuid):
            self._on_change(name)

    def _take(self, kind: ChangeType, network: VirtualNetwork) -> None:
        # Changes of own networks are ignored: they are known from the writes, and a delayed event of the watch must not
        # replace a newer state. Only deletions count.
        known = self._networks.get(network.fq_name)
        if kind is ChangeType.DELETED:
            if known is not None and known.uuid == network.uuid:
                self._deleted[known.fq_name] = known
                self._on_deleted(known)
                if known.retired or not self._is_own(known):
                    self._forget(known)  # restored if it is still in use
        elif not self._is_own(network) and known != network:
            self._note(network)
            self._on_change(network.fq_name)

    def _is_own(self, network: VirtualNetwork) -> bool:
        return network.nad is not None or network.namespace is not None or network.uuid == self._pod_network

    def _note(self, network: VirtualNetwork) -> None:
        self._networks[network.fq_name] = network
        self._unconfirmed.pop(network.fq_name, None)
        if network.retired:
            self._retired[network.uuid] = network.fq_name
        else:
            self._retired.pop(network.uuid, None)

    def _forget(self, network: VirtualNetwork) -> None:
        self._networks.pop(network.fq_name, None)
        self._retired.pop(network.uuid, None)
        self._on_change(network.fq_name)


async def _ensure_pod_network(store: Store, wanted: VirtualNetwork) -> VirtualNetwork:
    """Creates or updates the cluster pod network, and returns it as stored.

    Subnets can be added, but not changed or removed while an address of the network is allocated. Those of a network
    that others made stay as they are. Raises ConfigurationError; ConflictError.
    """
    present = next((network for network in await store.networks() if network.fq_name == wanted.fq_name), None)
    if present is None:
        return await store.put_network(wanted)
    if present.uuid != wanted.uuid:
        return await store.put_network(msgspec.structs.replace(with_stored_identity(wanted, present), vni=present.vni))
    if not set(present.subnets) <= set(wanted.subnets):
        await _delete_pod_network(store, present, wanted)
    return await store.put_network(msgspec.structs.replace(wanted, vni=present.vni))


async def _delete_pod_network(store: Store, present: VirtualNetwork, wanted: VirtualNetwork) -> None:
    try:
        await store.delete_network(present.uuid)
    except InUseError as error:
        key = "subnets" if _cidrs(present) - _cidrs(wanted) else "gateway"
        problem = f"cannot change from {describe_subnets(present)} to {describe_subnets(wanted)}"
        raise ConfigurationError(f"pod-network.{key}: {problem} while pods have addresses in it") from error


def _cidrs(network: VirtualNetwork) -> set[str]:
    return {subnet.cidr for subnet in network.subnets}


def describe_subnets(network: VirtualNetwork) -> str:
    """Returns the network's subnets as text, each with its gateway."""
    return ", ".join(f"{subnet.cidr} (gateway {subnet.gateway or 'none'})" for subnet in network.subnets)

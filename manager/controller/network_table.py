"""The networks that the store holds, kept in the catalogue: those that we make, and those that somebody else makes.

Our own are known from our own writes, at once and in order. Those of others (in a Contrail system, say) come from a
watch, and so does the end of a retired network of ours, which a store may delete with its last interface by itself.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from contrail_config.errors import ConflictError, InUseError
from contrail_config.objects import FqName, VirtualNetwork
from contrail_config.store import Change, ChangeType, Store, WatchStart
from manager.controller.pod_network import keep_pod_network


class NetworkTable:
    """`networks` is the catalogue's; `changed` is told the name of whatever comes, goes or changes."""

    def __init__(
        self, store: Store, networks: dict[FqName, VirtualNetwork], *, changed: Callable[[FqName], None]
    ) -> None:
        self._store = store
        self._networks = networks
        self._changed = changed
        self._retired: dict[str, FqName] = {}  # by uuid
        self._sent: dict[FqName, VirtualNetwork] = {}  # to the store, which did not answer that it keeps them
        self._pod_network = ""

    @asynccontextmanager
    async def load(self, pod_network: VirtualNetwork) -> AsyncIterator[AsyncIterator[Change[VirtualNetwork]]]:
        """Reads all networks, and makes the pod network; inside, gives the changes from then on, for `follow`.

        Raises ConfigurationError if the pod network cannot be as it is wanted.
        """
        async with self._store.watch_networks(start=WatchStart.NOW) as changes:
            await keep_pod_network(self._store, pod_network)
            self._pod_network = pod_network.uuid
            for network in await self._store.networks():
                self._note(network)
            yield changes

    async def follow(self, changes: AsyncIterator[Change[VirtualNetwork]]) -> None:
        """Keeps up with changes that others make, for ever."""
        async for change in changes:
            if change.object is not None:
                self._take(change.type, change.object)

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        """Writes a network of ours and returns it as kept. Raises ConflictError if another one bears its name."""
        self._sent[network.fq_name] = network
        try:
            kept = await self._store.put_network(network)
        except ConflictError:
            self._sent.pop(network.fq_name, None)
            raise
        self._note(kept)
        self._changed(kept.fq_name)
        return kept

    def sent(self, name: FqName) -> VirtualNetwork | None:
        """A network of ours that the store may keep, though its answer did not come."""
        return self._sent.get(name)

    async def retire(self, network: VirtualNetwork) -> bool:
        """Deletes a network of ours, or keeps it from new pods while it has interfaces; tells whether it is gone."""
        retired = msgspec.structs.replace(network, retired=True)
        self._note(retired)
        self._sent[network.fq_name] = retired  # until it is known to be gone: another manager may have made it again
        await self._store.put_network(retired)
        try:
            await self._store.delete_network(network.uuid)
        except InUseError:
            self._note(retired)
            return False
        self._forget(network)
        self._sent.pop(network.fq_name, None)
        return True

    def released(self, network_uuid: str) -> None:
        """An address of the network came free: a retired one may be able to go."""
        if name := self._retired.get(network_uuid):
            self._changed(name)

    def _take(self, kind: ChangeType, network: VirtualNetwork) -> None:
        known = self._networks.get(network.fq_name)
        foreign = network.nad is None and network.uuid != self._pod_network
        if kind is ChangeType.DELETED:
            if known is not None and known.uuid == network.uuid and (foreign or known.retired):
                self._forget(network)
        elif foreign and known != network:
            self._note(network)
            self._changed(network.fq_name)

    def _note(self, network: VirtualNetwork) -> None:
        self._networks[network.fq_name] = network
        self._sent.pop(network.fq_name, None)
        if network.retired:
            self._retired[network.uuid] = network.fq_name
        else:
            self._retired.pop(network.uuid, None)

    def _forget(self, network: VirtualNetwork) -> None:
        self._networks.pop(network.fq_name, None)
        self._retired.pop(network.uuid, None)
        self._changed(network.fq_name)

"""The store of a cluster: what manager and agents of many machines share through a Kubernetes API server.

Promised: what was acknowledged is in etcd, a machine is there whole or not at all, and no address is given twice,
though several managers write at once: the server takes no change to what is not as it was read. An agent reads the
machines of its own node and no other kind; nothing else is read before a method needs it.

Not promised: that all states are seen in between. A watcher that was cut off from the server is told what changed, as
one change. Addresses that a machine still bears are freed with the machine alone.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Change as KubeChange
from contrail_config.kube.object_cache import Deleted, Listed
from contrail_config.kube.selector import EVERYTHING
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import read_block
from contrail_config.kubernetes.clock import SteadyClock
from contrail_config.kubernetes.committer import PACE, Committer
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.informer import Informer
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
    AddressBlockObject,
    VirtualMachineObject,
    VirtualNetworkObject,
)
from contrail_config.kubernetes.operations import free, give, shorten_holds
from contrail_config.kubernetes.virtual_machines import VirtualMachineClient, of_node
from contrail_config.kubernetes.virtual_networks import VirtualNetworkClient
from contrail_config.kubernetes.watcher import Watcher
from contrail_config.objects import InterfaceAddress, VirtualMachine, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressRequest, Change, T_co, WatchStart

log = logging.getLogger(__name__)

_READERS: Final = 16
"""Machines that are asked for at one moment."""


class KubernetesStore:
    """A `Store` on a client that somebody else closes after it. `pace` as in `clerk`.

    `clock` tells seconds since the epoch, since holds outlive the process. Every method raises StoreUnavailableError
    once the store is closed, or when the server cannot be reached, refuses, or has too much to do: that may pass.
    """

    def __init__(self, client: KubeClient, *, clock: Callable[[], float] | None = None, pace: float = PACE) -> None:
        self._client = client
        self._clock = clock or SteadyClock()
        self._ledger = AllocationCache()
        self._clerk = Committer(client, self._ledger, clock=self._clock, pace=pace)
        self._machines = VirtualMachineClient(client)
        self._networks = VirtualNetworkClient(client, self._ledger, self._clerk)
        self._blocks_mirror = Informer(client, ADDRESS_BLOCKS, self._follow_block)
        self._networks_mirror = Informer(client, VIRTUAL_NETWORKS, self._networks.follow)
        self._watchers: set[Watcher[VirtualMachine] | Watcher[VirtualNetwork]] = set()
        self._closed = False

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network and returns it as kept: with its vni.

        Raises ConflictError if another network has the fq_name or the vni, or if given addresses would lose their
        subnet or meet their gateway, and StoreError if a subnet is malformed or overlaps another one.
        """
        with self._answering(f"network {network.name}"):
            await self._follow_addresses()
            return await self._networks.put(network)

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network; one that is not there is no error. Raises InUseError while an address is given."""
        with self._answering(f"network {uuid}"):
            await self._networks.delete(uuid)

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, by name."""
        with self._answering("networks"):
            return await self._networks.all()

    async def put_virtual_machine(self, machine: VirtualMachine) -> None:
        """Creates or replaces the machine of this uuid.

        Raises ConflictError if another machine has the name, or another manager wrote this one with other addresses;
        it is known here then, and the same again with its addresses succeeds. Raises NotFoundError if its namespace is
        gone.
        """
        with self._answering(f"machine {machine.name}"):
            await self._machines.put(machine)

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a machine, then frees its interfaces' addresses, which are held back for `hold` seconds.

        A retired network that it was the last one in goes with it. A machine that is not there is no error; what is
        known to have been its addresses is freed all the same.
        """
        with self._answering(f"machine {uuid}"):
            interfaces = await self._machines.delete(uuid)
            await self._free(dict.fromkeys(interfaces, ()), hold=hold)
            self._machines.forget(uuid)

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The machine of this uuid. Raises NotFoundError."""
        with self._answering(f"machine {uuid}"):
            return await self._machines.get(uuid)

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All machines, of one node if it is given, by name."""
        with self._answering("machines"):
            return await self._machines.all(node=node)

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Gives an address for each request, in the same order: all or none.

        Raises NotFoundError (network), AddressUnavailableError (wish), ExhaustedError.
        """
        with self._answering("addresses"):
            await self._follow_addresses()
            for uuid in {request.network_uuid for request in requests}:
                await self._networks.look_up(uuid)
            return await self._clerk.do(partial(give, requests=requests, find_network=self._networks.known))

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Frees the addresses of these owners; of those freed already it shortens the hold, never lengthens it.

        Those that a machine bears, as far as that machine is known here, stay given: they go with it.
        """
        with self._answering("addresses"):
            borne = [await self._machines.borne(owner) for owner in owners]
            await self._free(dict(zip(owners, borne, strict=True)), hold=hold)

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """The same for what these owners had: what they have now they keep."""
        with self._answering("addresses"):
            await self._follow_addresses()
            await self._clerk.do(partial(shorten_holds, owners=owners, hold=hold))

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses now."""
        with self._answering("addresses"):
            await self._follow_addresses()
            return await self._clerk.do(lambda draft: draft.ledger.owners())

    async def held_owners(self) -> dict[str, str]:
        """Interfaces that have no address any more, but had one that is still held back, with their networks' uuids."""
        with self._answering("addresses"):
            await self._follow_addresses()
            return await self._clerk.do(lambda draft: draft.ledger.held_owners(draft.now))

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of machines (of one node if it is given), in order, until the context is left.

        The iteration ends when the store is closed. While the server cannot be reached it waits.
        """
        selection = EVERYTHING if node is None else of_node(node)
        return self._watch(Watcher(self._client, VIRTUAL_MACHINES, selection, _see_machine, start=start))

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """The same for networks."""
        return self._watch(Watcher(self._client, VIRTUAL_NETWORKS, EVERYTHING, _see_network, start=start))

    def problems(self) -> list[str]:
        """Why what watchers were told is not up to date, if it is not."""
        return [watcher.problem for watcher in self._watchers if watcher.problem is not None]

    async def close(self) -> None:
        """Finishes what was begun, and ends all watchers after what was committed. Repeatable."""
        self._closed = True
        await self._clerk.close()
        await asyncio.gather(*(watcher.finish() for watcher in self._watchers))
        await self._blocks_mirror.close()
        await self._networks_mirror.close()

    async def _free(self, owners: dict[str, Any], *, hold: float) -> None:
        await self._follow_addresses()
        for uuid in await self._clerk.do(partial(free, owners=owners, hold=hold)):
            await self._networks.delete_retired(uuid)

    async def _follow_addresses(self) -> None:
        await self._networks_mirror.ready()
        await self._blocks_mirror.ready()

    def _follow_block(self, change: KubeChange[AddressBlockObject]) -> None:
        now = self._clock()
        if isinstance(change, Listed | UndecodableObject):
            return
        try:
            block = read_block(change.object, now=now)
        except ValueError as error:
            log.warning("address block %s holds nonsense: %s", change.object.metadata.name, error)
            return
        if isinstance(change, Deleted):
            self._ledger.follow_end(block.key, block.version or "")
        else:
            self._ledger.follow(block, now=now)

    @contextmanager
    def _answering(self, what: str) -> Iterator[None]:
        """Raises StoreError alone; `what` names the object."""
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        with as_store_error(what):
            yield

    @asynccontextmanager
    async def _watch(self, watcher: Watcher[T_co]) -> AsyncIterator[AsyncIterator[Change[T_co]]]:
        self._watchers.add(watcher)
        try:
            with self._answering("watch"):
                await watcher.begin()
            yield watcher
        finally:
            self._watchers.discard(watcher)
            await watcher.cut()


def _see_machine(item: VirtualMachineObject) -> VirtualMachine:
    return item.spec


def _see_network(item: VirtualNetworkObject) -> VirtualNetwork | None:
    return item.spec if item.is_settled else None

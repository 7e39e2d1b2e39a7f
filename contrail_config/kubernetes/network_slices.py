"""Network slices of a manager: the slice table, kept up to date from what the store does and sees, and its writer.

A slice is written at the same time as the virtual machine that changes it, so remote nodes know of a pod before its
sandbox has interfaces, or shortly after if many pods start on one node. Nothing here delays or fails the operations of
the store: what cannot be written is retried.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final

from contrail_config.errors import StoreError
from contrail_config.kube.backoff import Backoff
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Deleted, Listed, ObjectChange
from contrail_config.kubernetes.blocks import BlockKey
from contrail_config.kubernetes.compared_slice import ComparedSlice
from contrail_config.kubernetes.informer import Informer
from contrail_config.kubernetes.invalid_objects import InvalidObject
from contrail_config.kubernetes.node_addresses import NODES, NodeObject, tunnel_addresses
from contrail_config.kubernetes.slice_table import (
    FindHome,
    FindNetwork,
    FindNodeAddress,
    SliceKey,
    SliceTable,
)
from contrail_config.kubernetes.slice_writer import SliceWriter
from contrail_config.objects import FqName, VirtualMachine

log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 30.0  # seconds

OnSpread = Callable[[FqName, int], None]
"""Called with the name of a network and the number of nodes on which it has interfaces."""

OnNode = Callable[[str], None]
"""Called with the name of a node that has appeared or is gone."""


class NetworkSlices:
    """Keeps the slices of all networks while `run` runs; without `enabled` nothing has an effect."""

    def __init__(
        self,
        client: KubeClient,
        find_network: FindNetwork,
        find_home: FindHome,
        find_node_address: FindNodeAddress,
        *,
        enabled: bool,
    ) -> None:
        self._enabled = enabled
        self._table = SliceTable(find_network, find_home, find_node_address)
        self.writer = SliceWriter(client, self._table)
        self._nodes = Informer(client, NODES, self._apply_node)
        self._spread: tuple[int, OnSpread] | None = None
        self._on_node: OnNode | None = None
        self._has_virtual_machines = asyncio.Event()

    @property
    def invalid_objects(self) -> list[InvalidObject]:
        """Invalid slices, until they are put right."""
        return self.writer.invalid_objects

    async def run(self, sync: Callable[[], Awaitable[None]]) -> None:
        """Writes slices until it is cancelled, from `load` on. `sync` returns once networks and blocks are listed."""
        if not self._enabled:
            await asyncio.Event().wait()
        await self._has_virtual_machines.wait()
        backoff = Backoff(first=1.0, longest=_LONGEST_PAUSE)
        while True:
            try:
                await sync()
                await self._nodes.wait_until_synced()
                break
            except StoreError as error:
                pause = backoff.next_pause()
                log.warning("network slices: not written yet: %s (retry in %.1f s)", error, pause)
                await asyncio.sleep(pause)
        await self.writer.run()

    async def close(self) -> None:
        """Finishes the writes in progress."""
        await self.writer.close()
        await self._nodes.close()

    async def load(self, virtual_machines: Iterable[VirtualMachine]) -> None:
        """Adds all virtual machines that the server has, at the start of a manager."""
        if not self._enabled:
            return
        for number, virtual_machine in enumerate(virtual_machines):
            self._put(virtual_machine)
            if number % 256 == 0:
                await asyncio.sleep(0)
        self._has_virtual_machines.set()

    def put(self, virtual_machine: VirtualMachine) -> None:
        """Adds a virtual machine that is written, or was read."""
        if self._enabled:
            self.writer.changed(self._put(virtual_machine))

    def on_spread(self, nodes: int, callback: OnSpread) -> None:
        """Calls back with each network that has interfaces on more nodes than this, whenever it gets one."""
        self._spread = nodes, callback

    def keys(self, network_uuids: Collection[str]) -> set[SliceKey]:
        """Returns those of the slices of these networks that exist, or should. Raises StoreUnavailableError."""
        return self.writer.keys(network_uuids) if self._enabled else set()

    def compared(self, key: SliceKey) -> ComparedSlice | None:
        """Returns the slice, None if there is none, and there should be none."""
        return self.writer.compared(key)

    def on_node(self, callback: OnNode) -> None:
        """Calls back with each node that appears or is deleted."""
        self._on_node = callback

    def has_node(self, node: str) -> bool:
        """Returns whether there is such a node, once `nodes_listed` has returned."""
        return self._table.has_node(node)

    async def nodes_listed(self) -> None:
        """Waits until all nodes are listed. Raises StoreUnavailableError."""
        await self._nodes.wait_until_synced()

    def remove(self, interfaces: Iterable[str]) -> None:
        """Removes interfaces that no virtual machine has any more, by uuid. Idempotent."""
        if self._enabled:
            self.writer.changed(self._table.remove(interfaces))

    def set_block(self, block: BlockKey, node: str | None) -> None:
        """Sets the node to which a block belongs, None if to none."""
        if self._enabled:
            self.writer.changed(self._table.set_block(block, node))

    def network_changed(self, network_uuid: str) -> None:
        """Takes over changes of a network, such as its forwarding mode."""
        if self._enabled:
            self.writer.changed(self._table.network_changed(network_uuid))

    def _put(self, virtual_machine: VirtualMachine) -> set[SliceKey]:
        changed = self._table.put(virtual_machine)
        if self._spread is not None:
            most, callback = self._spread
            for interface in virtual_machine.interfaces:
                found = self._table.spread(interface.network_uuid)
                if found is not None and found[1] > most:
                    callback(*found)
        return changed

    def _apply_node(self, change: ObjectChange[NodeObject]) -> None:
        if isinstance(change, Listed | UndecodableObject):
            return
        addresses = None if isinstance(change, Deleted) else tunnel_addresses(change.object)
        name = change.object.metadata.name
        was_known = self._table.has_node(name)
        self.writer.changed(self._table.set_tunnel(name, addresses))
        if self._on_node is not None and was_known != self._table.has_node(name):
            self._on_node(name)

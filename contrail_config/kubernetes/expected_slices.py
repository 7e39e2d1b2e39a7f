"""Network slices as they should be, from one reading of the server: for whoever compares them and is no manager.

The slice table of a manager does the same from what it follows.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import KubeObject, Resource
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import AddressKey, Block, BlockKey, PoolKey, decode_block
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCK_DOCUMENTS,
    ContrailNodeObject,
    NetworkSliceObject,
    VirtualMachineObject,
    network_slice_name,
)
from contrail_config.kubernetes.network_buckets import is_network_bucket
from contrail_config.kubernetes.node_addresses import NODES, tunnel_addresses
from contrail_config.kubernetes.slice_table import SliceKey, SliceTable
from contrail_config.kubernetes.validated import (
    VALIDATED_NETWORKS,
    VALIDATED_REPORTS,
    VALIDATED_SLICES,
    VALIDATED_VIRTUAL_MACHINES,
)
from contrail_config.objects import NetworkSlice, VirtualMachine, VirtualNetwork

T = TypeVar("T", bound=KubeObject)


class StoredObjects(NamedTuple):
    """One reading of all objects that concern connectivity, each kind as of one moment.

    `slices` and `invalid_slices`, which has their problems, are by the name of the object. `tunnels` are addresses by
    node. `reports` are by node.
    """

    networks: tuple[VirtualNetwork, ...]
    virtual_machines: tuple[VirtualMachine, ...]
    blocks: tuple[Block, ...]
    tunnels: dict[str, tuple[str, ...]]
    slices: dict[str, NetworkSlice]
    invalid_slices: dict[str, str]
    reports: dict[str, ContrailNodeObject]

    @property
    def used_nodes(self) -> set[str]:
        """The nodes that have a virtual machine, or a block of which an address is in use."""
        used = (block for block in self.blocks if any(entry.hold is None for entry in block.entries.values()))
        owners = {block.node for block in used if block.node is not None}
        return {each.node for each in self.virtual_machines} | owners


async def read_objects(client: KubeClient) -> StoredObjects:
    """Reads everything; slices come last, so that what is written meanwhile is seen in them. Raises KubeError."""
    networks = await _valid(client, VALIDATED_NETWORKS)
    machines: list[VirtualMachineObject] = await _valid(client, VALIDATED_VIRTUAL_MACHINES)
    blocks = await client.list_all(ADDRESS_BLOCK_DOCUMENTS)
    nodes = await _valid(client, NODES)
    reports = await _valid(client, VALIDATED_REPORTS)
    slices = [item for item in await client.list_each(VALIDATED_SLICES) if is_network_bucket(item.metadata.namespace)]
    return StoredObjects(
        tuple(each.spec for each in networks),
        tuple(each.spec for each in machines if each.is_trusted and each.is_in_place),
        tuple(_blocks(blocks)),
        {each.metadata.name: tunnel_addresses(each) for each in nodes},
        {each.metadata.name: each.spec for each in slices if isinstance(each, NetworkSliceObject)},
        {each.metadata.name: each.problem for each in slices if isinstance(each, UndecodableObject)},
        {each.metadata.name: each for each in reports},
    )


def expected_slices(stored: StoredObjects) -> dict[str, NetworkSlice]:
    """Returns the slices that should exist, by the name of their objects."""
    networks = {network.uuid: network for network in stored.networks}
    allocations = AllocationCache()
    for block in stored.blocks:
        allocations.replace(block, now=time.time())
    table = SliceTable(networks.get, _home_finder(allocations), _node_address_finder(allocations, networks))
    for node, addresses in stored.tunnels.items():
        table.set_tunnel(node, addresses)
    for block in stored.blocks:
        table.set_block(block.key, block.node)
    for virtual_machine in stored.virtual_machines:
        table.put(virtual_machine)
    return _named(table.keys(), table.slice)


def _named(keys: Iterable[SliceKey], find: Callable[[SliceKey], NetworkSlice | None]) -> dict[str, NetworkSlice]:
    found = ((network_slice_name(*key), find(key)) for key in keys)
    return {name: item for name, item in found if item is not None}


def _home_finder(allocations: AllocationCache) -> Callable[[str, str], str | None]:
    def find(network_uuid: str, address: str) -> str | None:
        family = family_of(address)
        key = AddressKey(PoolKey(network_uuid, family), parse_address(address, family=family))
        return allocations.block(key.block).node

    return find


def _node_address_finder(
    allocations: AllocationCache, networks: Mapping[str, VirtualNetwork]
) -> Callable[[BlockKey], str | None]:
    def find(block: BlockKey) -> str | None:
        network = networks.get(block.pool.network_uuid)
        found = None if network is None else allocations.node_address(network, block)
        return None if found is None else found.text

    return find


async def _valid(client: KubeClient, resource: Resource[T]) -> list[T]:
    items: list[T | UndecodableObject] = await client.list_each(resource)
    return [item for item in items if not isinstance(item, UndecodableObject)]


def _blocks(items: Iterable[Any]) -> Iterable[Block]:
    for item in items:
        with suppress(ValueError):  # an invalid block is an event of the manager, and steers no node
            yield decode_block(item)

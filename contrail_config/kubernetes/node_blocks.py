"""Node blocks: a node keeps a block of a network that is routed by block, whether or not it has pods there.

It sends to pods on other nodes with its own address in that block. A block belongs to a node as long as it has an
entry, so the node's address gets one, with the node as owner. No pod ever gets that address, so a kept block takes
nothing from pods: they may use all the rest of it, on other nodes too. A node gets a new block to keep only while more
than a quarter of all possible blocks is unused, since other nodes need blocks for their pods.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import msgspec

from contrail_config.kubernetes.address_operations import FindNetwork, Release, node_of_blocks
from contrail_config.kubernetes.blocks import AddressKey, BlockKey, PoolKey
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.kubernetes.committer import Committer
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.node_owner import node_of_owner, node_owner
from contrail_config.kubernetes.virtual_networks import VirtualNetworkClient
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD

_FAMILIES: Final = (4, 6)


class KeepBlock(msgspec.Struct, frozen=True):
    """Allocates a node's own address in one block of each family; the result is whether it has one in each.

    It keeps the one that it has, unless the subnets of the network have changed.
    """

    network_uuid: str
    node: str
    find_network: FindNetwork

    def apply(self, changes: ChangeSet) -> bool:
        """As `AddressOperation`."""
        network = self.find_network(self.network_uuid)
        if node_of_blocks(network, self.node) is None:
            return False
        families = {6 if ":" in subnet.cidr else 4 for subnet in network.subnets}
        kept = [self._keep(changes, network, family) for family in _FAMILIES if family in families]
        return all(kept)

    def _keep(self, changes: ChangeSet, network: VirtualNetwork, family: int) -> bool:
        owner, pool = node_owner(self.node), PoolKey(network.uuid, family)
        owned = changes.cache.allocated(owner, pool)
        kept = next((key for key in owned if changes.cache.node_address(network, key.block) == key), None)
        for key in owned:
            if key != kept:
                changes.release(key, hold=DEFAULT_HOLD)
        if kept is None:
            kept = next(self._available(changes, network, family), None)
            if kept is None:
                return False
            changes.allocate(kept, owner, node=self.node)
        changes.require(kept)
        return True

    def _available(self, changes: ChangeSet, network: VirtualNetwork, family: int) -> Iterator[AddressKey]:
        """Yields the node's address in its blocks, and then in a new one."""
        pool = PoolKey(network.uuid, family)
        for first in changes.cache.block_pool(network, family).blocks_for(self.node):
            key = changes.cache.node_address(network, BlockKey(pool, first))
            if key is not None and not changes.cache.is_sealed(key.block):
                yield key


class ListNodes(msgspec.Struct, frozen=True):
    """Lists the nodes that keep a block, after all earlier operations."""

    def apply(self, changes: ChangeSet) -> set[str]:
        """As `AddressOperation`."""
        return {node for owner in changes.cache.all_owners() if (node := node_of_owner(owner)) is not None}


class NodeBlocks:
    """Blocks that nodes keep. `sync` returns once networks and blocks are listed. All methods raise StoreError."""

    def __init__(
        self, committer: Committer, networks: VirtualNetworkClient, sync: Callable[[], Awaitable[None]]
    ) -> None:
        self._committer = committer
        self._networks = networks
        self._sync = sync

    async def keep(self, network_uuid: str, node: str) -> bool:
        """Lets a node keep a block of each family, and returns whether there was one to spare. Idempotent.

        Raises NotFoundError if the network does not exist.
        """
        with as_store_error(f"block of node {node}"):
            await self._sync()
            await self._networks.ensure_cached(network_uuid)
            return await self._committer.execute(KeepBlock(network_uuid, node, self._networks.cached))

    async def release(self, node: str) -> None:
        """Lets a node that is gone keep no block. Idempotent. Its address is held, since it may still run."""
        with as_store_error(f"block of node {node}"):
            await self._sync()
            await self._committer.execute(Release({node_owner(node): ()}, UNPLUGGED_HOLD))

    async def nodes(self) -> set[str]:
        """Returns the nodes that keep a block."""
        with as_store_error("blocks of nodes"):
            await self._sync()
            return await self._committer.execute(ListNodes())

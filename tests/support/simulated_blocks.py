"""Simulated allocation in a cluster: the operations of the Kubernetes store on its cache, without a server.

Writes of blocks always succeed and are counted. Time passes only by `advance`.
"""

import itertools
import random
from collections.abc import Iterable

from contrail_config.kube.resource import Metadata
from contrail_config.kubernetes.address_operations import Allocate, Release
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import Block
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.objects import VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressRequest


class SimulatedBlocks:
    """One network. Owners are numbers as text; `nodes` has the node of each."""

    def __init__(self, network: VirtualNetwork, *, seed: int = 1) -> None:
        self.network = network
        self.cache = AllocationCache()
        self.random = random.Random(seed)
        self.now = 1_000_000.0
        self.writes = 0
        self.most_blocks = 0
        self.nodes: dict[str, str | None] = {}
        self.objects: dict[str, Block] = {}
        self._owners = map(str, itertools.count())
        self._versions = map(str, itertools.count(1))

    def start(self, nodes: Iterable[str | None], *, family: int = 4) -> list[str]:
        """Allocates an address for a pod on each of the nodes, in one batch, and returns the owners."""
        owners = []
        for node in nodes:
            owner = next(self._owners)
            changes = ChangeSet(self.cache)
            changes.begin(self.now)
            Allocate([AddressRequest(self.network.uuid, family, owner, node=node)], self._find).apply(changes)
            self.nodes[owner] = node
            owners.append(owner)
        self._flush()
        return owners

    def end(self, owners: Iterable[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Releases the addresses of owners, in one batch."""
        changes = ChangeSet(self.cache)
        changes.begin(self.now)
        Release(dict.fromkeys(owners, ()), hold).apply(changes)
        self._flush()

    def advance(self, seconds: float) -> None:
        """Lets time pass, and begins clean-ups as the committer does."""
        self.now += seconds
        self.cache.expire_holds(self.now)
        self._flush()

    def borrowed(self) -> set[str]:
        """Owners whose entry in a stored block says that its address is borrowed."""
        return {
            entry.owner for block in self.objects.values() for entry in block.entries.values() if entry.node is not None
        }

    def on_other_nodes(self) -> set[str]:
        """Owners of allocated addresses in blocks that do not belong to their node."""
        return {
            entry.owner
            for block in self.objects.values()
            for entry in block.entries.values()
            if entry.hold is None and block.node != self.nodes[entry.owner]
        }

    def _find(self, _uuid: str) -> VirtualNetwork:
        return self.network

    def _flush(self) -> None:
        for block in self.cache.blocks_to_write():
            self.writes += 1
            if block.entries:
                written = Metadata(name=block.key.name, resource_version=next(self._versions), uid=block.key.name)
                self.objects[block.key.name] = block
                self.cache.mark_written(block.key, written, now=self.now)
            else:
                del self.objects[block.key.name]
                self.cache.mark_written(block.key, None, now=self.now)
        self.most_blocks = max(self.most_blocks, len(self.objects))

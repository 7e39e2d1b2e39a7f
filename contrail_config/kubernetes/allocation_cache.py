"""In-memory copy of all address blocks, searched without a request to the server. Pure, without I/O.

A block is edited here first and written afterwards. `dirty` maps each edited block to its state before the edits, for
rollback. So concurrent requests see each other's edits, and each block is written once for all of them. A remote change
to a dirty block is not applied: the write then fails with a conflict, and the writer replaces the block with the
server's state. `uncertain` are blocks whose state on the server is unknown until they are replaced.

Managers delete only blocks that are empty on the server. A block that was in use when it was deleted was deleted by
somebody else. Only the watch knows a block's last state, so a block that was in use and is found missing, or replaced
by another object, stays uncertain until the watch has reported its deletion.

Expired holds are removed here without a request; they disappear from a block on the server with its next write.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.pool import AddressPool
from contrail_config.kube.resource import Metadata
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kubernetes.blocks import AddressEntry, AddressKey, Block, BlockKey, PoolKey
from contrail_config.objects import Subnet, VirtualNetwork

_MAX_DELETIONS: Final = 16
"""Empty blocks that are deleted together with one batch of writes."""


class _NetworkPool(NamedTuple):
    """An address pool, and the subnets from which it was built."""

    subnets: tuple[Subnet, ...]
    addresses: AddressPool


class AllocationCache:
    """All known blocks, with the edits of this process. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self.dirty: dict[BlockKey, Block] = {}
        self.uncertain: set[BlockKey] = set()
        self._blocks: dict[PoolKey, dict[int, Block]] = {}
        self._keys_by_owner: dict[str, tuple[AddressKey, ...]] = {}  # allocated and held
        self._pools: dict[PoolKey, _NetworkPool] = {}
        self._holds: list[tuple[float, AddressKey]] = []  # heap by expiry; entries may be outdated
        self._empty: dict[BlockKey, float] = {}  # earliest time of deletion

    def block(self, key: BlockKey) -> Block:
        """Returns the block with all edits; one that does not exist is empty."""
        return self._blocks.get(key.pool, {}).get(key.first) or Block(key)

    def entry(self, key: AddressKey) -> AddressEntry | None:
        """Returns the owner and hold of an address; None if it is free."""
        return self.block(key.block).entries.get(key.address)

    def keys_of(self, owner: str) -> tuple[AddressKey, ...]:
        """Returns all addresses of the owner: allocated, or released and still held."""
        return self._keys_by_owner.get(owner, ())

    def allocated(self, owner: str, pool: PoolKey) -> list[AddressKey]:
        """Returns the allocated addresses of the owner in a pool."""
        return [key for key in self.keys_of(owner) if key.pool == pool and self.is_allocated(key)]

    def is_allocated(self, key: AddressKey) -> bool:
        """Returns whether an address is allocated, as opposed to held or free."""
        entry = self.entry(key)
        return entry is not None and entry.hold is None

    def owners(self) -> set[str]:
        """Returns all owners of allocated addresses."""
        blocks = itertools.chain.from_iterable(blocks.values() for blocks in self._blocks.values())
        return {entry.owner for block in blocks for entry in block.entries.values() if entry.hold is None}

    def held_owners(self, now: float) -> dict[str, str]:
        """Returns network uuid by owner, for owners that have no allocated address but still a held one."""
        owners = self.owners()
        return {
            entry.owner: pool.network_uuid
            for pool, blocks in self._blocks.items()
            for block in blocks.values()
            for entry in block.entries.values()
            if entry.hold is not None and entry.hold.until > now and entry.owner not in owners
        }

    def allocated_in(self, network_uuid: str) -> Iterator[AddressKey]:
        """Yields the allocated addresses of a network."""
        for pool in (PoolKey(network_uuid, 4), PoolKey(network_uuid, 6)):
            for block in self._blocks.get(pool, {}).values():
                yield from (AddressKey(pool, address) for address, entry in block.entries.items() if entry.hold is None)

    def next_expiry(self, pool: PoolKey) -> float | None:
        """Returns when the earliest hold of a pool expires; None if nothing is held."""
        entries = itertools.chain.from_iterable(block.entries.values() for block in self._blocks.get(pool, {}).values())
        return min((entry.hold.until for entry in entries if entry.hold is not None), default=None)

    def address_pool(self, network: VirtualNetwork, family: int) -> AddressPool:
        """Returns the network's address pool of a family. Raises ValueError for invalid subnets."""
        key = PoolKey(network.uuid, family)
        pool = self._pools.get(key)
        if pool is None or pool.subnets != network.subnets:
            pool = self._pools[key] = _NetworkPool(network.subnets, AddressPool(network.subnets, family=family))
            self._fill(pool.addresses, key)
        return pool.addresses

    def drop_pools(self, network_uuid: str) -> None:
        """Drops the address pools of a deleted network."""
        for family in (4, 6):
            self._pools.pop(PoolKey(network_uuid, family), None)

    def put(self, key: AddressKey, entry: AddressEntry | None, *, allocated_at: float | None = None) -> None:
        """Sets the entry of an address, None to free it. With `allocated_at` it becomes the last allocated one."""
        block = self.block(key.block)
        self.dirty.setdefault(block.key, block)  # keeps the state before the first edit
        entries = {address: other for address, other in block.entries.items() if address != key.address}
        if entry is not None:
            entries[key.address] = entry
        last = block.last_allocated if allocated_at is None else (key.address, allocated_at)
        self._set_block(msgspec.structs.replace(block, entries=entries, last_allocated=last), edited=[key.address])

    def expire_holds(self, now: float) -> None:
        """Removes expired holds and schedules some empty blocks for deletion. Call only while no block is dirty."""
        while self._holds and self._holds[0][0] <= now:
            until, key = heapq.heappop(self._holds)
            entry = self.entry(key)
            # The heap entry is outdated if the address was allocated again or its hold was shortened.
            if entry is not None and entry.hold is not None and entry.hold.until == until:
                block = self.block(key.block)
                rest = {address: other for address, other in block.entries.items() if address != key.address}
                self._set_block(msgspec.structs.replace(block, entries=rest), edited=[key.address])
        due = (key for key, time in self._empty.items() if time <= now)
        for empty in itertools.islice(due, _MAX_DELETIONS):
            self.dirty[empty] = self.block(empty)

    def postpone_deletion(self, key: BlockKey, *, until: float) -> None:
        """Protects an empty block from deletion before `until`."""
        self._empty[key] = until

    def blocks_to_write(self) -> list[Block]:
        """Returns the dirty blocks that differ from their previous state, and cleans the others."""
        blocks = [self.block(key) for key in self.dirty]
        # A changed `last_allocated` alone is not worth a write.
        changed = [block for block in blocks if block.is_deletable or block.entries != self._before(block).entries]
        for block in blocks:
            if block not in changed:
                self._restore(block.key)
        return changed

    def mark_written(self, key: BlockKey, written: Metadata | None) -> None:
        """Cleans a block that was written, with the metadata of the response; None: it was deleted."""
        del self.dirty[key]
        if written is None:  # the watch may have reported the deletion before the response
            self.uncertain.discard(key)
            version = uid = None
        else:
            version, uid = written.resource_version, written.uid
        self._set_block(msgspec.structs.replace(self.block(key), version=version, uid=uid), edited=[])

    def begin_deletion(self, key: BlockKey) -> Block:
        """Makes an empty block dirty, and returns it to be deleted."""
        return self.dirty.setdefault(key, self.block(key))

    def confirmed(self, key: BlockKey) -> Block:
        """Returns the block without edits that are not written yet."""
        return self.dirty.get(key) or self.block(key)

    def awaits_deletion_event(self, found: Block, *, now: float) -> bool:
        """Whether the block was in use here, but the server's state `found` is none, or another object."""
        known = self.confirmed(found.key)
        return known.uid is not None and known.uid != found.uid and known.is_in_use(now)

    def mark_uncertain(self, key: BlockKey) -> None:
        """Rolls back the edits of a block whose write has an unknown outcome."""
        self._restore(key)
        self.uncertain.add(key)

    def replace(self, block: Block, *, now: float) -> None:
        """Replaces a block with the server's state; drops edits."""
        self.dirty.pop(block.key, None)
        self.uncertain.discard(block.key)
        current = {
            address: entry for address, entry in block.entries.items() if entry.hold is None or entry.hold.until > now
        }
        self._set_block(msgspec.structs.replace(block, entries=current))

    def apply_update(self, block: Block, *, now: float) -> None:
        """Applies a watch event of a block, unless the block is dirty or the cache has a newer version."""
        known = self.block(block.key).version
        if block.key not in self.dirty and (known is None or is_newer(block.version or "", known)):
            self.replace(block, now=now)

    def apply_deletion(self, last: Block, *, now: float) -> Block | None:
        """Applies the deletion of a block whose last state is `last`, or returns its last state if it was in use.

        After a new list the reflector reports a deletion with the state that it saw last, which may precede our own
        writes. A watch event may also be late: this process has deleted the block itself, and perhaps recreated it.
        """
        known = self.confirmed(last.key)
        if known.uid is None or known.uid != last.uid:
            return None
        if is_newer(known.version or "", last.version or ""):
            last = known
        if last.is_in_use(now):
            return last
        if last.key in self.dirty:  # the write fails, and the block is read
            self.dirty[last.key] = Block(last.key)
            self.uncertain.add(last.key)
        else:
            self._set_block(Block(last.key))
        return None

    def _restore(self, key: BlockKey) -> None:
        self._set_block(self.dirty.pop(key))

    def _before(self, block: Block) -> Block:
        return self.dirty[block.key]

    def _set_block(self, block: Block, *, edited: Iterable[int] | None = None) -> None:
        """Replaces the cached block and updates indexes and pools. `edited` limits the addresses that may differ."""
        before = self.block(block.key)
        self._store(block)
        for address in sorted(before.entries.keys() | block.entries.keys()) if edited is None else edited:
            old, new = before.entries.get(address), block.entries.get(address)
            if old != new:
                self._index(AddressKey(block.key.pool, address), old, new)
        if block.last_allocated != before.last_allocated:
            self._resume_after_last(block)

    def _store(self, block: Block) -> None:
        blocks = self._blocks.setdefault(block.key.pool, {})
        if block.entries or block.version is not None:
            blocks[block.key.first] = block
        else:
            blocks.pop(block.key.first, None)
            if not blocks:
                del self._blocks[block.key.pool]
        if block.is_deletable:
            self._empty.setdefault(block.key, 0.0)
        else:
            self._empty.pop(block.key, None)

    def _index(self, key: AddressKey, old: AddressEntry | None, new: AddressEntry | None) -> None:
        if old is not None:
            rest = tuple(other for other in self._keys_by_owner[old.owner] if other != key)
            if rest:
                self._keys_by_owner[old.owner] = rest
            else:
                del self._keys_by_owner[old.owner]
        if new is not None:
            self._keys_by_owner[new.owner] = (*self.keys_of(new.owner), key)
            if new.hold is not None:
                heapq.heappush(self._holds, (new.hold.until, key))
        if pool := self._pools.get(key.pool):
            _mark(pool.addresses, key.address, new)

    def _fill(self, addresses: AddressPool, key: PoolKey) -> None:
        blocks = self._blocks.get(key, {}).values()
        for block in blocks:
            for address, entry in block.entries.items():
                _mark(addresses, address, entry)
        for block in sorted(blocks, key=lambda block: block.last_allocated[1] if block.last_allocated else 0.0):
            self._resume_after_last(block)

    def _resume_after_last(self, block: Block) -> None:
        """Makes the search continue after the last allocated address, whether or not it is still allocated."""
        pool = self._pools.get(block.key.pool)
        if pool is not None and block.last_allocated is not None:
            address, _ = block.last_allocated
            pool.addresses.mark_allocated(address)  # moves the start of the search; the state is corrected next
            _mark(pool.addresses, address, block.entries.get(address))


def _mark(addresses: AddressPool, address: int, entry: AddressEntry | None) -> None:
    if entry is None:
        addresses.mark_free(address)
    elif entry.hold is None:
        addresses.mark_allocated(address)
    else:
        addresses.mark_held(address)

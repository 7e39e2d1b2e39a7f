"""In-memory copy of all address blocks, searched without a request to the server. Pure, without I/O.

A block is edited here first and written afterwards. `dirty` maps each edited block to its state before the edits, for
rollback. So concurrent requests see each other's edits, and each block is written once for all of them. A remote change
to a dirty block is not applied: the write then fails with a conflict, and the writer replaces the block with the
server's state. `uncertain` are blocks whose state on the server is unknown until they are replaced.

Managers delete only blocks that are empty on the server. A block that was in use when it was deleted was deleted by
somebody else. Only the watch knows a block's last state, so a block that was in use and is found missing, or replaced
by another object, stays uncertain until the watch has reported its deletion.

Another writer may have dropped addresses that were allocated here: `on_dropped` gets the block and their owners, and
knows whether a manager may have released them.

An invalid block is *sealed*: none of its addresses is allocated or released until it is valid again, whatever was known
of it before.

Expired holds are removed here without a request. They disappear from the object with the next write of its block, or
else when the block is cleaned up, as do objects of blocks that remain empty.
"""

import heapq
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.kube.resource import Metadata
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kubernetes.block_pool import BlockPool
from contrail_config.kubernetes.blocks import SIZE, AddressEntry, AddressKey, Block, BlockKey, PoolKey
from contrail_config.kubernetes.node_owner import is_node_owner, node_owner
from contrail_config.kubernetes.stored_holds import count_holds
from contrail_config.objects import Subnet, VirtualNetwork
from contrail_config.store import HeldAddress, StoredAddress

CLEANUP_DELAY: Final = 300.0
"""Seconds until an object is cleaned up that nobody has written: most are written before, and blocks of nodes and
networks with few pods are not deleted and created again for each pod."""

_MAX_CLEANUPS: Final = 4
"""Blocks that are cleaned up together with one batch of writes."""


class _NetworkPool(NamedTuple):
    """A block pool, and the subnets from which it was built; `for_nodes` as in `BlockPool`."""

    subnets: tuple[Subnet, ...]
    for_nodes: bool
    blocks: BlockPool


class AllocationCache:
    """All known blocks, with the edits of this process. Times are seconds since the epoch by its clock."""

    def __init__(self, on_dropped: Callable[[BlockKey, Collection[str]], None] | None = None) -> None:
        self._on_dropped = on_dropped
        self.dirty: dict[BlockKey, Block] = {}
        self.uncertain: set[BlockKey] = set()
        self._sealed: set[BlockKey] = set()
        self._blocks: dict[PoolKey, dict[int, Block]] = {}
        self._keys_by_owner: dict[str, tuple[AddressKey, ...]] = {}  # allocated and held
        self._pools: dict[PoolKey, _NetworkPool] = {}
        self._holds: list[tuple[float, AddressKey]] = []  # heap by expiry; entries may be outdated
        # Blocks whose objects have expired holds, or nothing: the earliest time of their clean-up, in ascending order.
        self._outdated: dict[BlockKey, float] = {}

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
        """Returns all interfaces that have an allocated address."""
        return {owner for owner in self.all_owners() if not is_node_owner(owner)}

    def all_owners(self) -> set[str]:
        """Returns all owners of allocated addresses: interfaces, and nodes."""
        blocks = itertools.chain.from_iterable(blocks.values() for blocks in self._blocks.values())
        return {entry.owner for block in blocks for entry in block.entries.values() if entry.hold is None}

    def held_owners(self, now: float) -> dict[str, HeldAddress]:
        """Returns network and node by owner, for owners that have no allocated address but one held on a known node."""
        owners = self.owners()
        return {
            entry.owner: HeldAddress(pool.network_uuid, entry.node)
            for pool, blocks in self._blocks.items()
            for block in blocks.values()
            for entry in block.entries.values()
            if entry.node and entry.hold is not None and entry.hold.until > now and entry.owner not in owners
        }

    def addresses(self, network_uuid: str, now: float, *, after: str = "") -> Iterator[StoredAddress]:
        """Yields the allocated and held addresses of a network that follow one, by family and number.

        Raises ValueError if `after` is no address.
        """
        family = family_of(after) if after else 4
        number = parse_address(after, family=family) if after else -1
        for pool in (PoolKey(network_uuid, 4), PoolKey(network_uuid, 6)):
            last = number if pool.family == family else -1
            blocks = self._blocks.get(pool, {}) if pool.family >= family else {}
            for first in sorted(first for first in blocks if first + SIZE > last):
                for address, entry in sorted(blocks[first].entries.items(), key=lambda each: each[0]):
                    if address > last and (entry.hold is None or entry.hold.until > now):
                        until = entry.hold.until if entry.hold else None
                        yield StoredAddress(AddressKey(pool, address).text, entry.owner, until)

    def allocated_in(self, network_uuid: str) -> Iterator[AddressKey]:
        """Yields the addresses of a network that interfaces have."""
        for pool in (PoolKey(network_uuid, 4), PoolKey(network_uuid, 6)):
            for block in self._blocks.get(pool, {}).values():
                yield from (AddressKey(pool, address) for address, entry in block.entries.items() if _is_used(entry))

    def may_be_used(self, network_uuid: str) -> bool:
        """Returns whether a network has an allocated address, or an invalid block, which may have any."""
        sealed = any(key.pool.network_uuid == network_uuid for key in self._sealed)
        return sealed or any(self.allocated_in(network_uuid))

    def next_expiry(self, pool: PoolKey) -> float | None:
        """Returns when the earliest hold of a pool expires; None if nothing is held."""
        entries = itertools.chain.from_iterable(block.entries.values() for block in self._blocks.get(pool, {}).values())
        return min((entry.hold.until for entry in entries if entry.hold is not None), default=None)

    def block_pool(self, network: VirtualNetwork, family: int) -> BlockPool:
        """Returns the network's block pool of a family. Raises ValueError for invalid subnets."""
        key = PoolKey(network.uuid, family)
        pool = self._pools.get(key)
        subnets, for_nodes = network.subnets, network.has_node_blocks
        if pool is None or (pool.subnets, pool.for_nodes) != (subnets, for_nodes):
            blocks = BlockPool(subnets, family=family, for_nodes=for_nodes)
            pool = self._pools[key] = _NetworkPool(subnets, for_nodes, blocks)
            for block in self._blocks.get(key, {}).values():
                pool.blocks.update(block)
            for sealed in [sealed for sealed in self._sealed if sealed.pool == key]:
                pool.blocks.seal(self.block(sealed))
        return pool.blocks

    def node_address(self, network: VirtualNetwork, block: BlockKey) -> AddressKey | None:
        """Returns the address of the node to which a block belongs; None if it has none, or another owner has it."""
        address = self.block_pool(network, block.pool.family).node_address(block.first)
        if address is None:
            return None
        key = AddressKey(block.pool, address)
        entry, node = self.entry(key), self.block(block).node
        return key if entry is None or (node is not None and entry.owner == node_owner(node)) else None

    def drop_pools(self, network_uuid: str) -> None:
        """Drops the block pools of a deleted network."""
        for family in (4, 6):
            self._pools.pop(PoolKey(network_uuid, family), None)

    def is_sealed(self, key: BlockKey) -> bool:
        """Returns whether the block is invalid."""
        return key in self._sealed

    def seal(self, key: BlockKey) -> None:
        """Seals a block, from the next edit on. Idempotent."""
        self._sealed.add(key)
        if pool := self._pools.get(key.pool):
            pool.blocks.seal(self.block(key))

    def unseal(self, key: BlockKey) -> None:
        """Ends the seal of a block that is valid again. Idempotent."""
        if key in self._sealed:
            self._sealed.discard(key)
            if pool := self._pools.get(key.pool):
                pool.blocks.unseal(self.block(key))

    def put(self, key: AddressKey, entry: AddressEntry | None) -> None:
        """Sets the entry of an address, None to free it."""
        block = self._edit(key.block)
        entries = {address: other for address, other in block.entries.items() if address != key.address}
        if entry is not None:
            entries[key.address] = entry
        self._set_block(msgspec.structs.replace(block, entries=entries), edited=[key.address])

    def allocate(self, key: AddressKey, owner: str, *, node: str | None, at: float) -> AddressEntry:
        """Sets and returns the entry of an allocated address, which is then the block's last allocated one.

        A block without entries now belongs to `node`, which may be None. In the block of another node the address is
        borrowed.
        """
        block = self._edit(key.block)
        home = block.node if block.entries else node
        entry = AddressEntry(owner, node=None if node == home else node)
        entries = {**block.entries, key.address: entry}
        allocated = msgspec.structs.replace(block, entries=entries, last_allocated=(key.address, at), node=home)
        self._set_block(allocated, edited=[key.address])
        return entry

    def expire_holds(self, now: float) -> None:
        """Removes expired holds and begins some clean-ups. Call only while no block is dirty."""
        while self._holds and self._holds[0][0] <= now:
            until, key = heapq.heappop(self._holds)
            entry = self.entry(key)
            # The heap entry is outdated if the address was allocated again or its hold was shortened.
            if entry is not None and entry.hold is not None and entry.hold.until == until:
                block = self.block(key.block)
                rest = {address: other for address, other in block.entries.items() if address != key.address}
                self._set_block(msgspec.structs.replace(block, entries=rest), edited=[key.address])
                self._outdated.setdefault(block.key, now + CLEANUP_DELAY)
        due = itertools.takewhile(lambda item: item[1] <= now, self._outdated.items())
        self.dirty.update({key: self.block(key) for key, _ in itertools.islice(due, _MAX_CLEANUPS)})

    def needs_cleanup(self, now: float) -> bool:
        """Returns whether `expire_holds` would remove a hold or begin a clean-up."""
        expired = bool(self._holds) and self._holds[0][0] <= now
        return expired or next(iter(self._outdated.values()), math.inf) <= now

    def postpone_cleanup(self, key: BlockKey, now: float) -> bool:
        """Postpones the clean-up of a block by CLEANUP_DELAY; returns whether it needs one."""
        is_outdated = self._outdated.pop(key, None) is not None
        if is_outdated:
            self._outdated[key] = now + CLEANUP_DELAY
        return is_outdated

    def blocks_to_write(self) -> list[Block]:
        """Returns the dirty blocks that differ from their previous state, and cleans the others."""
        changed = []
        for block in [self.block(key) for key in self.dirty]:
            if self._needs_write(block):
                changed.append(block)
            else:
                self._restore(block.key)
        return changed

    def mark_written(self, key: BlockKey, written: Metadata | None, *, now: float) -> None:
        """Cleans a block that was written, with the metadata of the response; None: it was deleted."""
        del self.dirty[key]
        self._outdated.pop(key, None)
        if written is None:  # the watch may have reported the deletion before the response
            self.uncertain.discard(key)
            version = uid = None
        else:
            version, uid = written.resource_version, written.uid
            if not self.block(key).entries:
                self._outdated[key] = now + CLEANUP_DELAY
        block = self.block(key)
        self._set_block(msgspec.structs.replace(block, version=version, uid=uid, stored_holds=block.holds()), edited=[])

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
        """Replaces a block with the server's state, whose holds are counted by this process's clock; drops edits."""
        block = count_holds(block, self.block(block.key), now=now)
        if self._on_dropped is not None and (owners := self._dropped(block)):
            self._on_dropped(block.key, owners)
        self.dirty.pop(block.key, None)
        self.uncertain.discard(block.key)
        current = {
            address: entry for address, entry in block.entries.items() if entry.hold is None or entry.hold.until > now
        }
        self._set_block(msgspec.structs.replace(block, entries=current))
        if block.version is not None and (len(current) < len(block.entries) or not current):
            self._outdated.setdefault(block.key, now + CLEANUP_DELAY)
        else:
            self._outdated.pop(block.key, None)

    def _dropped(self, found: Block) -> list[str]:
        """Returns the owners whose addresses are allocated here, and not released now, but not on the server."""
        if found.key in self.uncertain:
            return []  # an own write with an unknown outcome may have released them
        edited, confirmed = self.block(found.key).entries, self.confirmed(found.key).entries
        return [
            entry.owner
            for address, entry in edited.items()
            if entry.hold is None and address in confirmed and confirmed[address].hold is None
            if (stored := found.entries.get(address)) is None or stored.owner != entry.owner
        ]

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
        if known.uid is None and last.key in self.dirty and self._is_used_as_edited(last):
            return last  # created just now, and the response is not here yet
        if known.uid is None or known.uid != last.uid:
            return None
        if is_newer(known.version or "", last.version or ""):
            last = known
        if count_holds(last, known, now=now).is_in_use(now):
            return last
        if last.key in self.dirty:  # the write fails, and the block is read
            self.dirty[last.key] = Block(last.key)
            self.uncertain.add(last.key)
        else:
            self._set_block(Block(last.key))
            self._outdated.pop(last.key, None)
        return None

    def _is_used_as_edited(self, found: Block) -> bool:
        """Whether a block without a known object has an address in use. Held ones count only if they are edited here.

        Others may be of an earlier object, which this process has emptied and deleted.
        """
        edited = self.block(found.key).entries
        return any(entry.hold is None or entry == edited.get(address) for address, entry in found.entries.items())

    def _restore(self, key: BlockKey) -> None:
        self._set_block(self.dirty.pop(key))

    def _edit(self, key: BlockKey) -> Block:
        """Returns the block, and keeps its state before the first edit."""
        block = self.block(key)
        self.dirty.setdefault(key, block)
        return block

    def _needs_write(self, block: Block) -> bool:
        if block.version is None and not block.entries:
            return False
        # A changed `last_allocated` alone is not worth a write.
        return block.key in self._outdated or block.entries != self.dirty[block.key].entries

    def _set_block(self, block: Block, *, edited: Iterable[int] | None = None) -> None:
        """Replaces the cached block and updates indexes and pools. `edited` limits the addresses that may differ."""
        before = self.block(block.key)
        self._store(block)
        for address in sorted(before.entries.keys() | block.entries.keys()) if edited is None else edited:
            old, new = before.entries.get(address), block.entries.get(address)
            if old != new:
                self._index(AddressKey(block.key.pool, address), old, new)
        if pool := self._pools.get(block.key.pool):
            pool.blocks.update(block)

    def _store(self, block: Block) -> None:
        blocks = self._blocks.setdefault(block.key.pool, {})
        if block.entries or block.version is not None:
            blocks[block.key.first] = block
        else:
            blocks.pop(block.key.first, None)
            if not blocks:
                del self._blocks[block.key.pool]

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


def _is_used(entry: AddressEntry) -> bool:
    return entry.hold is None and not is_node_owner(entry.owner)

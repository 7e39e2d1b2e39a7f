"""Who has which address, in memory: a copy of all blocks, searched without asking the server. Pure, without I/O.

The copy is edited first and saved afterwards: `unsaved` are the blocks as they were before, to go back to. So all
requests of a moment see each other, and each block is written once for all of them. A change that somebody else made
to a block with unsaved edits is not taken in: whoever saves it finds out, and adopts the block as it is then.
`doubtful` are blocks that may be otherwise on the server, until they are adopted.

Holds that are over are dropped here without a word to the server; they leave a block when it is next written.
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.pool import AddressPool
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kubernetes.blocks import AddressKey, Block, BlockKey, Entry, Pool
from contrail_config.objects import Subnet, VirtualNetwork

_DELETED_AT_ONCE: Final = 16
"""Empty blocks that are deleted beside the other writes of a moment."""


class _Choice(NamedTuple):
    """What chooses addresses, and the subnets that it was made of."""

    subnets: tuple[Subnet, ...]
    addresses: AddressPool


class AllocationCache:
    """All blocks that were adopted, with the edits of this process. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self.unsaved: dict[BlockKey, Block] = {}
        self.doubtful: set[BlockKey] = set()
        self._blocks: dict[Pool, dict[int, Block]] = {}
        self._places: dict[str, tuple[AddressKey, ...]] = {}  # by owner, given and held
        self._choices: dict[Pool, _Choice] = {}
        self._holds: list[tuple[float, AddressKey]] = []
        self._empty: dict[BlockKey, float] = {}  # from when on they may be deleted

    def block(self, key: BlockKey) -> Block:
        """The block as it is edited; one that is not there is empty."""
        return self._blocks.get(key.pool, {}).get(key.first) or Block(key)

    def entry(self, place: AddressKey) -> Entry | None:
        """Who has an address, or had it; None if it is free."""
        return self.block(place.block).entries.get(place.address)

    def places(self, owner: str) -> tuple[AddressKey, ...]:
        """All that the owner has, or had and that is still held."""
        return self._places.get(owner, ())

    def given(self, owner: str, pool: Pool) -> list[AddressKey]:
        """What the owner has in a pool."""
        return [place for place in self.places(owner) if place.pool == pool and self.is_given(place)]

    def is_given(self, place: AddressKey) -> bool:
        """Whether somebody has an address."""
        entry = self.entry(place)
        return entry is not None and entry.held is None

    def owners(self) -> set[str]:
        """Who has an address now."""
        blocks = itertools.chain.from_iterable(blocks.values() for blocks in self._blocks.values())
        return {entry.owner for block in blocks for entry in block.entries.values() if entry.held is None}

    def held_owners(self, now: float) -> dict[str, str]:
        """Who has no address any more, but had one that is still held: with the network."""
        given = self.owners()
        return {
            entry.owner: pool.network_uuid
            for pool, blocks in self._blocks.items()
            for block in blocks.values()
            for entry in block.entries.values()
            if entry.held is not None and entry.held.until > now and entry.owner not in given
        }

    def given_in(self, network_uuid: str) -> Iterator[AddressKey]:
        """The addresses of a network that somebody has."""
        for pool in (Pool(network_uuid, 4), Pool(network_uuid, 6)):
            for block in self._blocks.get(pool, {}).values():
                yield from (AddressKey(pool, address) for address, entry in block.entries.items() if entry.held is None)

    def next_end(self, pool: Pool) -> float | None:
        """When the first hold in a pool is over; None if nothing is held."""
        entries = itertools.chain.from_iterable(block.entries.values() for block in self._blocks.get(pool, {}).values())
        return min((entry.held.until for entry in entries if entry.held is not None), default=None)

    def choice(self, network: VirtualNetwork, family: int) -> AddressPool:
        """What chooses the network's addresses of a family. Raises ValueError for subnets that cannot be."""
        pool = Pool(network.uuid, family)
        choice = self._choices.get(pool)
        if choice is None or choice.subnets != network.subnets:
            addresses = AddressPool(network.subnets, family=family)
            choice = self._choices[pool] = _Choice(network.subnets, addresses)
            self._fill(addresses, pool)
        return choice.addresses

    def forget_choices(self, network_uuid: str) -> None:
        """Drops what chooses the addresses of a network that is gone."""
        for family in (4, 6):
            self._choices.pop(Pool(network_uuid, family), None)

    def put(self, place: AddressKey, entry: Entry | None, *, given_at: float | None = None) -> None:
        """Edits who has an address, None: nobody; `given_at`: it is the last one that was given."""
        block = self.block(place.block)
        self.unsaved.setdefault(block.key, block)
        entries = {address: kept for address, kept in block.entries.items() if address != place.address}
        if entry is not None:
            entries[place.address] = entry
        last_given = block.last_given if given_at is None else (place.address, given_at)
        self._become(msgspec.structs.replace(block, entries=entries, last_given=last_given), edited=[place.address])

    def end_holds(self, now: float) -> None:
        """Frees what is held no longer, and has some blocks deleted that are empty. While nothing is unsaved."""
        while self._holds and self._holds[0][0] <= now:
            until, place = heapq.heappop(self._holds)
            entry = self.entry(place)
            if entry is not None and entry.held is not None and entry.held.until == until:
                block = self.block(place.block)
                rest = {address: kept for address, kept in block.entries.items() if address != place.address}
                self._become(msgspec.structs.replace(block, entries=rest), edited=[place.address])
        due = (key for key, time in self._empty.items() if time <= now)
        for key in itertools.islice(due, _DELETED_AT_ONCE):
            self.unsaved[key] = self.block(key)

    def leave_empty(self, key: BlockKey, *, until: float) -> None:
        """Has an empty block not be deleted for a while."""
        self._empty[key] = until

    def to_save(self) -> list[Block]:
        """The blocks to write; those whose edits came to nothing are forgotten."""
        blocks = [self.block(key) for key in self.unsaved]
        changed = [block for block in blocks if block.is_superfluous or block.entries != self._before(block).entries]
        for block in blocks:
            if block not in changed:
                self._restore(block.key)
        return changed

    def saved(self, key: BlockKey, version: str | None) -> None:
        """The edits of a block are saved, as this version; None: it was deleted."""
        del self.unsaved[key]
        if version is None:
            self.doubtful.discard(key)
        self._become(msgspec.structs.replace(self.block(key), version=version), edited=[])

    def doubt(self, key: BlockKey) -> None:
        """Takes back the edits of a block, of which nobody knows whether they were saved."""
        self._restore(key)
        self.doubtful.add(key)

    def adopt(self, block: Block, *, now: float) -> None:
        """Takes a block as the server has it, whatever was known of it or edited."""
        self.unsaved.pop(block.key, None)
        self.doubtful.discard(block.key)
        kept = {
            address: entry for address, entry in block.entries.items() if entry.held is None or entry.held.until > now
        }
        self._become(msgspec.structs.replace(block, entries=kept))

    def follow(self, block: Block, *, now: float) -> None:
        """Takes news of a block, unless it is edited or known to be newer."""
        known = self.block(block.key).version
        if block.key not in self.unsaved and (known is None or is_newer(block.version or "", known)):
            self.adopt(block, now=now)

    def follow_end(self, key: BlockKey, version: str) -> None:
        """Takes the news that a block is gone.

        If it is edited or known to be newer it is in doubt: a list tells ends by what was seen last, which may have
        been before our own writes, and a watch may tell late of a block that was made anew.
        """
        known = self.block(key).version
        if known is None:
            return
        if key in self.unsaved or is_newer(known, version):
            self.doubtful.add(key)
        else:
            self._become(Block(key))

    def _restore(self, key: BlockKey) -> None:
        self._become(self.unsaved.pop(key))

    def _before(self, block: Block) -> Block:
        return self.unsaved[block.key]

    def _become(self, block: Block, *, edited: Iterable[int] | None = None) -> None:
        """Puts the block in the place of what was known of it, with all that follows from it.

        `edited`: the addresses that may have changed, if not all may have.
        """
        before = self.block(block.key)
        self._keep(block)
        for address in sorted(before.entries.keys() | block.entries.keys()) if edited is None else edited:
            was, is_ = before.entries.get(address), block.entries.get(address)
            if was != is_:
                self._note(AddressKey(block.key.pool, address), was, is_)
        if block.last_given != before.last_given:
            self._point_to_last(block)

    def _keep(self, block: Block) -> None:
        blocks = self._blocks.setdefault(block.key.pool, {})
        if block.entries or block.version is not None:
            blocks[block.key.first] = block
        else:
            blocks.pop(block.key.first, None)
            if not blocks:
                del self._blocks[block.key.pool]
        if block.is_superfluous:
            self._empty.setdefault(block.key, 0.0)
        else:
            self._empty.pop(block.key, None)

    def _note(self, place: AddressKey, was: Entry | None, is_: Entry | None) -> None:
        if was is not None:
            rest = tuple(other for other in self._places[was.owner] if other != place)
            if rest:
                self._places[was.owner] = rest
            else:
                del self._places[was.owner]
        if is_ is not None:
            self._places[is_.owner] = (*self.places(is_.owner), place)
            if is_.held is not None:
                heapq.heappush(self._holds, (is_.held.until, place))
        if choice := self._choices.get(place.pool):
            _mark(choice.addresses, place.address, is_)

    def _fill(self, addresses: AddressPool, pool: Pool) -> None:
        blocks = self._blocks.get(pool, {}).values()
        for block in blocks:
            for address, entry in block.entries.items():
                _mark(addresses, address, entry)
        for block in sorted(blocks, key=lambda block: block.last_given[1] if block.last_given else 0.0):
            self._point_to_last(block)

    def _point_to_last(self, block: Block) -> None:
        """The next address to give is the one after the last given, be it still given or not."""
        choice = self._choices.get(block.key.pool)
        if choice is not None and block.last_given is not None:
            address, _ = block.last_given
            choice.addresses.mark_allocated(address)
            _mark(choice.addresses, address, block.entries.get(address))


def _mark(addresses: AddressPool, address: int, entry: Entry | None) -> None:
    if entry is None:
        addresses.mark_free(address)
    elif entry.held is None:
        addresses.mark_allocated(address)
    else:
        addresses.mark_held(address)

"""Block pool: selects the block and the address that are allocated next, in one family of one network.

A network whose nodes route by block (`VirtualNetwork.has_node_blocks`) prefers, for a pod of a node:

1. blocks of that node;
2. a new block, or else one without allocated and held addresses, which then belongs to the node. A node that has blocks
   already gets another one only while more than a quarter of all possible blocks is unused: the rest is for nodes that
   have none;
3. the block of another node with the most free addresses. Such an address is *borrowed*: it needs a route of its own,
   so it comes only now, although it would keep the number of blocks lower;
4. any new block. So no network is exhausted while it has a free address, however few blocks it has for its nodes.

In such a network the lowest usable address of each block is not allocated: it is for the node itself, which sends with
it to pods on other nodes. A network of few blocks has none to spare: there, pods get every address.

Any other network uses all existing blocks before a new one.

Where several blocks qualify, the one allocated from last is used up first, since a block that several pods of one
moment share is written once. Then comes the fullest of those with `_SPARE` free addresses, so that nearly empty blocks
drain and can be deleted, and last the one with the most free addresses. Within a block the search starts after the last
allocated address, so that a released one is reused as late as possible.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from contrail_config.addressing.integer_set import IntegerSet
from contrail_config.addressing.subnet import SubnetBounds
from contrail_config.addressing.subnet_table import SubnetTable
from contrail_config.kubernetes.blocks import SIZE, Block
from contrail_config.objects import Subnet

_SPARE: Final = SIZE // 4
"""Free addresses of a block that are worth a write of it."""

_SPARES_ADDRESSES: Final = 16
"""Possible blocks of a network from which on one address of each is its node's."""

_EVERY: Final = (1 << SIZE) - 1


class _BlockState(NamedTuple):
    """A block that exists: its node, a bit for each usable and each free address, and where the search starts."""

    node: str | None
    usable: int
    free: int
    start: int


class BlockPool:
    """Blocks of one family of a network, numbered by their first address divided by `SIZE`.

    `for_nodes`: one address of each block is the node's, if there are blocks enough.

    Raises ValueError for a subnet that is malformed or overlaps another one.
    """

    def __init__(self, subnets: Sequence[Subnet], *, family: int, for_nodes: bool = False) -> None:
        self._subnets = SubnetTable(subnets, family=family)
        self._possible = sum(_possible_blocks(each) for each in self._subnets)
        self._has_node_addresses = for_nodes and self._possible >= _SPARES_ADDRESSES
        self._reserved = _reserved_bits(self._subnets)
        self._blocks: dict[int, _BlockState] = {}
        self._all = _Group()
        self._of_node: dict[str, _Group] = {}
        self._existing = IntegerSet()  # numbers of `_blocks`
        self._unused: dict[int, None] = {}  # those without entries that have a usable address
        self._sealed: set[int] = set()
        self._search_from: dict[str, int] = {}  # by subnet: no block below this number can be created
        self._last_allocated = 0.0

    def next_free(self, node: str | None = None) -> int | None:
        """Returns the address to allocate next, None if none is free. `node` is set if blocks belong to nodes."""
        number = self._any_block() if node is None else self._block_for(node)
        if number is None:
            return None
        block = self._blocks.get(number) or self._empty(number)
        later = block.free >> block.start << block.start
        return number * SIZE + _lowest_bit(later or block.free)

    def bounds(self, address: int) -> SubnetBounds:
        """Returns the subnet that contains the address. Raises ValueError if there is none."""
        found = self._subnets.find(address)
        if found is None:
            raise ValueError(f"address {address} is in no subnet of the pool")
        return found

    def unusable_reason(self, address: int) -> str | None:
        """Returns why the address is not allocated; None if it can be."""
        if address // SIZE in self._sealed:
            return "its address block is invalid"
        if address == self.node_address(address - address % SIZE):
            return "it is the address of the node to which its block belongs"
        found = self._subnets.find(address)
        return "it is in no subnet of the network" if found is None else found.unavailable_reason(address)

    def node_address(self, first: int) -> int | None:
        """Returns the address of the node in its block that begins with `first`; None if the block has none."""
        usable = self._allocatable(first // SIZE)
        return first + _lowest_bit(usable) if usable and self._has_node_addresses else None

    def blocks_for(self, node: str) -> Iterator[int]:
        """Yields the first addresses of blocks in which a node may have its own address: its own, and a spare one."""
        if self._has_node_addresses:
            yield from (number * SIZE for number in sorted(self._of_node.get(node, ())))
            if self._has_spare_blocks() and (found := self._unused_block()) is not None:
                yield found * SIZE

    def seal(self, block: Block) -> None:
        """Allocates no address of the block until it is unsealed, whatever its state."""
        self._sealed.add(block.key.first // SIZE)
        self.update(block)

    def unseal(self, block: Block) -> None:
        """Allocates addresses of the block again."""
        self._sealed.discard(block.key.first // SIZE)
        self.update(block)

    def update(self, block: Block) -> None:
        """Applies the current state of a block. One that has no object and no entries does not exist."""
        number = block.key.first // SIZE
        is_sealed = number in self._sealed
        before = self._remove(number)
        self._unused.pop(number, None)
        if block.entries or block.version is not None or is_sealed:
            self._add(number, self._state(block, before or self._empty(number)))
            self._note_last(number, block)
            if not block.entries and self._blocks[number].usable and not is_sealed:
                self._unused[number] = None
        elif before is not None:
            self._existing.discard(number)
            self._search_from.clear()
        if before is not None and before.node is not None and not self._of_node[before.node]:
            del self._of_node[before.node]

    def _block_for(self, node: str) -> int | None:
        own = self._of_node.get(node)
        if own is not None and (found := own.select()) is not None:
            return found
        if (own is None or self._has_spare_blocks()) and (found := self._unused_block()) is not None:
            return found
        return self._unused_block() if (found := self._all.emptiest()) is None else found

    def _any_block(self) -> int | None:
        return self._new_block() if (found := self._all.select()) is None else found

    def _has_spare_blocks(self) -> bool:
        return self._possible - len(self._blocks) > self._possible // 4

    def _unused_block(self) -> int | None:
        """Returns a block without entries: one that does not exist, if there is one."""
        return next(iter(self._unused), None) if (found := self._new_block()) is None else found

    def _new_block(self) -> int | None:
        """Returns the lowest block that does not exist, in the first subnet that has one."""
        for subnet in self._subnets:
            number = self._existing.first_missing(self._search_from.get(subnet.cidr, subnet.first // SIZE))
            while number <= subnet.last // SIZE:
                self._search_from[subnet.cidr] = number
                if self._usable(number):
                    return number
                number = self._existing.first_missing(self._skip(subnet, number))
            self._search_from[subnet.cidr] = number
        return None

    def _skip(self, subnet: SubnetBounds, number: int) -> int:
        """Returns the block after one without a usable address, beyond the excluded range that it may be in."""
        end = subnet.exclusion_end(max(subnet.first, number * SIZE))
        return max(number, 0 if end is None else (end + 1) // SIZE - 1) + 1

    def _empty(self, number: int) -> _BlockState:
        usable = self._usable(number)
        return _BlockState(None, usable, usable, 0)

    def _state(self, block: Block, before: _BlockState) -> _BlockState:
        used = sum(1 << address % SIZE for address in block.entries)
        free = 0 if block.key.first // SIZE in self._sealed else before.usable & ~used
        start = before.start if block.last_allocated is None else block.last_allocated[0] % SIZE + 1
        return _BlockState(block.node, before.usable, free, start)

    def _usable(self, number: int) -> int:
        usable = self._allocatable(number)
        return usable & (usable - 1) if self._has_node_addresses else usable  # all but the lowest one

    def _allocatable(self, number: int) -> int:
        first, last = number * SIZE, number * SIZE + SIZE - 1
        bits = 0
        for subnet in self._subnets.overlapping(first, last):
            bits |= _bits(max(subnet.first, first) - first, min(subnet.last, last) - first)
            for low, high in subnet.exclusions(first, last):
                bits &= ~_bits(max(low, first) - first, min(high, last) - first)
        return bits & ~self._reserved.get(number, 0)

    def _groups(self, node: str | None) -> list["_Group"]:
        return [self._all] if node is None else [self._all, self._of_node.setdefault(node, _Group())]

    def _add(self, number: int, block: _BlockState) -> None:
        self._blocks[number] = block
        self._existing.add(number)
        for group in self._groups(block.node):
            group.put(number, block.free.bit_count())

    def _note_last(self, number: int, block: Block) -> None:
        if block.last_allocated is not None and block.last_allocated[1] >= self._last_allocated:
            self._last_allocated = block.last_allocated[1]
            for group in self._groups(block.node):
                group.current = number

    def _remove(self, number: int) -> _BlockState | None:
        block = self._blocks.pop(number, None)
        if block is not None:
            for group in self._groups(block.node):
                group.remove(number)
        return block


class _Group:
    """Blocks by their number of free addresses. `current` is the one allocated from last."""

    def __init__(self) -> None:
        self.current = -1
        self._free: dict[int, int] = {}  # by block
        self._by_free: dict[int, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._free)

    def __iter__(self) -> Iterator[int]:
        return iter(self._free)

    def put(self, number: int, free: int) -> None:
        self._free[number] = free
        self._by_free.setdefault(free, {})[number] = None

    def remove(self, number: int) -> None:
        free = self._free.pop(number)
        blocks = self._by_free[free]
        del blocks[number]
        if not blocks:
            del self._by_free[free]

    def select(self) -> int | None:
        """Returns the block to allocate from, as the module says; None if all are full."""
        if self._free.get(self.current):
            return self.current
        worthwhile = min((free for free in self._by_free if free >= _SPARE), default=None)
        return self.emptiest() if worthwhile is None else next(iter(self._by_free[worthwhile]))

    def emptiest(self) -> int | None:
        """Returns the block with the most free addresses; None if all are full."""
        most = max(self._by_free, default=0)
        return next(iter(self._by_free[most])) if most else None


def _possible_blocks(subnet: SubnetBounds) -> int:
    """Returns the number of blocks of a subnet that are not excluded as a whole."""
    excluded = sum(max(0, (last + 1) // SIZE - -(-first // SIZE)) for first, last in subnet.excluded)
    return subnet.last // SIZE - subnet.first // SIZE + 1 - excluded


def _reserved_bits(subnets: SubnetTable) -> dict[int, int]:
    """Returns, by block, a bit for each reserved address."""
    bits: dict[int, int] = {}
    for subnet in subnets:
        for address in subnet.reserved:
            bits[address // SIZE] = bits.get(address // SIZE, 0) | 1 << address % SIZE
    return bits


def _bits(first: int, last: int) -> int:
    return _EVERY >> (SIZE - 1 - (last - first)) << first


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1

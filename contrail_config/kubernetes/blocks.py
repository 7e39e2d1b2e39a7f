"""Blocks of addresses as they are counted with: ints inside, text on the wire.

Blocks lie at multiples of 64, whatever the bounds of the subnets, so that a network whose subnets change keeps its
blocks.

What is in a block is written as one text, though an object for each address would be the usual form. Blocks are written
nearly as often as pods are made, and the API server goes through all that is in an object a dozen times (decodes,
prunes, checks, copies, tells who watches). With objects that was nearly a third of the memory that it used up for a
pod, and its garbage collector is what slow requests wait for.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.kubernetes.kinds import (
    NETWORK_LABEL,
    UNTRACKED,
    AddressBlockObject,
    BlockSpec,
    BlockSummary,
    LastGiven,
    UntrackedMetadata,
)

_SIZE: Final = 64
_GIVEN: Final = 2  # words of a line: address and owner; of one that is held, two times as well


class Pool(NamedTuple):
    """All addresses of one family in one network."""

    network_uuid: str
    family: int


class AddressKey(NamedTuple):
    """An address in the whole of the store."""

    pool: Pool
    address: int

    @property
    def text(self) -> str:
        """The address as text."""
        return format_address(self.address, family=self.pool.family)

    @property
    def block(self) -> "BlockKey":
        """The block that it belongs to."""
        return BlockKey(self.pool, self.address - self.address % _SIZE)


class BlockKey(NamedTuple):
    """Which block: `first` is its first address."""

    pool: Pool
    first: int

    @property
    def name(self) -> str:
        """Name of the object: the network's uuid and the first address, written out, with hyphens."""
        first = format_address(self.first, family=self.pool.family)
        if self.pool.family == 6:
            groups = f"{self.first:032x}"
            first = "-".join(groups[start : start + 4] for start in range(0, 32, 4))
        return f"{self.pool.network_uuid}-{first.replace('.', '-')}"


class Hold(NamedTuple):
    """For how long a freed address is not given again, in seconds since the epoch."""

    since: float
    until: float


class Entry(NamedTuple):
    """Who has an address, or, if it is `held`, who had it."""

    owner: str
    held: Hold | None = None


class Block(msgspec.Struct, frozen=True):
    """A block: what is not free in it, the version that the server keeps (None: none), and what was given last, when.

    Never changed, nor is the mapping in it.
    """

    key: BlockKey
    version: str | None = None
    entries: Mapping[int, Entry] = msgspec.field(default_factory=dict)
    last_given: tuple[int, float] | None = None

    @property
    def is_superfluous(self) -> bool:
        """Whether the server keeps it though there is nothing in it."""
        return self.version is not None and not self.entries

    def write(self) -> AddressBlockObject:
        """The block as the server keeps it."""
        family = self.key.pool.family
        spec = BlockSpec(
            network=self.key.pool.network_uuid,
            first=format_address(self.key.first, family=family),
            addresses="".join(
                _line(format_address(address, family=family), entry) for address, entry in sorted(self.entries.items())
            ),
            last_given=self.last_given
            and LastGiven(format_address(self.last_given[0], family=family), self.last_given[1]),
        )
        held = sum(entry.held is not None for entry in self.entries.values())
        metadata = UntrackedMetadata(
            name=self.key.name,
            resource_version=self.version or "",
            labels={NETWORK_LABEL: self.key.pool.network_uuid},
            managed_fields=UNTRACKED,
        )
        return AddressBlockObject(metadata, spec, BlockSummary(given=len(self.entries) - held, held=held))


def read_block(item: AddressBlockObject, *, now: float) -> Block:
    """The block that an object holds; a hold that began in the future is taken to begin `now`.

    Raises ValueError if it holds what is no address.
    """
    family = family_of(item.spec.first)
    key = BlockKey(Pool(item.spec.network, family), parse_address(item.spec.first, family=family))
    last = item.spec.last_given
    lines = [_read_line(line, now=now) for line in item.spec.addresses.splitlines()]
    return Block(
        key,
        item.metadata.resource_version,
        {parse_address(text, family=family): entry for text, entry in lines},
        None if last is None else (parse_address(last.address, family=family), last.at),
    )


def gives(item: AddressBlockObject) -> bool:
    """Whether anybody has an address in the block that an object holds, be it otherwise nonsense."""
    return any(len(line.split()) == _GIVEN for line in item.spec.addresses.splitlines())


def _line(address: str, entry: Entry) -> str:
    return " ".join((address, entry.owner, *map(repr, entry.held or ()))) + "\n"


def _read_line(line: str, *, now: float) -> tuple[str, Entry]:
    address, owner, *times = line.split()
    if not times:
        return address, Entry(owner)
    since, until = map(float, times)
    ahead = max(0.0, since - now)
    return address, Entry(owner, Hold(since - ahead, until - ahead))

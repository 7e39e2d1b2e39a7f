"""Blocks of addresses as they are counted with: ints inside, text on the wire.

Blocks lie at multiples of 64, whatever the bounds of the subnets, so that a network whose subnets change keeps its
blocks.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.kubernetes.kinds import (
    NETWORK_LABEL,
    UNTRACKED,
    BlockEntry,
    BlockObject,
    BlockSpec,
    BlockSummary,
    LastGiven,
    UntrackedMetadata,
)

_SIZE: Final = 64


class Pool(NamedTuple):
    """All addresses of one family in one network."""

    network_uuid: str
    family: int


class Place(NamedTuple):
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

    def write(self) -> BlockObject:
        """The block as the server keeps it."""
        family = self.key.pool.family
        held = sum(entry.held is not None for entry in self.entries.values())
        spec = BlockSpec(
            network=self.key.pool.network_uuid,
            first=format_address(self.key.first, family=family),
            addresses={
                format_address(address, family=family): _written(entry)
                for address, entry in sorted(self.entries.items())
            },
            last_given=self.last_given
            and LastGiven(format_address(self.last_given[0], family=family), self.last_given[1]),
        )
        metadata = UntrackedMetadata(
            name=self.key.name,
            resource_version=self.version or "",
            labels={NETWORK_LABEL: self.key.pool.network_uuid},
            managed_fields=UNTRACKED,
        )
        return BlockObject(metadata, spec, BlockSummary(given=len(self.entries) - held, held=held))


def read_block(item: BlockObject, *, now: float) -> Block:
    """The block that an object holds; a hold that began in the future is taken to begin `now`.

    Raises ValueError if it holds what is no address.
    """
    family = family_of(item.spec.first)
    key = BlockKey(Pool(item.spec.network, family), parse_address(item.spec.first, family=family))
    last = item.spec.last_given
    return Block(
        key,
        item.metadata.resource_version,
        {parse_address(text, family=family): _read(entry, now=now) for text, entry in item.spec.addresses.items()},
        None if last is None else (parse_address(last.address, family=family), last.at),
    )


def _written(entry: Entry) -> BlockEntry:
    return BlockEntry(entry.owner, *entry.held or ())


def _read(entry: BlockEntry, *, now: float) -> Entry:
    if entry.held_until is None:
        return Entry(entry.owner)
    since = now if entry.held_since is None else entry.held_since
    ahead = max(0.0, since - now)
    return Entry(entry.owner, Hold(since - ahead, entry.held_until - ahead))

"""Address blocks: ints in memory, text on the wire.

Blocks start at multiples of 64, whatever the bounds of the subnets, so a network whose subnets change keeps its blocks.

The content of a block is written as one string, although one object per address would be the usual form. Blocks are
written nearly as often as pods are created, and the API server traverses every value of an object a dozen times (it
decodes, prunes, validates, copies, and sends it to watchers). With objects this was nearly a third of the memory that
it allocated for a pod, and slow requests wait for its garbage collector.
"""

import math
import sys
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.kubernetes.constraints import problem_of
from contrail_config.kubernetes.kinds import (
    NETWORK_LABEL,
    UNTRACKED,
    AddressBlockObject,
    BlockSpec,
    BlockSummary,
    Document,
    LastAllocation,
    UntrackedMetadata,
)
from contrail_config.kubernetes.node_owner import is_node_owner
from contrail_config.unknown_fields import with_unknown_fields

SIZE: Final = 64
"""Addresses of a block."""

_UUID_LENGTH: Final = 36
_IPV4_HYPHENS: Final = 3  # in the first address of a block's name

_TIMES: Final = 2  # fields of a hold: its start and its end
_AT: Final = "@"  # before the node of an address
_MAX_QUOTED: Final = 200  # characters of a line in a message
_ASSIGNS: Final = "="  # in a field that only a newer release knows


class PoolKey(NamedTuple):
    """Identifies the addresses of one family in one network."""

    network_uuid: str
    family: int


class AddressKey(msgspec.Struct, frozen=True, order=True, gc=False):
    """Identifies an address in the whole store. Half as large as a tuple: there may be a million of them."""

    pool: PoolKey
    address: int

    @property
    def text(self) -> str:
        """The address as text."""
        return format_address(self.address, family=self.pool.family)

    @property
    def block(self) -> "BlockKey":
        """The block that contains the address."""
        return BlockKey(self.pool, self.address - self.address % SIZE)


class BlockKey(NamedTuple):
    """Identifies a block; `first` is its first address."""

    pool: PoolKey
    first: int

    @property
    def name(self) -> str:
        """Name of the object: the network's uuid and the first address, uncompressed, with hyphens."""
        first = format_address(self.first, family=self.pool.family)
        if self.pool.family == 6:
            groups = f"{self.first:032x}"
            first = "-".join(groups[start : start + 4] for start in range(0, 32, 4))
        return f"{self.pool.network_uuid}-{first.replace('.', '-')}"

    @property
    def addresses(self) -> list[AddressKey]:
        """All addresses of the block, whether or not they are in a subnet."""
        return [AddressKey(self.pool, address) for address in range(self.first, self.first + SIZE)]


class Hold(NamedTuple):
    """Period in which a released address is not allocated again, in seconds since the epoch by this process's clock.

    `stored` is the same period by the clock of the manager that wrote it; None if that is this process.
    """

    since: float
    until: float
    stored: tuple[float, float] | None = None

    @property
    def stored_times(self) -> tuple[float, float]:
        """Start and end as they are in the object."""
        return self.stored or (self.since, self.until)


class AddressEntry(msgspec.Struct, frozen=True, gc=False):
    """Owner of an address. `hold` is set after its release: then this is the previous owner.

    `node` is set for a borrowed address: the node of its owner, to which its block does not belong. For a held address
    it is the node where the address may still be in use. `unknown` are fields of a newer release.
    """

    owner: str
    hold: Hold | None = None
    node: str | None = None
    unknown: tuple[str, ...] = ()


class Block(msgspec.Struct, frozen=True):
    """A block: its addresses that are not free, its resource version, and the last allocated address with its time.

    `version` and `uid` are None if the server has no such object. `node` is None in a network that is not routed by
    block. `found` is what was read of the object if that has more than this release knows, such as fields of a newer
    one. `stored_holds` are the entries of held addresses in the object as it was read or written, whether or not the
    holds have expired since. Immutable; the mappings must not be modified.
    """

    key: BlockKey
    version: str | None = None
    entries: Mapping[int, AddressEntry] = msgspec.field(default_factory=dict)
    last_allocated: tuple[int, float] | None = None
    node: str | None = None
    found: Document | None = None
    uid: str | None = None
    stored_holds: Mapping[int, AddressEntry] = msgspec.field(default_factory=dict)

    def holds(self) -> dict[int, AddressEntry]:
        """Returns the entries of held addresses."""
        return {address: entry for address, entry in self.entries.items() if entry.hold is not None}

    def is_in_use(self, now: float) -> bool:
        """Whether it has an allocated address, or one whose hold has not expired at `now`."""
        return any(entry.hold is None or entry.hold.until > now for entry in self.entries.values())

    def to_object(self) -> AddressBlockObject | Document:
        """Returns the object for the server."""
        item = self._known()
        return item if self.found is None else _with_unknown(item, self.found)

    def _known(self) -> AddressBlockObject:
        family = self.key.pool.family
        spec = BlockSpec(
            network=self.key.pool.network_uuid,
            first=format_address(self.key.first, family=family),
            addresses="".join(
                _encode_line(format_address(address, family=family), entry)
                for address, entry in sorted(self.entries.items())
            ),
            last_given=self.last_allocated
            and LastAllocation(format_address(self.last_allocated[0], family=family), self.last_allocated[1]),
            node=self.node,
        )
        held = len(self.holds())
        borrowed = sum(entry.node is not None and entry.hold is None for entry in self.entries.values())
        metadata = UntrackedMetadata(
            name=self.key.name,
            resource_version=self.version or "",
            labels={NETWORK_LABEL: self.key.pool.network_uuid},
            managed_fields=UNTRACKED,
        )
        return AddressBlockObject(metadata, spec, BlockSummary(len(self.entries) - held, held, borrowed))


def decode_block(item: Document) -> Block:
    """Returns the block in an object, with holds by their writers' clocks. Raises ValueError for invalid content."""
    spec = msgspec.convert(item.spec, BlockSpec)
    if (problem := problem_of(spec)) is not None:
        raise ValueError(problem)
    family = family_of(spec.first)
    key = BlockKey(PoolKey(spec.network, family), parse_address(spec.first, family=family))
    if item.metadata.name != key.name:
        raise ValueError(f"metadata.name: must be {key.name!r}, by its network and first address")
    if (label := item.metadata.labels.get(NETWORK_LABEL)) != spec.network:
        raise ValueError(f"metadata.labels: {NETWORK_LABEL}={label} is not the network of the spec, {spec.network}")
    if key.first % SIZE:
        raise ValueError(f"first: {spec.first} is not a multiple of {SIZE}")
    last = spec.last_given
    return Block(
        key,
        item.metadata.resource_version,
        _decode_lines(spec.addresses, key),
        None if last is None else (parse_address(last.address, family=family), last.at),
        spec.node,
        item if _has_unknown(item, spec) else None,
        item.metadata.uid or None,
    )


def block_key(name: str) -> BlockKey | None:
    """Returns the key of the block whose object has this name; None if no block has."""
    network, first = name[:_UUID_LENGTH], name[_UUID_LENGTH + 1 :]
    family = 4 if first.count("-") == _IPV4_HYPHENS else 6
    try:
        address = parse_address(first.replace("-", "." if family == 4 else ":"), family=family)
    except ValueError:
        return None
    key = BlockKey(PoolKey(network, family), address)
    return key if key.name == name and not address % SIZE else None


def has_allocations(item: AddressBlockObject) -> bool:
    """Returns whether an interface has an address of the block in an object. Tolerates otherwise invalid content."""
    lines = (line.split() for line in item.spec.addresses.splitlines())
    return any(len(_times(fields[2:])) < _TIMES and not is_node_owner("".join(fields[1:2])) for fields in lines)


def _has_unknown(item: Document, spec: BlockSpec) -> bool:
    metadata = item.metadata
    if metadata.labels.keys() - {NETWORK_LABEL} or metadata.annotations or metadata.finalizers:
        return True
    if item.status.keys() - set(BlockSummary.__struct_encode_fields__):
        return True
    return bool(with_unknown_fields(spec, item.spec) != msgspec.to_builtins(spec))


def _with_unknown(item: AddressBlockObject, found: Document) -> Document:
    metadata = msgspec.structs.replace(
        item.metadata,
        labels={**found.metadata.labels, **item.metadata.labels},
        annotations=found.metadata.annotations,
        owner_references=found.metadata.owner_references,
        finalizers=found.metadata.finalizers,
    )
    status = {} if item.status is None else with_unknown_fields(item.status, found.status)
    return Document(metadata, with_unknown_fields(item.spec, found.spec), status)


def _decode_lines(lines: str, key: BlockKey) -> dict[int, AddressEntry]:
    entries: dict[int, AddressEntry] = {}
    for line in lines.splitlines():
        text, entry = _decode_line(line)
        address = parse_address(text, family=key.pool.family)
        if not key.first <= address < key.first + SIZE:
            raise ValueError(f"addresses: {text} is not an address of the block")
        if address in entries:
            raise ValueError(f"addresses: {text} is listed twice")
        entries[address] = entry
    return entries


def _encode_line(address: str, entry: AddressEntry) -> str:
    node = () if entry.node is None else (_AT + entry.node,)
    times = () if entry.hold is None else entry.hold.stored_times
    # repr of a float survives the round trip exactly.
    return " ".join((address, entry.owner, *map(repr, times), *node, *entry.unknown)) + "\n"


def _decode_line(line: str) -> tuple[str, AddressEntry]:
    address, owner, *rest = line.split()
    owner = sys.intern(owner)  # an interface has two addresses, and its virtual machine is known too
    if not rest:
        return address, AddressEntry(owner)
    unknown = tuple(field for field in rest if _ASSIGNS in field)
    nodes = [field.removeprefix(_AT) for field in rest if field.startswith(_AT) and _ASSIGNS not in field]
    times = [float(field) for field in _times(rest)]
    if len(nodes) > 1 or len(times) not in (0, _TIMES):
        raise ValueError(f"addresses: {line[:_MAX_QUOTED]!r} is not an address with its owner")
    return address, AddressEntry(owner, _hold(*times) if times else None, nodes[0] if nodes else None, unknown)


def _times(fields: list[str]) -> list[str]:
    return [field for field in fields if not field.startswith(_AT) and _ASSIGNS not in field]


def _hold(since: float, until: float) -> Hold:
    if not math.isfinite(until - since):
        raise ValueError(f"addresses: {since} to {until} is no period of a hold")
    return Hold(since, until)

"""Parser for stored address blocks, independent of the product's encoder."""

from collections.abc import Iterable
from typing import Any, NamedTuple


class BlockEntry(NamedTuple):
    """An address that is not free. `held`: seconds from its release to its reuse, None while it is allocated.

    `borrower` is the node of a borrowed address.
    """

    network: str
    address: str
    owner: str
    held: float | None
    borrower: str | None = None


def block_entries(blocks: Iterable[Any]) -> list[BlockEntry]:
    """All entries of these blocks, which are API objects."""
    return [_read(block["spec"]["network"], line) for block in blocks for line in _lines(block)]


def hold_seconds(blocks: Iterable[Any], owner: str) -> float | None:
    """Length in seconds of the hold on the owner's released address; None without a hold."""
    return next((one.held for one in block_entries(blocks) if one.owner == owner and one.held is not None), None)


def _lines(block: Any) -> list[str]:
    lines: list[str] = block["spec"].get("addresses", "").splitlines()
    return lines


def _read(network: str, line: str) -> BlockEntry:
    address, owner, *rest = line.split(" ")
    match rest:
        case []:
            return BlockEntry(network, address, owner, None)
        case [node]:
            assert node.startswith("@")
            return BlockEntry(network, address, owner, None, node[1:])
    since, until = map(float, rest[:2])  # the node where the address was may follow
    return BlockEntry(network, address, owner, until - since)

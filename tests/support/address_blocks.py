"""What is written in blocks of addresses, read without the code that writes it."""

from collections.abc import Iterable
from typing import Any, NamedTuple


class BlockEntry(NamedTuple):
    """An address that is not free; `held`: seconds for which it is held back from its owner's end on, None: given."""

    network: str
    address: str
    owner: str
    held: float | None


def block_entries(blocks: Iterable[Any]) -> list[BlockEntry]:
    """All in these blocks, objects as the API server answers them."""
    return [_read(block["spec"]["network"], line) for block in blocks for line in _lines(block)]


def hold_seconds(blocks: Iterable[Any], owner: str) -> float | None:
    """For how many seconds an address of the owner is held back; None: none is."""
    return next((one.held for one in block_entries(blocks) if one.owner == owner and one.held is not None), None)


def _lines(block: Any) -> list[str]:
    lines: list[str] = block["spec"].get("addresses", "").splitlines()
    return lines


def _read(network: str, line: str) -> BlockEntry:
    address, owner, *times = line.split(" ")
    if not times:
        return BlockEntry(network, address, owner, None)
    since, until = map(float, times)
    return BlockEntry(network, address, owner, until - since)

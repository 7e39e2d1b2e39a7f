"""The search for an address takes the same few steps in a network with one block and with all of its blocks in use."""

import sys
from types import FrameType
from typing import Any

import pytest

from contrail_config.kubernetes.block_pool import BlockPool
from contrail_config.kubernetes.blocks import SIZE, AddressEntry, Block, BlockKey, PoolKey
from contrail_config.objects import Subnet

pytestmark = pytest.mark.machine

FIRST = 10 << 24 | 32 << 16
BLOCKS = 1 << 14  # of a /12


def pool(*, used: int, free_in: int = -1, nodes: int = 0) -> BlockPool:
    """A pool of a /12 in which the first `used` blocks are full, except for one address of block `free_in`."""
    subject = BlockPool([Subnet(cidr="10.32.0.0/12", gateway=None)], family=4)
    for number in range(used):
        first = FIRST + number * SIZE
        entries = {first + offset: AddressEntry("x") for offset in range(number == free_in, SIZE)}
        node = f"n{number % nodes}" if nodes else None
        subject.update(Block(BlockKey(PoolKey("network", 4), first), "1", entries, node=node))
    return subject


def search_cost(subject: BlockPool, node: str | None) -> int:
    """Number of lines that Python executes in one search."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    previous = sys.gettrace()  # of a coverage measurement
    sys.settrace(trace)
    try:
        subject.next_free(node)
    finally:
        sys.settrace(previous)
    return lines


@pytest.mark.parametrize("node", [None, "n0", "other"])
@pytest.mark.parametrize("used", [0, 1, BLOCKS // 2, BLOCKS - 1])
def test_a_new_block(node: str | None, used: int) -> None:
    assert search_cost(pool(used=used, nodes=7), node) <= 100


@pytest.mark.parametrize("node", [None, "n0", "other"])
@pytest.mark.parametrize("free_in", [1, BLOCKS // 2, BLOCKS - 2])
def test_the_last_free_address(node: str | None, free_in: int) -> None:
    assert search_cost(pool(used=BLOCKS, free_in=free_in, nodes=7), node) <= 100


@pytest.mark.parametrize("node", [None, "n0", "other"])
def test_a_full_network(node: str | None) -> None:
    assert search_cost(pool(used=BLOCKS, nodes=5_000), node) <= 100


def test_many_excluded_blocks_are_searched_once() -> None:
    excluded = tuple(f"10.32.{third}.{fourth}/26" for third in range(200) for fourth in (0, 64, 128, 192))
    subject = BlockPool([Subnet(cidr="10.32.0.0/12", gateway=None, excluded=excluded[::2])], family=4)
    for number in [*range(1, 799, 2)]:
        first = FIRST + number * SIZE
        subject.update(
            Block(BlockKey(PoolKey("network", 4), first), "1", {first + n: AddressEntry("x") for n in range(SIZE)})
        )
    subject.next_free()
    assert search_cost(subject, None) <= 100

"""The search for a free address takes the same few steps in an empty, a nearly full and a full subnet."""

import sys
from types import FrameType
from typing import Any

import pytest

from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet

pytestmark = pytest.mark.machine


def filled_pool(cidr: str, *, free: set[int]) -> AddressPool:
    """A pool in which all addresses are allocated except those with the offsets `free`."""
    pool = AddressPool([Subnet(cidr=cidr, gateway=None)], family=4)
    bounds = pool.bounds(pool.next_free() or 0)
    for offset in range(bounds.last - bounds.first + 1):
        if offset not in free:
            pool.mark_allocated(bounds.first + offset)
    return pool


def search_cost(pool: AddressPool) -> int:
    """Number of lines that Python executes in one search."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    previous = sys.gettrace()  # of a coverage measurement
    sys.settrace(trace)
    try:
        pool.next_free()
    finally:
        sys.settrace(previous)
    return lines


def test_an_empty_slash_12() -> None:
    assert search_cost(AddressPool([Subnet(cidr="10.32.0.0/12", gateway=None)], family=4)) <= 30


@pytest.mark.parametrize("free", [1, 2, 31_000, 65_534])
def test_a_slash_16_with_one_free_address(free: int) -> None:
    assert search_cost(filled_pool("10.0.0.0/16", free={free})) <= 60


def test_a_full_slash_16() -> None:
    assert search_cost(filled_pool("10.0.0.0/16", free=set())) <= 60


def test_a_slash_64_of_which_half_is_excluded() -> None:
    subnet = Subnet(cidr="fd00::/64", gateway="fd00::1", excluded=("fd00::/65",))
    assert search_cost(AddressPool([subnet], family=6)) <= 50

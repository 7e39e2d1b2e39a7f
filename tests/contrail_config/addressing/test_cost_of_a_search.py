"""Finding a free address costs the same few steps in an empty, a nearly full and a full subnet."""

from typing import Any

import pytest

from contrail_config.addressing.pool import AddressPool
from contrail_config.objects import Subnet


class CountedDict(dict[int, int]):
    """Counts how often something is looked up in it."""

    lookups = 0

    def get(self, *args: Any) -> Any:
        CountedDict.lookups += 1
        return super().get(*args)


def filled_pool(cidr: str, *, but: set[int]) -> AddressPool:
    """All of the subnet taken, but for these offsets."""
    pool = AddressPool([Subnet(cidr=cidr, gateway=None)], family=4)
    bounds = pool.bounds(pool.next_free() or 0)
    for offset in range(bounds.last - bounds.first + 1):
        if offset not in but:
            pool.mark_allocated(bounds.first + offset)
    return pool


def lookups_of_choose(pool: AddressPool) -> int:
    levels = pool._parts[0]._unfree._levels
    levels[:] = [CountedDict(level) for level in levels]
    CountedDict.lookups = 0
    pool.next_free()
    return CountedDict.lookups


def test_in_an_empty_slash_12() -> None:
    assert lookups_of_choose(AddressPool([Subnet(cidr="10.32.0.0/12", gateway=None)], family=4)) <= 1


@pytest.mark.parametrize("free", [1, 2, 31_000, 65_534])
def test_in_a_slash_16_with_one_free_address(free: int) -> None:
    assert lookups_of_choose(filled_pool("10.0.0.0/16", but={free})) <= 12


def test_in_a_full_slash_16() -> None:
    assert lookups_of_choose(filled_pool("10.0.0.0/16", but=set())) <= 12


def test_with_half_of_a_slash_64_excluded() -> None:
    subnet = Subnet(cidr="fd00::/64", gateway="fd00::1", excluded=("fd00::/65",))
    assert lookups_of_choose(AddressPool([subnet], family=6)) <= 2

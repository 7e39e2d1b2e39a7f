"""Address pool: the next free address, and why a requested one is unavailable."""

from collections.abc import Mapping, Sequence

import pytest

from contrail_config.addressing.notation import family_of, format_address, parse_address
from contrail_config.addressing.pool import AddressPool
from contrail_config.addressing.subnet import default_gateway
from contrail_config.objects import Subnet


class Pool:
    """A pool with text instead of ints, and the default gateway in each subnet."""

    def __init__(
        self,
        *cidrs: str,
        excluded: tuple[str, ...] = (),
        selected: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> None:
        self.family = family_of(cidrs[0])
        subnets = [Subnet(cidr=cidr, gateway=default_gateway(cidr), excluded=excluded) for cidr in cidrs]
        ranges = {
            cidr: [(self.number(first), self.number(last)) for first, last in texts]
            for cidr, texts in (selected or {}).items()
        }
        self.pool = AddressPool(subnets, family=self.family, selected=ranges)

    def allocate(self, count: int) -> list[str]:
        """Allocates the next `count` addresses, or as many as are free."""
        allocated: list[str] = []
        while len(allocated) < count and (address := self.pool.next_free()) is not None:
            self.pool.mark_allocated(address)
            allocated.append(format_address(address, family=self.family))
        return allocated

    def number(self, text: str) -> int:
        return parse_address(text, family=self.family)

    def unavailable_reason(self, text: str) -> str | None:
        return self.pool.unavailable_reason(self.number(text))


@pytest.mark.parametrize(
    ("cidr", "addresses"),
    [
        ("10.0.0.0/29", ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6"]),
        ("10.0.0.0/30", ["10.0.0.2"]),
        ("10.0.0.0/31", ["10.0.0.1"]),
        ("10.0.0.5/32", ["10.0.0.5"]),
        ("fd00::/126", ["fd00::2", "fd00::3"]),
        ("fd00::/127", ["fd00::1"]),
        ("fd00::5/128", ["fd00::5"]),
    ],
)
def test_each_usable_address_is_allocated_once_and_then_none(cidr: str, addresses: list[str]) -> None:
    assert Pool(cidr).allocate(9) == addresses


@pytest.mark.parametrize(
    ("cidr", "addresses"),
    [
        ("10.32.0.0/12", ["10.32.0.2", "10.32.0.3"]),
        ("fd00:1::/64", ["fd00:1::2", "fd00:1::3"]),
        ("fd00::/8", ["fd00::2", "fd00::3"]),
        ("::/0", ["::2", "::3"]),
    ],
)
def test_a_large_subnet_works_like_a_small_one(cidr: str, addresses: list[str]) -> None:
    assert Pool(cidr).allocate(2) == addresses


def test_excluded_addresses_are_skipped() -> None:
    assert Pool("10.0.0.0/29", excluded=("10.0.0.3", "10.0.0.6")).allocate(9) == ["10.0.0.2", "10.0.0.4", "10.0.0.5"]


@pytest.mark.parametrize(
    ("cidr", "excluded", "addresses"),
    [
        ("10.0.0.0/28", ("10.0.0.0/29",), [f"10.0.0.{host}" for host in range(8, 15)]),
        ("10.0.0.0/28", ("10.0.0.8/29",), [f"10.0.0.{host}" for host in range(2, 8)]),
        ("10.0.0.0/28", ("10.0.0.2/31", "10.0.0.4/30", "10.0.0.9"), [f"10.0.0.{host}" for host in (8, *range(10, 15))]),
        ("10.0.0.0/28", ("10.0.0.0/28",), []),
        ("fd00::/64", ("fd00::/65",), ["fd00::8000:0:0:0", "fd00::8000:0:0:1"]),
    ],
)
def test_excluded_ranges_are_skipped(cidr: str, excluded: tuple[str, ...], addresses: list[str]) -> None:
    assert Pool(cidr, excluded=excluded).allocate(max(2, len(addresses))) == addresses


def test_a_subnet_without_a_gateway_allocates_its_first_usable_address() -> None:
    pool = AddressPool([Subnet(cidr="10.0.0.0/30", gateway=None)], family=4)
    assert pool.next_free() == parse_address("10.0.0.1", family=4)


def test_a_released_address_is_reused_after_all_others() -> None:
    tested = Pool("10.0.0.0/29")
    assert tested.allocate(2) == ["10.0.0.2", "10.0.0.3"]
    tested.pool.mark_free(tested.number("10.0.0.2"))
    assert tested.allocate(9) == ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2"]


def test_the_search_continues_after_a_requested_address() -> None:
    tested = Pool("10.0.0.0/29")
    tested.pool.mark_allocated(tested.number("10.0.0.5"))
    assert tested.allocate(9) == ["10.0.0.6", "10.0.0.2", "10.0.0.3", "10.0.0.4"]


def test_the_first_subnet_with_a_free_address_is_used() -> None:
    tested = Pool("10.2.0.0/30", "10.1.0.0/30", "fd00::/64")
    assert tested.allocate(2) == ["10.2.0.2", "10.1.0.2"]
    tested.pool.mark_free(tested.number("10.1.0.2"))
    tested.pool.mark_free(tested.number("10.2.0.2"))
    assert tested.allocate(9) == ["10.2.0.2", "10.1.0.2"]


def test_addresses_are_selected_from_the_ranges_of_a_subnet_in_their_order() -> None:
    ranges = [("10.0.0.20", "10.0.0.21"), ("10.0.0.10", "10.0.0.11"), ("10.0.0.254", "10.0.0.255")]
    pool = Pool("10.0.0.0/24", "10.1.0.0/30", excluded=("10.0.0.11",), selected={"10.0.0.0/24": ranges})
    assert pool.allocate(9) == ["10.0.0.20", "10.0.0.21", "10.0.0.254", "10.0.0.10", "10.1.0.2"]
    pool.pool.mark_free(pool.number("10.0.0.20"))
    assert pool.allocate(2) == ["10.0.0.20"]


def test_an_address_outside_the_ranges_is_available_on_request() -> None:
    pool = Pool("fd00::/64", selected={"fd00::/64": [("fd00::10", "fd00::11")]})
    assert pool.unavailable_reason("fd00::99") is None
    pool.pool.mark_allocated(pool.number("fd00::99"))
    assert pool.allocate(3) == ["fd00::10", "fd00::11"]


def test_a_held_address_is_not_allocated_until_it_is_free() -> None:
    tested = Pool("10.0.0.0/30")
    (address,) = tested.allocate(1)
    tested.pool.mark_held(tested.number(address))
    assert tested.allocate(1) == []
    tested.pool.mark_free(tested.number(address))
    assert tested.allocate(1) == [address]


def test_a_held_address_can_become_allocated() -> None:
    tested = Pool("10.0.0.0/30")
    tested.pool.mark_held(tested.number("10.0.0.2"))
    tested.pool.mark_allocated(tested.number("10.0.0.2"))
    assert tested.unavailable_reason("10.0.0.2") == "it is already allocated to another interface"


def test_the_pool_of_a_family_without_subnets_has_no_address() -> None:
    pool = AddressPool([Subnet(cidr="10.0.0.0/24", gateway=None)], family=6)
    assert pool.next_free() is None
    assert pool.unavailable_reason(1) == "it is in no subnet of the network"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.0.0.9", None),
        ("10.1.0.9", None),
        ("10.2.0.9", "it is in no subnet of the network"),
        ("10.0.0.0", "it is the network address"),
        ("10.0.0.1", "it is the gateway"),
        ("10.0.0.255", "it is the broadcast address"),
        ("10.0.0.7", "it is excluded"),
        ("10.0.0.2", "it is already allocated to another interface"),
        ("10.0.0.3", "it is still held after its release"),
    ],
)
def test_a_requested_address_is_unavailable_for_a_reason(address: str, reason: str | None) -> None:
    tested = Pool("10.0.0.0/24", "10.1.0.0/24", excluded=("10.0.0.7",))
    tested.allocate(2)
    tested.pool.mark_held(tested.number("10.0.0.3"))
    assert tested.unavailable_reason(address) == reason


def test_an_excluded_address_that_was_allocated_does_not_become_free() -> None:
    tested = Pool("10.0.0.0/30", excluded=("10.0.0.2",))
    tested.pool.mark_allocated(tested.number("10.0.0.2"))
    tested.pool.mark_free(tested.number("10.0.0.2"))
    assert tested.unavailable_reason("10.0.0.2") == "it is excluded"
    assert tested.allocate(1) == []


def test_addresses_outside_the_subnets_are_ignored() -> None:
    tested = Pool("10.0.0.0/30")
    outside = tested.number("10.9.0.1")
    tested.pool.mark_allocated(outside)
    tested.pool.mark_held(outside)
    tested.pool.mark_free(outside)
    assert tested.allocate(9) == ["10.0.0.2"]
    with pytest.raises(ValueError, match="in no subnet"):
        tested.pool.bounds(outside)


def test_the_bounds_of_an_address_are_those_of_its_subnet() -> None:
    tested = Pool("10.0.0.0/24", "10.1.0.0/16")
    bounds = tested.pool.bounds(tested.number("10.1.3.4"))
    assert (bounds.cidr, bounds.prefix_length, bounds.gateway) == ("10.1.0.0/16", 16, "10.1.0.1")


@pytest.mark.parametrize("cidrs", [("10.0.0.0/24", "10.0.0.128/25"), ("fd00:1::/64", "fd00:2::/64", "fd00::/16")])
def test_overlapping_subnets_raise_an_error_that_names_them(cidrs: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"subnets \S+ and \S+ overlap"):
        Pool(*cidrs)

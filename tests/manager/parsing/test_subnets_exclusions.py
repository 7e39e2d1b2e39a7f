"""`opencontrail.org/exclude`: addresses, CIDRs and ranges, collapsed to the fewest CIDRs that cover them."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manager.parsing.subnets import parse_subnets
from manager.parsing.validation import Setting, ValidationErrors
from tests.manager.parsing.conftest import Define, ProblemsOf

FIRST = int(IPv4Address("10.1.0.0"))


@pytest.mark.parametrize(
    ("exclude", "excluded"),
    [
        ("10.1.1.5", ("10.1.1.5",)),
        ("10.1.1.4/30", ("10.1.1.4/30",)),
        ("10.1.1.9/32", ("10.1.1.9",)),
        ("10.1.1.5 - 10.1.1.5", ("10.1.1.5",)),
        ("10.1.1.1-10.1.1.4", ("10.1.1.1", "10.1.1.2/31", "10.1.1.4")),
        ('["10.1.1.8/29", "10.1.1.0-10.1.1.7"]', ("10.1.1.0/28",)),
        ("10.1.1.6,10.1.1.5,10.1.1.6", ("10.1.1.5", "10.1.1.6")),
    ],
)
def test_exclusions_are_collapsed_to_the_fewest_addresses_and_cidrs(
    exclude: str, excluded: tuple[str, ...], define: Define
) -> None:
    assert define(cidr="10.1.1.0/24", exclude=exclude).subnets[0].excluded == excluded


def test_an_exclusion_belongs_to_the_subnet_that_contains_it(define: Define) -> None:
    subnets = define(cidr="10.1.1.0/24,10.1.2.0/24,fd00::/64", exclude="fd00::5,10.1.2.7,10.1.1.3").subnets
    assert [subnet.excluded for subnet in subnets] == [("10.1.1.3",), ("10.1.2.7",), ("fd00::5",)]


def test_half_an_ipv6_subnet_is_one_exclusion(define: Define) -> None:
    (subnet,) = define(cidr="fd00::/64", exclude="fd00::-fd00::7fff:ffff:ffff:ffff").subnets
    assert subnet.excluded == ("fd00::/65",)


@pytest.mark.parametrize(
    ("exclude", "problem"),
    [
        ("10.1.3.1", "'10.1.3.1' is in none of the subnets 10.1.1.0/24, 10.1.2.0/24"),
        ("10.1.1.200-10.1.2.5", "'10.1.1.200-10.1.2.5' is in none of the subnets 10.1.1.0/24, 10.1.2.0/24"),
        ("10.1.0.0/16", "'10.1.0.0/16' is in none of the subnets 10.1.1.0/24, 10.1.2.0/24"),
        ("10.1.1.9-10.1.1.1", "'10.1.1.9-10.1.1.1' is not a range from a lower to a higher address"),
        ("10.1.1.9-fd00::1", "'10.1.1.9-fd00::1' is not a range from a lower to a higher address"),
        ("10.1.1.5/30", "'10.1.1.5/30' has host bits set: write 10.1.1.4/30"),
        ("10.1.1.1-", "'' is not an IP address"),
        ("x", "'x' is not an IP address"),
    ],
)
def test_an_invalid_exclusion_is_reported(exclude: str, problem: str, problems_of: ProblemsOf) -> None:
    assert problems_of(cidr="10.1.1.0/24,10.1.2.0/24", exclude=exclude) == (f"opencontrail.org/exclude: {problem}",)


offsets = st.integers(0, 1023)
ranges = st.lists(st.tuples(offsets, offsets).map(lambda both: (min(both), max(both))), max_size=6)


@given(ranges)
def test_exactly_the_listed_addresses_are_excluded(stated: list[tuple[int, int]]) -> None:
    texts = [f"{IPv4Address(FIRST + low)}-{IPv4Address(FIRST + high)}" for low, high in stated]
    errors = ValidationErrors()
    (subnet,) = parse_subnets(
        errors, cidrs=Setting("cidr", ["10.1.0.0/22"]), gateways=Setting("gateway"), excluded=Setting("exclude", texts)
    )
    assert not errors.problems
    expected = {offset for low, high in stated for offset in range(low, high + 1)}
    assert {int(address) - FIRST for cidr in subnet.excluded for address in ip_network(cidr)} == expected
    assert sum(ip_network(cidr).num_addresses for cidr in subnet.excluded) == len(expected)


cidrs = st.builds(
    lambda number, length: str(ip_network((number, length), strict=False)),
    st.integers(FIRST, FIRST + 0xFFFF),
    st.integers(18, 32),
) | st.builds(
    lambda number, length: str(ip_network((int(IPv6Address("fd00::")) + number, length), strict=False)),
    st.integers(0, 0xFFFF),
    st.integers(114, 128),
)


@given(st.lists(cidrs, max_size=6))
def test_subnets_are_rejected_if_and_only_if_two_of_them_overlap(texts: list[str]) -> None:
    errors = ValidationErrors()
    parse_subnets(errors, cidrs=Setting("cidr", texts), gateways=Setting("gateway"), excluded=Setting("exclude"))
    networks = [ip_network(text) for text in texts]
    overlapping = any(
        one.version == other.version and one.overlaps(other)
        for position, one in enumerate(networks)
        for other in networks[position + 1 :]
    )
    assert bool(errors.problems) == overlapping

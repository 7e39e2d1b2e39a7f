"""`opencontrail.org/cidr`, `/gateway` and `/exclude`."""

import pytest

from contrail_config.objects import Subnet
from tests.manager.parsing.conftest import Define, ProblemsOf

SUBNET = Subnet(cidr="10.1.1.0/24", gateway="10.1.1.1")
V6_SUBNET = Subnet(cidr="fd00::/64", gateway="fd00::1")


@pytest.mark.parametrize(
    "text", ["10.1.1.0/24", " 10.1.1.0/24\n", '["10.1.1.0/24"]', "['10.1.1.0/24']", '[ "10.1.1.0/24 " ]']
)
def test_a_subnet_may_be_written_alone_or_in_a_list(text: str, define: Define) -> None:
    assert define(cidr=text).subnets == (SUBNET,)


@pytest.mark.parametrize("text", ["10.1.1.0/24,fd00::/64", " 10.1.1.0/24 , fd00::/64", '["10.1.1.0/24", "fd00::/64"]'])
def test_both_families_may_be_written_as_a_comma_list_or_as_json(text: str, define: Define) -> None:
    assert define(cidr=text).subnets == (SUBNET, V6_SUBNET)


def test_subnets_keep_their_order_and_become_canonical(define: Define) -> None:
    cidrs = [subnet.cidr for subnet in define(cidr="FD00:0::/64,10.2.0.0/16,10.1.0.0/16").subnets]
    assert cidrs == ["fd00::/64", "10.2.0.0/16", "10.1.0.0/16"]


@pytest.mark.parametrize(
    ("cidr", "gateway"),
    [("10.1.1.0/24", "10.1.1.1"), ("10.1.1.0/31", "10.1.1.0"), ("10.1.1.7/32", None), ("fd00::/127", "fd00::")],
)
def test_the_first_usable_address_is_the_gateway_by_default(cidr: str, gateway: str | None, define: Define) -> None:
    assert define(cidr=cidr).subnets[0].gateway == gateway


def test_a_gateway_belongs_to_the_subnet_that_contains_it(define: Define) -> None:
    subnets = define(cidr="10.1.1.0/24,10.1.2.0/24,fd00::/64", gateway="fd00::fe,10.1.2.254").subnets
    assert [subnet.gateway for subnet in subnets] == ["10.1.1.1", "10.1.2.254", "fd00::fe"]


@pytest.mark.parametrize(
    ("cidr", "problem"),
    [
        ("10.1.1.5/24", "'10.1.1.5/24' has host bits set: write 10.1.1.0/24"),
        ("fd00::1/64", "'fd00::1/64' has host bits set: write fd00::/64"),
        ("10.1.1.0", "'10.1.1.0' is not a CIDR"),
        ("10.1.1.0/255.255.255.0", "'10.1.1.0/255.255.255.0' is not a CIDR"),
        ("10.1.1.0/33", "'10.1.1.0/33' is not a CIDR"),
        ("10.1.1.0/24 10.1.2.0/24", "'10.1.1.0/24 10.1.2.0/24' is not a CIDR"),
        ("224.1.0.0/16", "'224.1.0.0/16' overlaps 224.0.0.0/4 (multicast)"),
        ("127.0.0.0/24", "'127.0.0.0/24' overlaps 127.0.0.0/8 (loopback)"),
        ("0.0.0.0/0", "'0.0.0.0/0' overlaps 127.0.0.0/8 (loopback)"),
        ("fe80::/64", "'fe80::/64' overlaps fe80::/10 (link-local; every IPv6 interface has one anyway)"),
        ("::/64", "'::/64' overlaps ::1/128 (loopback)"),
        ("", "'' contains no CIDR"),
        ("[]", "'[]' contains no CIDR"),
        ("10.1.1.0/24,", "'10.1.1.0/24,' is not a list of non-empty strings"),
        ("[24]", "'[24]' is not a list of non-empty strings"),
    ],
)
def test_an_invalid_subnet_is_reported(cidr: str, problem: str, problems_of: ProblemsOf) -> None:
    assert problems_of(cidr=cidr) == (f"opencontrail.org/cidr: {problem}",)


def test_invalid_json_is_reported_with_line_and_column(problems_of: ProblemsOf) -> None:
    (problem,) = problems_of(cidr="[“10.1.1.0/24”]")
    assert problem.startswith("opencontrail.org/cidr: '[“10.1.1.0/24”]' is not valid JSON: line 1, column 2:")
    assert "“ (U+201C) at line 1, column 2 is a typographic quote" in problem


def test_both_overlapping_subnets_are_reported(problems_of: ProblemsOf) -> None:
    assert problems_of(cidr="10.1.2.0/24, 10.0.0.0/24, 10.1.0.0/16, fd00::/64, fd00::/64, 10.1.1.0/24") == (
        "opencontrail.org/cidr: 10.1.0.0/16 and 10.1.1.0/24 overlap",
        "opencontrail.org/cidr: 10.1.0.0/16 and 10.1.2.0/24 overlap",
        "opencontrail.org/cidr: fd00::/64 and fd00::/64 overlap",
    )


@pytest.mark.parametrize(
    ("gateway", "problem"),
    [
        ("10.1.2.1", "'10.1.2.1' is in none of the subnets 10.1.1.0/24"),
        ("fd00::1", "'fd00::1' is in none of the subnets 10.1.1.0/24"),
        ("10.1.1.0", "'10.1.1.0' cannot be the gateway of 10.1.1.0/24: it is the network address"),
        ("10.1.1.255", "'10.1.1.255' cannot be the gateway of 10.1.1.0/24: it is the broadcast address"),
        ("10.1.1.1,10.1.1.2", "'10.1.1.2': 10.1.1.0/24 already has gateway 10.1.1.1"),
        ("10.1.1.1/24", "'10.1.1.1/24' is not an IP address"),
        ("none", "'none' is not an IP address"),
    ],
)
def test_an_invalid_gateway_is_reported(gateway: str, problem: str, problems_of: ProblemsOf) -> None:
    assert problems_of(cidr="10.1.1.0/24", gateway=gateway) == (f"opencontrail.org/gateway: {problem}",)


def test_gateways_and_exclusions_are_not_validated_if_a_subnet_is_invalid(problems_of: ProblemsOf) -> None:
    assert problems_of(cidr="10.1.1.0/24,x", gateway="10.9.9.9", exclude="10.9.9.9") == (
        "opencontrail.org/cidr: 'x' is not a CIDR",
    )


@pytest.mark.parametrize("key", ["gateway", "exclude"])
def test_a_blank_gateway_or_exclusion_counts_as_absent(key: str, define: Define) -> None:
    assert define(cidr="10.1.1.0/24", **{key: " "}).subnets == (SUBNET,)

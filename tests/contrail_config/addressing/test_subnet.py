"""Subnet bounds: which addresses can be allocated, and the default gateway. Also the notation of addresses."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrail_config.addressing.notation import family_of, format_address, parse_address, parse_cidr
from contrail_config.addressing.subnet import default_gateway, subnet_bounds
from contrail_config.objects import Subnet


def reserved_addresses(cidr: str, *, gateway: str | None = None, excluded: tuple[str, ...] = ()) -> dict[str, str]:
    bounds = subnet_bounds(Subnet(cidr=cidr, gateway=gateway, excluded=excluded))
    return {
        format_address(address, family=family_of(cidr)): reason for address, reason in sorted(bounds.reserved.items())
    }


@pytest.mark.parametrize(
    ("cidr", "gateway"),
    [
        ("10.32.0.0/12", "10.32.0.1"),
        ("10.0.0.0/24", "10.0.0.1"),
        ("10.0.0.8/30", "10.0.0.9"),
        ("10.0.0.8/31", "10.0.0.8"),
        ("10.0.0.8/32", None),
        ("fd00::/8", "fd00::1"),
        ("fd00:1::/64", "fd00:1::1"),
        ("fd00:1::4/126", "fd00:1::5"),
        ("fd00:1::4/127", "fd00:1::4"),
        ("fd00:1::4/128", None),
    ],
)
def test_the_default_gateway_is_the_first_usable_address(cidr: str, gateway: str | None) -> None:
    assert default_gateway(cidr) == gateway


@pytest.mark.parametrize(
    ("cidr", "reserved"),
    [
        ("10.0.0.0/24", {"10.0.0.0": "it is the network address", "10.0.0.255": "it is the broadcast address"}),
        ("10.0.0.8/30", {"10.0.0.8": "it is the network address", "10.0.0.11": "it is the broadcast address"}),
        ("10.0.0.8/31", {}),
        ("10.0.0.8/32", {}),
        ("fd00:1::/64", {"fd00:1::": "it is the subnet-router anycast address"}),
        ("fd00:1::4/126", {"fd00:1::4": "it is the subnet-router anycast address"}),
        ("fd00:1::4/127", {}),
        ("fd00:1::4/128", {}),
    ],
)
def test_first_and_last_address_of_a_subnet_are_reserved_by_family(cidr: str, reserved: dict[str, str]) -> None:
    assert reserved_addresses(cidr) == reserved


def test_gateway_and_excluded_addresses_are_reserved_with_a_reason() -> None:
    reserved = reserved_addresses("10.0.0.8/31", gateway="10.0.0.8", excluded=("10.0.0.9",))
    assert reserved == {"10.0.0.8": "it is the gateway", "10.0.0.9": "it is excluded"}


@pytest.mark.parametrize(
    ("cidr", "excluded", "ranges", "capacity"),
    [
        ("10.0.0.0/24", (), [], 253),
        ("10.0.0.0/24", ("10.0.0.7",), [], 252),
        ("10.0.0.0/24", ("10.0.0.16/28", "10.0.0.20"), [("10.0.0.16", "10.0.0.31")], 237),
        ("10.0.0.0/24", ("10.0.0.32/27", "10.0.0.16/28"), [("10.0.0.16", "10.0.0.63")], 205),
        ("10.0.0.0/24", ("10.0.0.0/25",), [("10.0.0.0", "10.0.0.127")], 127),
        ("10.0.0.0/24", ("10.0.0.0/16",), [("10.0.0.0", "10.0.0.255")], 0),
        ("10.0.0.0/24", ("10.0.1.0/28",), [], 253),
        ("fd00::/64", ("fd00::8000:0:0:0/65",), [("fd00::8000:0:0:0", "fd00::ffff:ffff:ffff:ffff")], 2**63 - 2),
    ],
)
def test_excluded_ranges_are_clipped_to_the_subnet_and_merged(
    cidr: str, excluded: tuple[str, ...], ranges: list[tuple[str, str]], capacity: int
) -> None:
    family = family_of(cidr)
    bounds = subnet_bounds(Subnet(cidr=cidr, gateway=default_gateway(cidr), excluded=excluded))
    assert [tuple(format_address(end, family=family) for end in each) for each in bounds.excluded] == ranges
    assert bounds.capacity == capacity


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.0.0.0", "it is the network address"),
        ("10.0.0.1", "it is the gateway"),
        ("10.0.0.2", None),
        ("10.0.0.7", "it is excluded"),
        ("10.0.0.16", "it is excluded"),
        ("10.0.0.31", "it is excluded"),
        ("10.0.0.32", None),
    ],
)
def test_an_address_that_is_never_allocated_has_a_reason(address: str, reason: str | None) -> None:
    bounds = subnet_bounds(Subnet(cidr="10.0.0.0/24", gateway="10.0.0.1", excluded=("10.0.0.7", "10.0.0.16/28")))
    assert bounds.unavailable_reason(parse_address(address, family=4)) == reason


def test_a_gateway_outside_the_subnet_reserves_nothing() -> None:
    assert reserved_addresses("fd00:1::4/127", gateway="fe80::1", excluded=("fd00:2::1",)) == {}


@pytest.mark.parametrize(
    "subnet",
    [
        Subnet(cidr="10.0.0.1/24", gateway=None),
        Subnet(cidr="10.0.0.0/33", gateway=None),
        Subnet(cidr="net", gateway=None),
        Subnet(cidr="10.0.0.0/24", gateway="fd00::1"),
        Subnet(cidr="10.0.0.0/24", gateway=None, excluded=("10.0.0.1/30",)),
        Subnet(cidr="10.0.0.0/24", gateway=None, excluded=("fd00::/80",)),
    ],
)
def test_a_malformed_subnet_is_a_value_error(subnet: Subnet) -> None:
    with pytest.raises(ValueError, match=r"host bits|is not an IPv4 (address|CIDR|address or CIDR)"):
        subnet_bounds(subnet)


@given(st.ip_addresses(), st.data())
def test_the_default_gateway_leaves_an_address_to_allocate(address: ipaddress.IPv4Address, data: st.DataObject) -> None:
    prefix_length = data.draw(st.integers(8, address.max_prefixlen))
    network = ipaddress.ip_network((address, prefix_length), strict=False)
    gateway = default_gateway(str(network))
    bounds = subnet_bounds(Subnet(cidr=str(network), gateway=gateway))
    assert bounds.capacity >= 1
    assert (gateway is None) == (network.num_addresses == 1)


@given(st.ip_addresses())
def test_an_address_survives_conversion_to_int_and_back(address: ipaddress.IPv4Address) -> None:
    assert family_of(str(address)) == address.version
    assert parse_address(str(address), family=address.version) == int(address)
    assert format_address(int(address), family=address.version) == str(address)


@given(st.ip_addresses(), st.integers(0, 128))
def test_a_cidr_has_the_addresses_that_the_standard_library_says(address: ipaddress.IPv4Address, length: int) -> None:
    network = ipaddress.ip_network((address, min(length, address.max_prefixlen)), strict=False)
    found = parse_cidr(str(network))
    assert (found.family, found.prefix_length) == (network.version, network.prefixlen)
    assert (found.first, found.last) == (int(network[0]), int(network[-1]))
    assert parse_cidr(str(address)).prefix_length == address.max_prefixlen


@pytest.mark.parametrize(
    "text",
    ["10.0.0.1/24", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/255.0.0.0", "fd00::/٤", "10/8", "", "/8"],
)
def test_text_that_is_not_a_cidr_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an IPv[46] (address|CIDR)|has host bits set"):
        parse_cidr(text)


@pytest.mark.parametrize(("text", "family"), [("10.0.0.1", 6), ("fd00::1", 4), ("10.0.0.01", 4), ("10.0.0.1/24", 4)])
def test_text_that_is_not_an_address_of_the_family_is_rejected(text: str, family: int) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not an IPv{family} address"):
        parse_address(text, family=family)

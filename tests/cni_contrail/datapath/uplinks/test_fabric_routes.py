"""Decisions about routes to subnets that are reachable from outside, for any networks and routes of the node."""

import ipaddress
import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.fabric_routes import RefusedRoute, fabric_routes, subnets
from cni_contrail.datapath.uplink_addresses import overlap
from cni_contrail.link.plan import Address

ADDRESSES = st.sampled_from(["10.7.0.1", "10.7.0.65", "10.7.1.1", "10.8.0.1", "fd07::1", "fd07:0:0:1::1", "fd08::1"])
ALLOWED = ("10.0.0.0/8", "169.0.0.0/8", "fd00::/8", "fe80::/10")
LENGTHS = {4: [16, 24, 26], 6: [48, 64, 112]}


@st.composite
def gateways(draw: st.DrawFn) -> Address:
    address = draw(ADDRESSES)
    return Address(address, draw(st.sampled_from(LENGTHS[6 if ":" in address else 4])))


@st.composite
def networks_with_numbers(draw: st.DrawFn) -> list[Network]:
    lists = draw(st.lists(st.tuples(st.lists(gateways(), max_size=3), st.booleans()), max_size=5))
    return [Network(vni, 1450, tuple(each), (), forwarding=on) for vni, (each, on) in enumerate(lists, start=1)]


OTHERS = st.frozensets(
    st.sampled_from(["10.7.0.64/26", "10.0.0.0/8", "192.0.2.0/24", "fd08::/32", "fd07::9/128"]).map(
        ipaddress.ip_network
    ),
    max_size=3,
)


@given(networks_with_numbers(), OTHERS)
def test_no_address_has_two_routes_and_each_subnet_is_granted_or_refused(
    networks: list[Network], others: frozenset[ipaddress.IPv4Network | ipaddress.IPv6Network]
) -> None:
    routes = fabric_routes(networks, (), others, ALLOWED)
    granted = [(vni, ipaddress.ip_network(text)) for vni, texts in routes.granted.items() for text in texts]
    for (vni, one), (owner, other) in itertools.combinations(granted, 2):
        assert vni == owner or not overlap(one, other)
    assert not any(overlap(subnet, other) for _, subnet in granted for other in others)
    for network in networks:
        wanted = subnets(network) if network.forwarding else []
        refused = [each.subnet for each in routes.refused.get(network.vni, ())]
        assert sorted([*routes.granted.get(network.vni, ()), *refused]) == sorted(map(str, wanted))


@given(networks_with_numbers(), OTHERS, st.randoms())
def test_a_decision_stays_whatever_the_order(
    networks: list[Network],
    others: frozenset[ipaddress.IPv4Network | ipaddress.IPv6Network],
    random: Random,
) -> None:
    first = fabric_routes(networks, (), others, ALLOWED)
    existing = [(vni, subnet) for vni, granted in first.granted.items() for subnet in granted]
    shuffled = list(networks)
    random.shuffle(shuffled)
    assert fabric_routes(shuffled, existing, others, ALLOWED) == first


def test_a_network_keeps_a_route_against_one_with_a_lower_number() -> None:
    low, high = (Network(vni, 1450, (Address("10.7.0.1", 24),), (), forwarding=True) for vni in (1, 2))
    assert fabric_routes([low, high], (), (), ALLOWED).granted == {1: ("10.7.0.0/24",)}
    kept = fabric_routes([low, high], {(2, "10.7.0.0/24")}, (), ALLOWED)
    assert kept.granted == {2: ("10.7.0.0/24",)}
    assert kept.refused == {1: (RefusedRoute(1, "10.7.0.0/24", "network-route", "10.7.0.0/24", 2),)}


@pytest.mark.parametrize("gateway", [("169.254.169.1", 24), ("169.0.0.1", 8), ("fe80::1", 64), ("fd4b:9c62::1", 32)])
def test_link_local_addresses_and_those_of_uplinks_get_no_route(gateway: tuple[str, int]) -> None:
    network = Network(1, 1450, (Address(*gateway),), (), forwarding=True)
    routes = fabric_routes([network], (), (), ALLOWED)
    assert routes.granted == {}
    assert [each.reason for each in routes.refused[1]] == ["reserved"]


@pytest.mark.parametrize("gateway", [("8.8.8.1", 24), ("10.63.255.1", 16), ("10.0.0.1", 8), ("fd07::1", 64)])
def test_a_subnet_that_is_not_within_the_allowed_ones_gets_no_route(gateway: tuple[str, int]) -> None:
    network = Network(1, 1450, (Address(*gateway), Address("10.64.7.1", 24)), (), forwarding=True)
    routes = fabric_routes([network], (), (), ["10.64.0.0/12", "2001:db8::/32"])
    assert routes.granted == {1: ("10.64.7.0/24",)}
    (refused,) = routes.refused[1]
    assert (refused.reason, refused.subnet) == ("not-allowed", str(ipaddress.ip_network(gateway, strict=False)))


def test_without_allowed_subnets_there_are_no_routes() -> None:
    network = Network(1, 1450, (Address("10.64.7.1", 24), Address("fd07::1", 64)), (), forwarding=True)
    assert fabric_routes([network], (), (), ()).granted == {}


def test_the_widest_overlapping_route_is_named() -> None:
    network = Network(1, 1450, (Address("10.7.0.1", 24),), (), forwarding=True)
    others = [ipaddress.ip_network(each) for each in ("10.0.0.0/8", "10.7.0.64/26", "10.7.0.0/16")]
    assert fabric_routes([network], (), others, ALLOWED).refused == {
        1: (RefusedRoute(1, "10.7.0.0/24", "node-route", "10.0.0.0/8"),)
    }

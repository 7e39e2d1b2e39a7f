"""Decisions about routes to subnets that are reachable from outside, for any networks and routes of the node."""

import ipaddress
import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.fabric_routes import fabric_routes, subnets
from cni_contrail.datapath.uplink_addresses import overlap
from cni_contrail.link.plan import Address

ADDRESSES = st.sampled_from(["10.7.0.1", "10.7.0.65", "10.7.1.1", "10.8.0.1", "fd07::1", "fd07:0:0:1::1", "fd08::1"])
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
    routes = fabric_routes(networks, (), others)
    granted = [(vni, ipaddress.ip_network(text)) for vni, texts in routes.granted.items() for text in texts]
    for (vni, one), (owner, other) in itertools.combinations(granted, 2):
        assert vni == owner or not overlap(one, other)
    assert not any(overlap(subnet, other) for _, subnet in granted for other in others)
    for network in networks:
        wanted = subnets(network) if network.forwarding else []
        complete = len(routes.granted.get(network.vni, ())) == len(wanted)
        assert complete == (network.vni not in routes.refused)


@given(networks_with_numbers(), OTHERS, st.randoms())
def test_a_decision_stays_whatever_the_order(
    networks: list[Network],
    others: frozenset[ipaddress.IPv4Network | ipaddress.IPv6Network],
    random: Random,
) -> None:
    first = fabric_routes(networks, (), others)
    existing = [(vni, subnet) for vni, granted in first.granted.items() for subnet in granted]
    shuffled = list(networks)
    random.shuffle(shuffled)
    assert fabric_routes(shuffled, existing, others) == first


def test_a_network_keeps_a_route_against_one_with_a_lower_number() -> None:
    low, high = (Network(vni, 1450, (Address("10.7.0.1", 24),), (), forwarding=True) for vni in (1, 2))
    assert fabric_routes([low, high], (), ()).granted == {1: ("10.7.0.0/24",)}
    kept = fabric_routes([low, high], {(2, "10.7.0.0/24")}, ())
    assert kept.granted == {2: ("10.7.0.0/24",)}
    assert kept.refused == {1: "ip_fabric_forwarding: no route to 10.7.0.0/24: it overlaps 10.7.0.0/24 of network 2"}


@pytest.mark.parametrize("gateway", [("169.254.169.1", 24), ("169.0.0.1", 8), ("fe80::1", 64), ("fd4b:9c62::1", 32)])
def test_link_local_addresses_and_those_of_uplinks_get_no_route(gateway: tuple[str, int]) -> None:
    network = Network(1, 1450, (Address(*gateway),), (), forwarding=True)
    routes = fabric_routes([network], (), ())
    assert routes.granted == {}
    assert "which is never routed" in routes.refused[1]

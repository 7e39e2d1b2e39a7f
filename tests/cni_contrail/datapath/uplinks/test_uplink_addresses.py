"""Pairs of addresses of uplinks."""

import ipaddress

from cni_contrail.datapath.uplink_addresses import Pair, free_pair, pair_of
from cni_contrail.link.plan import Address


def test_both_ends_are_in_a_subnet_of_two_addresses() -> None:
    pair = Pair(17)
    assert (pair.node(4), pair.network(4)) == (Address("169.254.192.34", 31), Address("169.254.192.35", 31))
    assert (pair.node(6), pair.network(6)) == (
        Address("fd4b:9c62:7ea1:fab0::22", 127),
        Address("fd4b:9c62:7ea1:fab0::23", 127),
    )
    assert pair_of(pair.node(4)) == pair


def test_addresses_that_are_no_pair_of_ours_belong_to_none() -> None:
    others = (("169.254.192.34", 32), ("169.254.192.35", 31), ("10.0.0.0", 31), ("169.254.255.0", 31), ("fe80::1", 64))
    assert [pair_of(Address(*each)) for each in others] == [None] * 5


def test_every_network_gets_a_pair_until_none_is_left() -> None:
    used = {Pair(number) for number in range(8064)} - {Pair(3), Pair(8063)}
    for expected in (Pair(8063), Pair(3), None):
        pair = free_pair(16_128_004, used, ())
        assert pair == expected
        used |= set() if pair is None else {pair}
    assert not any(each.network(4).address.startswith("169.254.255.") for each in used)


def test_a_pair_within_a_route_of_the_node_is_left_out() -> None:
    whole_range = ipaddress.ip_network("169.254.0.0/16")
    near = ipaddress.ip_network("169.254.192.0/30")
    assert free_pair(0, (), [whole_range]) == Pair(0)
    assert free_pair(0, (), [whole_range, near]) == Pair(2)

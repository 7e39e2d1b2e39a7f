"""Order in which plans change tables of the kernel: what packets need is there before what leads to it, and goes last.

A packet follows a route to a neighbour, its MAC to a link, and there to a node. At each step of a plan all of that
exists for what the desired state has in common with what was found.
"""

import itertools
import socket

from hypothesis import given

from cni_contrail.datapath.block_entries import BlockEntries
from cni_contrail.datapath.block_entries import plan as plan_blocks
from cni_contrail.datapath.block_requests import block_requests
from cni_contrail.datapath.block_state import BlockState
from cni_contrail.datapath.bridge_ports import PortInfo
from cni_contrail.datapath.desired import RoutedPort
from cni_contrail.datapath.entries import Entries
from cni_contrail.datapath.filter_rules import Drops
from cni_contrail.datapath.network_requests import filter_requests, table_requests
from cni_contrail.datapath.network_state import NetworkState
from cni_contrail.datapath.plan import plan
from cni_contrail.datapath.routed_entries import RoutedEntries
from cni_contrail.datapath.routed_entries import entries_of as routed_entries_of
from cni_contrail.datapath.routed_plan import plan as plan_ports
from cni_contrail.datapath.routed_requests import port_requests
from cni_contrail.datapath.routed_state import FilterState, RoutedState
from cni_contrail.datapath.tunnel_messages import Tunnel, TunnelInfo
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address
from tests.cni_contrail.datapath.routed.test_routed_plan import LINKS as PORTS
from tests.cni_contrail.datapath.routed.test_routed_plan import ports as routed_ports
from tests.cni_contrail.datapath.routed.test_routed_plan import states as routed_states
from tests.cni_contrail.datapath.test_plan import entries
from tests.cni_contrail.datapath.tunnels.test_block_plan import entries as block_entries

LINKS = ("br0", "tap1", "tap2", "tap3", "tap4", "vx0", "vx6")
TUNNELS = ("contrail.0", "contrail.6")
SETLINK = 19
NEWADDR, DELADDR, NEWROUTE, DELROUTE, NEWNEIGH, DELNEIGH = 20, 21, 24, 25, 28, 29
BRIDGE = 7  # AF_BRIDGE
ORDER = (
    (SETLINK, False),
    (NEWADDR, False),
    (NEWNEIGH, True),
    (NEWNEIGH, False),
    (NEWROUTE, False),
    (DELROUTE, False),
    (DELNEIGH, False),
    (DELNEIGH, True),
    (DELADDR, False),
)
"""Kinds of messages, and whether they are about forwarding entries."""


def kinds(requests: list[NetlinkRequest]) -> list[int]:
    """The positions of the requests' kinds in ORDER."""
    return [ORDER.index((each.kind, each.kind in (NEWNEIGH, DELNEIGH) and each.body[0] == BRIDGE)) for each in requests]


def state_of(found: Entries) -> NetworkState:
    """A network that has these entries."""
    indexes = {name: index for index, name in enumerate(LINKS, start=2)}
    return NetworkState(
        None, frozenset(), frozenset(), frozenset(), {}, indexes, found,
        has_filter=True, other_tables=(), drops=Drops(0, 0), gone=frozenset(), links={},
    )  # fmt: skip


def block_state(found: BlockEntries) -> BlockState:
    """A node that has these entries of index 0."""
    port = PortInfo(0, has_settings=False, is_blocked=False)
    tunnels = {
        name: TunnelInfo(
            Tunnel(name, 1, "192.0.2.1", 4789, "0e:00:c0:00:02:01", 1450), index, is_up=True, is_learning=False,
            has_checksums=True, as_port=port, is_outside=False,
        )
        for index, name in enumerate(TUNNELS, start=7)
    }  # fmt: skip
    return BlockState(tunnels, found, frozenset())


def port_state(found: RoutedEntries) -> RoutedState:
    """A node whose ports have these entries."""
    indexes = {name: index for index, name in enumerate(PORTS, start=2)}
    no_filter = FilterState(0, table=None, elements={}, dropped=0, dropped_by_port={})
    return RoutedState(no_filter, indexes, frozenset(PORTS), frozenset(), found, frozenset(), {})


@given(desired=entries, found=entries)
def test_a_network_has_what_a_packet_needs_before_what_leads_to_it(desired: Entries, found: Entries) -> None:
    requests = kinds(list(table_requests(plan(desired, found), state_of(found))))
    assert requests == sorted(requests)


@given(desired=entries)
def test_a_network_that_is_right_has_no_request(desired: Entries) -> None:
    difference = plan(desired, desired)
    assert not list(table_requests(difference, state_of(desired)))
    assert not list(filter_requests(state_of(desired), difference))


def test_only_an_ipv6_gateway_whose_prefix_changes_goes_before_it_comes() -> None:
    found = Entries(frozenset({Address("fd07::1", 64), Address("10.7.0.1", 24)}), {}, {}, frozenset(), {}, {})
    wanted = found._replace(gateways=frozenset({Address("fd07::1", 48), Address("10.7.0.1", 16)}))
    requests = list(table_requests(plan(wanted, found), state_of(found)))
    families = [(each.kind, each.body[0]) for each in requests]
    assert families.index((DELADDR, socket.AF_INET6)) < families.index((NEWADDR, socket.AF_INET6))
    assert families.index((NEWADDR, socket.AF_INET)) < families.index((DELADDR, socket.AF_INET))


@given(desired=block_entries, found=block_entries)
def test_index_0_has_what_a_packet_needs_before_what_leads_to_it(desired: BlockEntries, found: BlockEntries) -> None:
    requests = kinds(list(block_requests(block_state(found), plan_blocks(desired, found))))
    assert requests == sorted(requests)


@given(desired=block_entries)
def test_index_0_that_is_right_has_no_request(desired: BlockEntries) -> None:
    assert not list(block_requests(block_state(desired), plan_blocks(desired, desired)))


@given(desired=block_entries, found=block_entries)
def test_no_block_that_stays_is_without_a_route_at_any_step(desired: BlockEntries, found: BlockEntries) -> None:
    staying = desired.ways.keys() & found.ways.keys()
    requests = list(block_requests(block_state(found), plan_blocks(desired, found)))
    removed = [each.what for each in requests if each.kind == DELROUTE]
    assert not [cidr for cidr, what in itertools.product(staying, removed) if what.endswith(cidr)]


@given(ports=routed_ports, found=routed_states)
def test_a_routed_port_has_what_a_packet_needs_before_what_leads_to_it(
    ports: tuple[RoutedPort, ...], found: RoutedEntries
) -> None:
    desired, _ = routed_entries_of(ports, frozenset(PORTS), frozenset())
    requests = kinds([request for _, request in port_requests(port_state(found), plan_ports(desired, found))])
    assert requests == sorted(requests)


@given(ports=routed_ports)
def test_a_routed_port_that_is_right_has_no_request(ports: tuple[RoutedPort, ...]) -> None:
    desired, _ = routed_entries_of(ports, frozenset(PORTS), frozenset())
    assert not list(port_requests(port_state(desired), plan_ports(desired, desired)))

"""Properties of plans of uplinks: any state becomes the desired one, and what stays is never interrupted."""

import ipaddress
import socket
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.nftables_messages import Rule
from cni_contrail.datapath.nftables_tables import TableState
from cni_contrail.datapath.routed_messages import desired_settings
from cni_contrail.datapath.uplink_addresses import Pair, choose_pair
from cni_contrail.datapath.uplink_messages import UplinkRoute
from cni_contrail.datapath.uplink_operations import NETWORK, NODE, Operation, Removal, Requests, Rules, Settings
from cni_contrail.datapath.uplink_plan import (
    SOLICITOR,
    DesiredUplink,
    UplinkState,
    plan_entries,
    plan_links,
    plan_pair,
    plan_removal,
)
from cni_contrail.datapath.uplink_rules import NETWORK_CHAINS, alias_of, network_rules, node_link
from cni_contrail.datapath.uplink_state import EndState
from cni_contrail.link.addresses import parse_address
from cni_contrail.link.errors import LinkError
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address
from cni_contrail.link.routes import parse_routes

VNI, MTU = 5, 1450
NEWADDR, DELADDR, NEWROUTE, DELROUTE, DELLINK, NEWLINK = 20, 21, 24, 25, 17, 16
EXCLUSIVE = 0x200
IPV4, IPV6 = "ipv4/ip_forward", "ipv6/conf/all/forwarding"
PAIR, OTHER_PAIR = Pair(5), Pair(9)
SUBNETS = ("10.7.0.0/24", "10.8.0.0/24", "fd07::/64")
RULES = network_rules(snat=True, subnets=SUBNETS)
NODE_INDEX, NETWORK_INDEX = 30, 3
gateways = {4: [PAIR.node(4).address, OTHER_PAIR.node(4).address], 6: [PAIR.node(6).address]}
node_addresses = [
    PAIR.node(4), OTHER_PAIR.node(4), PAIR.node(6), SOLICITOR,
    Address("10.99.0.1", 24), Address(PAIR.node(6).address, 64),
]  # fmt: skip
network_addresses = [PAIR.network(4), OTHER_PAIR.network(4), PAIR.network(6), Address("fe80::77", 64)]


def unique_texts(addresses: frozenset[Address]) -> bool:
    """Whether the kernel can have these addresses on one link: of IPv6 each once, whatever its prefix."""
    texts = [each.address for each in addresses if ":" in each.address]
    return len(texts) == len(set(texts))


def routes_of(
    destinations: Sequence[str], pairs: Sequence[Pair], *, to_node: bool
) -> some.SearchStrategy[frozenset[UplinkRoute]]:
    def gateway(destination: str, pair: Pair) -> str:
        version = 6 if ":" in destination else 4
        return (pair.node(version) if to_node else pair.network(version)).address

    by_destination = some.dictionaries(some.sampled_from(list(destinations)), some.sampled_from(list(pairs)))
    return by_destination.map(
        lambda found: frozenset(UplinkRoute(each, gateway(each, pair)) for each, pair in found.items())
    )


def link(name: str, index: int, alias: str = "", *, is_up: bool = True, mtu: int = MTU) -> LinkInfo:
    return LinkInfo(index, name, alias, 0, is_up=is_up, kind="veth", mac="00:00:5e:00:01:00", mtu=mtu,
                    peer_index=0, peer_netns_id=-1)  # fmt: skip


settings = some.sampled_from(
    [
        desired_settings(ipv6=True),
        desired_settings(ipv6=False),
        desired_settings(ipv6=True)._replace(mac="02:00:00:00:00:99"),
        desired_settings(ipv6=True)._replace(accept_ra=1),
    ]
)
mtus = some.sampled_from([MTU, 1300])
node_links = some.builds(
    link,
    some.sampled_from([node_link(VNI), "renamed"]),
    some.just(NODE_INDEX),
    some.sampled_from(["", alias_of(VNI)]),
    is_up=some.booleans(),
    mtu=mtus,
)
node_ends = some.builds(
    EndState,
    node_links,
    settings,
    some.frozensets(some.sampled_from(node_addresses)).filter(unique_texts),
    routes_of([*SUBNETS, "10.98.0.0/24"], [PAIR, OTHER_PAIR], to_node=False),
)
network_ends = some.builds(
    EndState,
    some.builds(
        link, some.just("up"), some.just(NETWORK_INDEX), is_up=some.booleans(), mtu=some.sampled_from([MTU, 1300])
    ),
    settings,
    some.frozensets(some.sampled_from(network_addresses)).filter(unique_texts),
    routes_of(["0.0.0.0/0", "::/0", "10.97.0.0/24"], [PAIR, OTHER_PAIR], to_node=True),
)
values = some.sampled_from(["0", "1"])
forwarding = some.fixed_dictionaries({IPV4: values, IPV6: values})
desired_uplinks = some.builds(
    DesiredUplink,
    vni=some.just(VNI),
    netns=some.just(0),
    mtu=some.just(MTU),
    versions=some.sampled_from([(4,), (4, 6)]),
    subnets=some.lists(some.sampled_from(SUBNETS), unique=True).map(tuple),
    rules=some.just(RULES),
)


class Kernel:
    """Both ends as a kernel has them, which refuses what a kernel refuses. `missed` is what was gone at some step."""

    def __init__(self, node: EndState, network: EndState, forwarding: dict[str, str]) -> None:
        self.ends = {NODE: node, NETWORK: network}
        self.forwarding = dict(forwarding)
        self._staying: dict[str, tuple[frozenset[Address], frozenset[str]]] = {}
        self.missed: list[object] = []

    def keep(self, place: str, addresses: frozenset[Address], destinations: frozenset[str]) -> None:
        """Lets these never be missing, where they are now."""
        end = self.ends[place]
        self._staying[place] = (
            addresses & end.addresses,
            destinations & {route.destination for route in end.routes},
        )

    def execute(self, operations: Sequence[Operation]) -> None:
        """Executes operations in their order."""
        for operation in operations:
            match operation:
                case Requests(place, requests):
                    for request in requests:
                        self.ends[place] = self._changed(self.ends[place], request)
                        self._look()
                case Settings(_, written):
                    self.forwarding |= written
                case _:
                    raise AssertionError(operation)

    def _changed(self, end: EndState, request: NetlinkRequest) -> EndState:
        if request.kind in (NEWADDR, DELADDR):
            return self._with_address(end, request)
        (route,) = parse_routes(request.body)
        assert route.gateway is not None
        assert route.ifindex == end.link.ifindex
        wanted = UplinkRoute(f"{_text(route.network)}/{route.length}", _text(route.gateway))
        same = {each for each in end.routes if each.destination == wanted.destination}
        if request.kind == DELROUTE:
            assert wanted in end.routes
            return end._replace(routes=end.routes - {wanted})
        assert not (same and request.flags & EXCLUSIVE), "File exists"
        networks = [ipaddress.ip_interface(f"{each.address}/{each.prefix_length}").network for each in end.addresses]
        gateway = ipaddress.ip_address(wanted.gateway)
        assert any(gateway in network for network in networks), "Nexthop has invalid gateway"
        return end._replace(routes=end.routes - same | {wanted})

    def _with_address(self, end: EndState, request: NetlinkRequest) -> EndState:
        found = parse_address(request.body)
        assert found.ifindex == end.link.ifindex
        address = Address(_text(found.local), found.prefix_length)
        if request.kind == DELADDR:
            assert address in end.addresses
            return end._replace(addresses=end.addresses - {address})
        left = end.addresses | {address}
        assert address not in end.addresses
        assert unique_texts(left), "File exists"
        return end._replace(addresses=left)

    def _look(self) -> None:
        for place, (addresses, destinations) in self._staying.items():
            end = self.ends[place]
            self.missed += addresses - end.addresses
            self.missed += destinations - {route.destination for route in end.routes}


def _text(address: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)


def wanted_addresses(desired: DesiredUplink, pair: Pair) -> tuple[frozenset[Address], frozenset[Address]]:
    """Addresses of the node's end and of the network's."""
    node = {pair.node(version) for version in desired.versions} | ({SOLICITOR} if 6 in desired.versions else set())
    return frozenset(node), frozenset(pair.network(version) for version in desired.versions)


def wanted_destinations(desired: DesiredUplink) -> tuple[frozenset[str], frozenset[str]]:
    """Destinations of routes on the node and in the network."""
    subnets = {each for each in desired.subnets if ":" not in each or 6 in desired.versions}
    return frozenset(subnets), frozenset({4: "0.0.0.0/0", 6: "::/0"}[version] for version in desired.versions)


@given(desired=desired_uplinks, node=node_ends, network=network_ends, settings=forwarding)
def test_any_entries_become_the_desired_ones_and_what_stays_is_there_at_each_step(
    desired: DesiredUplink, node: EndState, network: EndState, settings: dict[str, str]
) -> None:
    kernel = Kernel(node, network, settings)
    addresses, destinations = wanted_addresses(desired, PAIR), wanted_destinations(desired)
    kernel.keep(NODE, addresses[0], destinations[0])
    kernel.keep(NETWORK, addresses[1], destinations[1])
    kernel.execute(plan_entries(desired, node, network, settings, PAIR))
    assert kernel.missed == []
    left = kernel.ends
    assert left[NODE].addresses == addresses[0]
    assert {each for each in left[NETWORK].addresses if not each.address.startswith("fe80:")} == addresses[1]
    assert {each.destination for each in left[NODE].routes} == destinations[0]
    assert {each.destination for each in left[NETWORK].routes} == destinations[1]
    assert kernel.forwarding[IPV4] == "1"
    assert 6 not in desired.versions or kernel.forwarding[IPV6] == "1"
    assert plan_entries(desired, left[NODE], left[NETWORK], kernel.forwarding, PAIR) == []


@given(desired=desired_uplinks, node=node_ends, network=network_ends)
def test_the_network_forwards_before_the_node_leads_to_it_and_after_it_can_answer(
    desired: DesiredUplink, node: EndState, network: EndState
) -> None:
    bare, bare_network = (each._replace(addresses=frozenset(), routes=frozenset()) for each in (node, network))
    operations = plan_entries(desired, bare, bare_network, {IPV4: "0", IPV6: "0"}, PAIR)
    steps = [
        (operation.place, request.kind)
        for operation in operations
        if isinstance(operation, Requests)
        for request in operation.requests
    ]
    first_settings = next(number for number, each in enumerate(operations) if isinstance(each, Settings))
    before = [operation.place for operation in operations[:first_settings] if isinstance(operation, Requests)]
    assert before == [NETWORK, NETWORK, NODE]
    if (NODE, NEWROUTE) in steps:
        assert steps.index((NODE, NEWROUTE)) > max(
            number for number, (place, _) in enumerate(steps) if place == NETWORK
        )


@given(desired=desired_uplinks, node=node_ends, network=network_ends)
def test_links_that_are_right_have_no_operation(desired: DesiredUplink, node: EndState, network: EndState) -> None:
    right = desired_settings(ipv6=6 in desired.versions)
    node = node._replace(link=link(node_link(VNI), NODE_INDEX, alias_of(VNI)), settings=right)
    network = network._replace(link=link("up", NETWORK_INDEX), settings=right)
    assert plan_links(desired, node, network) == []


@given(desired=desired_uplinks, node=node_ends, network=network_ends)
def test_links_that_are_not_right_are_set_and_not_replaced(
    desired: DesiredUplink, node: EndState, network: EndState
) -> None:
    for operation in plan_links(desired, node, network):
        match operation:
            case Requests(_, requests):
                assert DELLINK not in {each.kind for each in requests}
            case Settings(place, written):
                end = node if place == NODE else network
                assert all(key.startswith(f"ipv6/conf/{end.link.name}/") for key in written)
            case _:
                raise AssertionError(operation)


whole = TableState(0, frozenset(NETWORK_CHAINS), tuple(Rule(each.chain, each.comment, 0) for each in RULES))
tables = some.sampled_from([None, whole, whole._replace(flags=1), whole._replace(rules=whole.rules[1:])])


@given(desired=desired_uplinks, node=node_ends, network=network_ends, table=tables)
def test_rules_come_before_links_and_a_pair_that_belongs_together_stays(
    desired: DesiredUplink, node: EndState, network: EndState, table: TableState | None
) -> None:
    found = UplinkState(node, network, is_pair=True, table=table, forwarding={})
    operations = plan_pair(desired, found)
    assert [isinstance(each, Rules) for each in operations[:1]] == ([table != whole] if operations else [])
    assert (table != whole) == any(isinstance(each, Rules) for each in operations)
    is_named = node.link.name == node_link(VNI)
    assert is_named == all(isinstance(each, Rules) for each in operations)


@given(
    desired=desired_uplinks,
    node=some.none() | node_ends,
    network=some.none() | network_ends,
    is_pair=some.booleans(),
)
def test_ends_that_are_not_an_uplink_are_removed_each_once_before_a_new_one_is_created(
    desired: DesiredUplink, node: EndState | None, network: EndState | None, *, is_pair: bool
) -> None:
    is_pair = is_pair and node is not None and network is not None
    operations = plan_pair(desired, UplinkState(node, network, is_pair=is_pair, table=whole, forwarding={}))
    if is_pair and node is not None and node.link.name == node_link(VNI):
        assert operations == []
        return
    *removals, creation = operations
    places = [each.place for each in removals if isinstance(each, Removal)]
    assert len(places) == len(removals)
    assert places == [NODE] * (node is not None) + [NETWORK] * (network is not None and not is_pair)
    assert isinstance(creation, Requests)
    assert [each.kind for each in creation.requests] == [NEWLINK]


def test_a_link_of_another_program_with_the_name_of_an_uplink_is_left() -> None:
    desired = DesiredUplink(VNI, 0, MTU, (4,), (), RULES)
    bridge = link(node_link(VNI), NODE_INDEX)._replace(kind="bridge")
    foreign = EndState(bridge, desired_settings(ipv6=False), frozenset(), frozenset())
    found = UplinkState(foreign, None, is_pair=False, table=whole, forwarding={})
    with pytest.raises(LinkError, match=r"ctup-5 belongs to another program"):
        plan_pair(desired, found)
    assert [type(each) for each in plan_removal(found, forwards=True)] == [Rules]


@given(node=node_ends, network=network_ends, table=tables, settings=forwarding, forwards=some.booleans())
def test_forwarding_ends_before_the_rules_go(
    node: EndState, network: EndState, table: TableState | None, settings: dict[str, str], *, forwards: bool
) -> None:
    operations = plan_removal(
        UplinkState(node, network, is_pair=True, table=table, forwarding=settings), forwards=forwards
    )
    order = [(Settings, Removal, Rules).index(type(each)) for each in operations]
    assert order == sorted(order)
    assert (0 in order) == (not forwards and "1" in settings.values())
    assert 1 in order
    assert (2 in order) == (table is not None)


pairs = some.frozensets(some.integers(0, 6).map(Pair))


@given(own=pairs, shared=pairs, used=pairs)
def test_an_uplink_keeps_the_addresses_that_both_ends_have(
    own: frozenset[Pair], shared: frozenset[Pair], used: frozenset[Pair]
) -> None:
    chosen = choose_pair(VNI, own, shared, used, ())
    assert chosen is not None
    assert chosen not in used
    if own - used:
        assert chosen in own
    if own & shared - used:
        assert chosen in shared

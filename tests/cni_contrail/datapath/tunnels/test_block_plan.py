"""Properties of plans of index 0 on other nodes, and what follows from the desired state."""

from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.block_entries import UNREACHABLE, BlockEntries, BlockPlan, Way, entries_of, plan
from cni_contrail.datapath.desired import RemoteBlock, RoutedNetwork, Underlay
from cni_contrail.datapath.entries import Behind
from cni_contrail.datapath.routed_entries import LinkAddress
from cni_contrail.datapath.tunnel_names import node_gateway, node_mac

links = some.sampled_from(["contrail.0", "contrail.6"])
macs = some.sampled_from([f"0e:00:00:00:00:0{digit}" for digit in range(4)])
addresses = some.sampled_from([f"10.0.0.{digit}" for digit in range(4)])
blocks = some.sampled_from([f"10.1.0.{number}/28" for number in range(0, 64, 16)])
ways = some.builds(Way, links, addresses, some.none() | addresses) | some.just(UNREACHABLE)
entries = some.builds(
    BlockEntries,
    addresses=some.frozensets(some.builds(LinkAddress, links, addresses)),
    destinations=some.dictionaries(some.builds(Behind, links, macs), addresses),
    neighbours=some.dictionaries(some.builds(LinkAddress, links, addresses), macs),
    ways=some.dictionaries(blocks, ways),
)
UNDERLAY = Underlay(("192.0.2.1", "2001:db8::1"), 4789, frozenset())


def applied(found: BlockEntries, changes: BlockPlan) -> BlockEntries:
    """What the kernel has after the changes."""
    destinations = {**found.destinations, **changes.set_destinations}
    neighbours = {**found.neighbours, **changes.set_neighbours}
    wanted = {**found.ways, **changes.set_ways}
    return BlockEntries(
        (found.addresses | changes.add_addresses) - changes.remove_addresses,
        {key: value for key, value in destinations.items() if key not in changes.remove_destinations},
        {key: value for key, value in neighbours.items() if key not in changes.remove_neighbours},
        {key: value for key, value in wanted.items() if key not in changes.remove_ways},
    )


@given(desired=entries, found=entries)
def test_any_state_becomes_the_desired_one(desired: BlockEntries, found: BlockEntries) -> None:
    changes = plan(desired, found)
    assert applied(found, changes) == desired
    assert plan(desired, applied(found, changes)).changes() == 0


@given(desired=entries, found=entries)
def test_without_removals_nothing_goes(desired: BlockEntries, found: BlockEntries) -> None:
    left = applied(found, plan(desired, found).without_removals())
    assert found.addresses <= left.addresses
    assert found.destinations.keys() <= left.destinations.keys()
    assert found.neighbours.keys() <= left.neighbours.keys()
    assert found.ways.keys() <= left.ways.keys()


@given(desired=entries, found=entries)
def test_what_both_have_is_not_touched(desired: BlockEntries, found: BlockEntries) -> None:
    changes = plan(desired, found)
    same = dict(desired.ways.items() & found.ways.items())
    assert not (changes.set_ways.keys() | changes.remove_ways.keys()) & same.keys()
    assert not (changes.add_addresses | changes.remove_addresses) & desired.addresses & found.addresses


def network(*remotes: tuple[str, str], own: tuple[str, ...] = ()) -> RoutedNetwork:
    return RoutedNetwork(1, 1450, ("10.1.0.0",), own, tuple(RemoteBlock(*each) for each in remotes))


def test_a_node_is_one_neighbour_and_one_destination_for_all_its_blocks() -> None:
    found = entries_of(network(("10.1.0.64/26", "192.0.2.2"), ("10.1.1.9/32", "192.0.2.2")), UNDERLAY, ())
    assert found.destinations == {Behind("contrail.0", node_mac("192.0.2.2")): "192.0.2.2"}
    assert found.neighbours == {LinkAddress("contrail.0", "192.0.2.2"): node_mac("192.0.2.2")}
    assert found.ways["10.1.0.64/26"] == Way("contrail.0", "192.0.2.2", "10.1.0.0")


def test_blocks_of_another_family_than_the_tunnel_have_a_link_local_gateway() -> None:
    found = entries_of(network(("fd00::40/122", "192.0.2.2"), ("10.1.0.64/26", "2001:db8::2")), UNDERLAY, ())
    assert found.ways["fd00::40/122"] == Way("contrail.0", node_gateway("192.0.2.2"), None)
    assert found.ways["10.1.0.64/26"] == Way("contrail.6", node_gateway("2001:db8::2"), "10.1.0.0")


def test_addresses_of_this_nodes_pods_stay_here_whatever_other_nodes_claim() -> None:
    found = entries_of(network(("10.1.0.9/32", "192.0.2.2"), own=("10.1.0.0/26",)), UNDERLAY, ("10.1.0.9/32",))
    assert found.ways == {"10.1.0.0/26": UNREACHABLE}

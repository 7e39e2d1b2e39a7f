"""Properties of plans: applied to any state they give the desired one, and nothing that stays is touched."""

from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.entries import Behind, Entries, Source
from cni_contrail.datapath.plan import Plan, plan
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link.plan import Address

macs = some.sampled_from([f"02:00:00:00:00:0{digit}" for digit in range(5)])
ipv4 = some.sampled_from([f"10.0.0.{digit}" for digit in range(6)])
link_names = some.sampled_from(["tap1", "tap2", "tap3", "tap4", "vx0", "vx6"])
nodes = some.sampled_from(["192.0.2.1", "192.0.2.2"])
behind = some.builds(Behind, some.sampled_from(["vx0", "vx6"]), macs)
blocks = some.sampled_from([f"10.1.0.{number}/28" for number in range(0, 64, 16)])
entries = some.builds(
    Entries,
    gateways=some.frozensets(some.builds(Address, ipv4, some.just(24)), max_size=3),
    forwarding=some.dictionaries(macs, link_names),
    neighbours=some.dictionaries(ipv4, macs),
    sources=some.frozensets(some.builds(Source, link_names, macs, ipv4), max_size=6),
    destinations=some.dictionaries(behind, nodes),
    routes=some.dictionaries(blocks, ipv4),
)


def applied(found: Entries, changes: Plan) -> Entries:
    """What the kernel has after the changes."""
    forwarding = {**found.forwarding, **changes.set_forwarding}
    neighbours = {**found.neighbours, **changes.set_neighbours}
    destinations = {**found.destinations, **changes.set_destinations}
    routes = {**found.routes, **changes.set_routes}
    for key in changes.remove_destinations:
        del destinations[key]
    for block in changes.remove_routes:
        del routes[block]
    for mac in changes.remove_forwarding:
        del forwarding[mac]
    for address in changes.remove_neighbours:
        del neighbours[address]
    return Entries(
        (found.gateways | changes.add_gateways) - changes.remove_gateways,
        forwarding,
        neighbours,
        (found.sources | changes.add_sources) - changes.remove_sources,
        destinations,
        routes,
    )


@given(desired=entries, found=entries)
def test_any_state_becomes_the_desired_one(desired: Entries, found: Entries) -> None:
    changes = plan(desired, found)
    assert applied(found, changes) == desired
    assert plan(desired, applied(found, changes)).is_empty()


@given(desired=entries, found=entries)
def test_what_both_have_is_not_touched(desired: Entries, found: Entries) -> None:
    changes = plan(desired, found)
    assert not (changes.add_sources | changes.remove_sources) & desired.sources & found.sources
    assert not (changes.add_gateways | changes.remove_gateways) & desired.gateways & found.gateways
    same_macs = dict(desired.forwarding.items() & found.forwarding.items())
    assert not (changes.set_forwarding.keys() | changes.remove_forwarding.keys()) & same_macs.keys()
    same_addresses = dict(desired.neighbours.items() & found.neighbours.items())
    assert not (changes.set_neighbours.keys() | changes.remove_neighbours) & same_addresses.keys()
    same_destinations = dict(desired.destinations.items() & found.destinations.items())
    assert not (changes.set_destinations.keys() | changes.remove_destinations) & same_destinations.keys()
    same_routes = dict(desired.routes.items() & found.routes.items())
    assert not (changes.set_routes.keys() | changes.remove_routes) & same_routes.keys()


@given(desired=entries, found=entries)
def test_nothing_desired_is_removed(desired: Entries, found: Entries) -> None:
    changes = plan(desired, found)
    assert not changes.remove_sources & desired.sources
    assert not changes.remove_forwarding.keys() & desired.forwarding.keys()
    assert not changes.remove_neighbours & desired.neighbours.keys()
    assert not changes.remove_destinations & desired.destinations.keys()
    assert not changes.remove_routes & desired.routes.keys()


@given(desired=entries, found=entries, unknown=some.frozensets(link_names))
def test_what_unknown_ports_have_stays_unless_it_is_desired_elsewhere(
    desired: Entries, found: Entries, unknown: frozenset[str]
) -> None:
    left = applied(found, plan(desired, found, unknown=unknown))
    assert {each for each in found.sources if each.link in unknown} <= left.sources
    for mac, link in found.forwarding.items():
        if link in unknown:
            assert left.forwarding[mac] == desired.forwarding.get(mac, link)


@given(desired=entries, found=entries)
def test_what_leads_to_other_nodes_stays_while_tunnels_are_unknown(desired: Entries, found: Entries) -> None:
    left = applied(found, plan(desired, found, unknown=frozenset(BRIDGED)))
    assert found.destinations.keys() <= left.destinations.keys()
    assert found.routes.keys() <= left.routes.keys()
    for mac, link in found.forwarding.items():
        if link in BRIDGED:
            assert left.forwarding[mac] == desired.forwarding.get(mac, link)
    for address, mac in found.neighbours.items():
        if found.forwarding.get(mac) in BRIDGED:
            assert address in left.neighbours

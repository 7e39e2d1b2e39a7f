"""Properties of plans of routed ports: any state becomes the desired one, and nothing that stays is touched."""

from hypothesis import given
from hypothesis import strategies as some

from cni_contrail.datapath.desired import RoutedPort
from cni_contrail.datapath.routed_entries import LinkAddress, RoutedEntries, entries_of
from cni_contrail.datapath.routed_messages import desired_settings
from cni_contrail.datapath.routed_plan import RoutedPlan, plan

LINKS = ["tap1", "tap2", "tap3", "tap4"]
links = some.sampled_from(LINKS)
addresses = some.sampled_from([f"10.0.0.{digit}" for digit in range(4)] + [f"fd00::{digit}" for digit in range(2)])
macs = some.sampled_from([f"02:00:00:00:00:0{digit}" for digit in range(3)])
networks = some.sampled_from([0, 5, 6])
link_addresses = some.builds(LinkAddress, links, addresses)
settings = some.sampled_from(
    [
        desired_settings(ipv6=True),
        desired_settings(ipv6=False),
        desired_settings(ipv6=True, group=5),
        desired_settings(ipv6=True)._replace(mac="02:00:00:00:00:99", forwarding=0),
    ]
)
states = some.builds(
    RoutedEntries,
    ports=some.frozensets(links),
    sources=some.frozensets(link_addresses, max_size=6),
    settings=some.fixed_dictionaries(dict.fromkeys(LINKS, settings)),
    gateways=some.frozensets(link_addresses, max_size=4),
    neighbours=some.dictionaries(link_addresses, macs, max_size=6),
    routes=some.dictionaries(addresses, links),
    networks=some.frozensets(networks),
)
ports = some.lists(
    some.builds(
        RoutedPort,
        link=links,
        mac=macs,
        addresses=some.lists(addresses, unique=True, max_size=3).map(tuple),
        gateways=some.just(("10.0.0.254", "fd00::254")),
        network=networks,
    ),
    unique_by=lambda port: port.link,
).map(tuple)
taken = some.frozensets(addresses, max_size=2)


def applied(found: RoutedEntries, changes: RoutedPlan) -> RoutedEntries:
    """What the kernel has after the changes."""
    kept = {key: mac for key, mac in found.neighbours.items() if key.link not in changes.set_links}
    neighbours = {**kept, **changes.set_neighbours}
    for key in changes.remove_neighbours:
        del neighbours[key]
    assert not changes.add_routes.keys() & found.routes.keys()
    assert changes.move_routes.keys() <= found.routes.keys()
    routes = {**found.routes, **changes.add_routes, **changes.move_routes}
    for link, address in changes.remove_routes:
        assert routes[address] == link
        del routes[address]
    return RoutedEntries(
        (found.ports | changes.add_ports) - changes.remove_ports,
        (found.sources | changes.add_sources) - changes.remove_sources,
        {**found.settings, **changes.set_links},
        (found.gateways | changes.add_gateways) - changes.remove_gateways,
        neighbours,
        routes,
        found.networks | changes.add_networks,
    )


@given(ports=ports, taken=taken, found=states)
def test_any_state_becomes_the_desired_one(
    ports: tuple[RoutedPort, ...], taken: frozenset[str], found: RoutedEntries
) -> None:
    desired, _ = entries_of(ports, frozenset(LINKS), taken)
    left = applied(found, plan(desired, found))
    assert left._replace(settings={}, networks=frozenset()) == desired._replace(settings={}, networks=frozenset())
    assert desired.networks <= left.networks
    assert desired.settings.items() <= left.settings.items()
    assert plan(desired, left).changes() == 0


@given(ports=ports, found=states, unknown=some.frozensets(links))
def test_a_second_plan_is_empty_whatever_ports_are_unknown(
    ports: tuple[RoutedPort, ...], found: RoutedEntries, unknown: frozenset[str]
) -> None:
    desired, _ = entries_of(ports, frozenset(LINKS), frozenset())
    unknown -= desired.ports
    left = applied(found, plan(desired, found, unknown=unknown))
    assert plan(desired, left, unknown=unknown).changes() == 0


@given(ports=ports, found=states)
def test_what_both_have_is_not_touched(ports: tuple[RoutedPort, ...], found: RoutedEntries) -> None:
    desired, _ = entries_of(ports, frozenset(LINKS), frozenset())
    changes = plan(desired, found)
    assert not (changes.add_ports | changes.remove_ports) & desired.ports & found.ports
    assert not (changes.add_sources | changes.remove_sources) & desired.sources & found.sources
    assert not (changes.add_gateways | changes.remove_gateways) & desired.gateways & found.gateways
    same_routes = dict(desired.routes.items() & found.routes.items())
    assert not (changes.add_routes.keys() | changes.move_routes.keys()) & same_routes.keys()
    assert not {each.address for each in changes.remove_routes} & same_routes.keys()
    same_neighbours = {key for key, _ in desired.neighbours.items() & found.neighbours.items()}
    same_neighbours = {key for key in same_neighbours if key.link not in changes.set_links}
    assert not (changes.set_neighbours.keys() | changes.remove_neighbours) & same_neighbours


@given(ports=ports, found=states, unknown=some.frozensets(links))
def test_what_unknown_ports_have_stays_unless_it_is_desired_elsewhere(
    ports: tuple[RoutedPort, ...], found: RoutedEntries, unknown: frozenset[str]
) -> None:
    desired, _ = entries_of(ports, frozenset(LINKS), frozenset())
    unknown -= desired.ports
    left = applied(found, plan(desired, found, unknown=unknown))
    assert found.ports & unknown <= left.ports
    assert {each for each in found.gateways if each.link in unknown} <= left.gateways
    for source in found.sources:
        if source.link in unknown:
            assert (source in left.sources) == (source.address not in desired.routes)


@given(ports=ports, taken=taken)
def test_no_address_is_accepted_from_two_ports_or_from_a_port_without_its_route(
    ports: tuple[RoutedPort, ...], taken: frozenset[str]
) -> None:
    desired, refused = entries_of(ports, frozenset(LINKS), taken)
    for link, address in desired.sources:
        assert address.startswith("fe80:") or desired.routes[address] == link
    assert not desired.routes.keys() & taken
    for port in ports:
        for address in port.addresses:
            assert (desired.routes.get(address) == port.link) != (LinkAddress(port.link, address) in refused)

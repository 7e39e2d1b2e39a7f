"""All interfaces of a pod in one call: ordered as their plans, beside existing links, without conflicts."""

from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import address_texts, defaults, link, routes
from tests.support.netns import Netns


def on_one_subnet(position: int) -> InterfacePlan:
    return bare_plan(
        position,
        addresses=(Address(f"10.0.0.{10 + position}", 24), Address(f"fd00::{10 + position}", 64)),
        routes=(
            Route("10.100.0.0/16", "10.0.0.1"),
            Route("192.0.2.0/24", None),
            Route("2001:db8::/32", "fd00::1"),
            Route("2001:db9::/32", None),
        ),
    )


def test_the_links_of_the_sandbox_are_in_the_order_of_the_plans(make: Make, node: Netns, sandbox: Netns) -> None:
    make(*(interface_plan(position) for position in (2, 0, 3, 1)))
    assert sandbox.links() == ["eth2", "eth0", "eth3", "eth1"]
    assert node.links() == ["tapplan2", "tapplan0", "tapplan3", "tapplan1"]


def test_each_interface_has_its_own_addresses(make: Make, sandbox: Netns) -> None:
    make(*(interface_plan(position) for position in range(1, 5)))
    for position in range(1, 5):
        assert address_texts(sandbox, f"eth{position}") == [f"10.{position}.0.5/24", f"fd00:{position}::5/64"]


def test_a_second_call_adds_to_the_same_sandbox(make: Make, sandbox: Netns) -> None:
    make(interface_plan(0))
    make(interface_plan(1))
    assert sandbox.links() == ["eth0", "eth1"]
    assert [route["dst"] for route in routes(sandbox, version=4)] == ["default", "10.100.0.0/16", "10.101.0.0/16"]


def test_four_interfaces_on_one_subnet_all_get_their_addresses_and_routes(make: Make, sandbox: Netns) -> None:
    make(*(on_one_subnet(position) for position in range(4)))
    for version in (4, 6):
        devices = [route["dev"] for route in routes(sandbox, version=version)]
        assert sorted(devices) == sorted([f"eth{position}" for position in range(4)] * 2)


def test_of_equal_routes_that_of_the_first_interface_takes_precedence(make: Make, sandbox: Netns) -> None:
    make(*(on_one_subnet(position) for position in range(4)))
    for destination in ("10.100.7.7", "192.0.2.7", "2001:db8::7", "2001:db9::7"):
        assert " dev eth0 " in sandbox.ip("route", "get", destination), destination


def test_equal_ipv6_routes_do_not_become_one_multipath_route(make: Make, sandbox: Netns) -> None:
    make(*(on_one_subnet(position) for position in range(4)))
    found = routes(sandbox, version=6)
    assert len(found) == 8
    assert not any("nexthops" in route for route in found)


def test_of_two_unrequested_default_routes_the_first_is_added(make: Make, sandbox: Netns) -> None:
    wanted = (DefaultRoute("10.1.0.1", asked=False), DefaultRoute("fd00:1::1", asked=False))
    make(interface_plan(0), interface_plan(1, defaults=wanted))
    for version in (4, 6):
        assert [route["dev"] for route in defaults(sandbox, version=version)] == ["eth0"]


def test_a_pod_may_have_the_maximum_of_interfaces_and_many_routes(make: Make, sandbox: Netns) -> None:
    """More messages than fit into one datagram."""
    plans = [
        bare_plan(
            position,
            addresses=(Address(f"10.{position}.0.5", 24),),
            routes=tuple(Route(f"172.16.{number}.0/24", f"10.{position}.0.1") for number in range(50)),
        )
        for position in range(15)
    ]
    make(*plans)
    assert len(routes(sandbox, version=4)) == 15 * 50
    assert link(sandbox, "eth14")["operstate"] == "UP"

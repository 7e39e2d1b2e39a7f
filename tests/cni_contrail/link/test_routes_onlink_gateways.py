"""Gateways outside the subnet of their interface, as with single addresses and point-to-point links."""

import pytest

from cni_contrail.link.errors import KernelError
from cni_contrail.link.plan import Address, DefaultRoute, Route, SourceRouting
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan
from tests.support.kernel_state import defaults, routes
from tests.support.netns import Netns


def test_a_gateway_outside_the_subnet_is_onlink(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.0.0.5", 32),), defaults=(DefaultRoute("169.254.1.1", asked=False),)))
    (default,) = defaults(sandbox, version=4)
    assert (default["gateway"], default["flags"]) == ("169.254.1.1", ["onlink"])


def test_an_ipv6_gateway_outside_the_subnet_is_onlink(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("fd00::5", 128),), defaults=(DefaultRoute("fd99::1", asked=False),)))
    (default,) = defaults(sandbox, version=6)
    assert (default["gateway"], default["flags"]) == ("fd99::1", ["onlink"])


def test_a_route_gateway_outside_the_subnet_is_onlink(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.0.0.5", 32),), routes=(Route("10.100.0.0/16", "10.0.0.1"),)))
    (route,) = routes(sandbox, version=4)
    assert (route["dst"], route["gateway"], route["flags"]) == ("10.100.0.0/16", "10.0.0.1", ["onlink"])


def test_a_gateway_in_the_subnet_is_not_onlink(make: Make, sandbox: Netns) -> None:
    make(
        bare_plan(
            addresses=(Address("10.0.0.5", 24), Address("fd00::5", 64)),
            routes=(Route("10.100.0.0/16", "10.0.0.1"), Route("2001:db8::/32", "fd00::1")),
        )
    )
    assert [route["flags"] for version in (4, 6) for route in routes(sandbox, version=version)] == [[], []]


def test_an_ipv6_link_local_gateway_is_not_onlink(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("fd00::5", 128),), defaults=(DefaultRoute("fe80::1", asked=False),)))
    (default,) = defaults(sandbox, version=6)
    assert (default["gateway"], default["flags"]) == ("fe80::1", [])


def test_an_ipv4_route_may_have_an_ipv6_gateway(make: Make, sandbox: Netns) -> None:
    make(
        bare_plan(
            addresses=(Address("10.0.0.5", 32), Address("fd00::5", 64)), routes=(Route("10.100.0.0/16", "fd00::1"),)
        )
    )
    (route,) = routes(sandbox, version=4)
    assert route["via"] == {"family": "inet6", "host": "fd00::1"}


def test_interfaces_with_single_addresses_may_share_a_gateway(make: Make, sandbox: Netns) -> None:
    make(
        *(
            bare_plan(
                position,
                addresses=(Address(f"10.0.0.{position + 5}", 32), Address(f"fd00::{position + 5}", 128)),
                routes=(Route(f"10.{position}.0.0/16", "10.0.0.1"), Route(f"fd{position}::/32", "fd00::1")),
            )
            for position in range(1, 4)
        )
    )
    for version in (4, 6):
        assert [route["dev"] for route in routes(sandbox, version=version)] == ["eth1", "eth2", "eth3"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_gateway_may_be_reached_by_a_route_that_several_interfaces_have(
    make: Make, sandbox: Netns, count: int
) -> None:
    """For an IPv6 gateway that is onlink, the kernel looks up the first interface, and rejects the others."""
    own = (
        Route("10.99.0.0/24", None),
        Route("10.100.0.0/16", "10.99.0.1"),
        Route("fd99::/64", None),
        Route("fd98::/32", "fd99::1"),
    )
    for position in range(count):
        v4, v6 = f"10.0.0.{position + 5}", f"fd00::{position + 5}"
        make(
            bare_plan(
                position,
                addresses=(Address(v4, 24, position), Address(v6, 64, 256 + position)),
                routes=own,
                source_routing=(
                    SourceRouting(v4, 24, None, 1000 + position),
                    SourceRouting(v6, 64, None, 1000 + position),
                ),
            )
        )
    for version in (4, 6):
        found = [route for route in routes(sandbox, version=version) if "gateway" in route]
        assert [(route["dev"], route["flags"]) for route in found] == [(f"eth{each}", []) for each in range(count)]


def test_a_gateway_that_only_a_later_route_would_reach_is_onlink(make: Make, sandbox: Netns) -> None:
    make(
        bare_plan(addresses=(Address("fd00::5", 64),), routes=(Route("fd98::/32", "fd99::1"), Route("fd99::/64", None)))
    )
    [route] = [route for route in routes(sandbox, version=6) if "gateway" in route]
    assert route["flags"] == ["onlink"]


def test_a_broadcast_gateway_is_rejected_with_the_kernels_explanation(make: Make, sandbox: Netns) -> None:
    with pytest.raises(KernelError, match=r"^eth0: add default route via 10\.0\.0\.255: .*Nexthop has invalid gateway"):
        make(bare_plan(addresses=(Address("10.0.0.5", 24),), defaults=(DefaultRoute("10.0.0.255", asked=False),)))
    assert sandbox.links() == []

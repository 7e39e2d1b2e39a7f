"""Property: any valid plans are created exactly, and nothing is left after their removal."""

import ipaddress
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from cni_contrail.link.check import check_interfaces
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route
from cni_contrail.link.remove import HostLink, remove_links
from tests.support.interface_plans import interface_plan
from tests.support.kernel_state import addresses, everything, link
from tests.support.netns import Netns

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

unicast_macs = some.binary(min_size=5, max_size=5).map(lambda rest: "02:" + rest.hex(":"))


def subnets(position: int) -> some.SearchStrategy[Network]:
    """Networks that only the interface at this position has, so that no address is used twice."""
    ipv4 = some.integers(17, 32).map(lambda length: ipaddress.ip_network((f"10.{position}.128.0", length)))
    ipv6 = some.integers(33, 128).map(lambda length: ipaddress.ip_network((f"fd00:{position}::", length)))
    return ipv4 | ipv6


@some.composite
def given_addresses(draw: some.DrawFn, position: int) -> tuple[Address, ...]:
    chosen = draw(
        some.lists(subnets(position), max_size=4, unique_by=lambda subnet: (subnet.version, subnet.prefixlen))
    )
    found: dict[Any, Address] = {}
    for subnet in chosen:
        hosts = subnet.num_addresses - 1
        offset = draw(some.integers(1, hosts - 1)) if hosts > 2 else draw(some.integers(0, hosts))
        ip = subnet[offset]
        found.setdefault(ip, Address(str(ip), subnet.prefixlen))
    return tuple(found.values())


def gateways(version: int, own: tuple[Address, ...]) -> some.SearchStrategy[str]:
    """Gateways of the family: outside all subnets, and (IPv6) link-local."""
    if version == 4:
        return some.ip_addresses(network="172.16.0.0/16").map(str)
    return (some.ip_addresses(network="fdff::/64") | some.ip_addresses(network="fe80::/64")).map(str)


@some.composite
def given_routes(draw: some.DrawFn, own: tuple[Address, ...]) -> tuple[Route, ...]:
    routes = {}
    for base in draw(some.lists(some.sampled_from(["100.64.0.0", "192.168.0.0", "2001:db8::"]), max_size=4)):
        version = 6 if ":" in base else 4
        if version not in versions(own):
            continue
        length = draw(some.integers(16, 32) if version == 4 else some.integers(32, 128))
        gateway = draw(some.none() | gateways(version, own))
        routes[base, length] = Route(f"{base}/{length}", gateway)
    return tuple(routes.values())


def versions(own: tuple[Address, ...]) -> set[int]:
    return {ipaddress.ip_address(each.address).version for each in own}


@some.composite
def plans(draw: some.DrawFn) -> list[InterfacePlan]:
    made = []
    for position in range(draw(some.integers(1, 4))):
        own = draw(given_addresses(position))
        wanted = [version for version in sorted(versions(own)) if draw(some.booleans())]
        made.append(
            interface_plan(
                position,
                mac=draw(unicast_macs),
                mtu=draw(some.integers(1280, 65535)),
                addresses=own,
                routes=draw(given_routes(own)),
                defaults=tuple(DefaultRoute(draw(gateways(version, own)), asked=False) for version in wanted),
            )
        )
    return made


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans())
def test_any_plan_is_created_exactly_and_removed_completely(
    node: Netns, sandbox: Netns, netns_fd: int, wanted: list[InterfacePlan]
) -> None:
    before = everything(node), everything(sandbox)
    with node.inside():
        make_interfaces(netns_fd, wanted)
        try:
            assert [check_interfaces(netns_fd, [plan]) for plan in wanted] == [[]] * len(wanted)
            assert [sandbox_end(sandbox, plan) for plan in wanted] == [sorted_form(plan) for plan in wanted]
        finally:
            assert remove_links([HostLink(plan.host_name, plan.alias) for plan in wanted]) == []
    assert (everything(node), everything(sandbox)) == before


def sandbox_end(sandbox: Netns, plan: InterfacePlan) -> tuple[str, int, list[Address]]:
    found = link(sandbox, plan.name)
    own = [Address(each["local"], each["prefixlen"]) for each in addresses(sandbox, plan.name)]
    return found["address"], found["mtu"], sorted(own)


def sorted_form(plan: InterfacePlan) -> tuple[str, int, list[Address]]:
    return plan.mac, plan.mtu, sorted(plan.addresses)

"""Families and prefix lengths: IPv4, IPv6, both; networks, point-to-point links and single addresses."""

import socket

import pytest

from cni_contrail.link.plan import Address, DefaultRoute, Route
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import address_texts, addresses, defaults, link_local, read_sysctl, routes, write_sysctl
from tests.support.netns import Netns


def test_an_ipv4_subnet_has_a_broadcast_address(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.7.3.9", 20),)))
    (found,) = addresses(sandbox, "eth0")
    assert found["broadcast"] == "10.7.15.255"


@pytest.mark.parametrize("length", [31, 32])
def test_a_slash_31_and_a_single_address_have_no_broadcast_address(make: Make, sandbox: Netns, length: int) -> None:
    make(bare_plan(addresses=(Address("10.7.3.8", length),)))
    (found,) = addresses(sandbox, "eth0")
    assert (found["local"], found["prefixlen"], found.get("broadcast")) == ("10.7.3.8", length, None)


def test_the_other_address_of_a_slash_31_can_be_the_gateway(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.7.3.8", 31),), defaults=(DefaultRoute("10.7.3.9", asked=False),)))
    (default,) = defaults(sandbox, version=4)
    assert (default["gateway"], default["flags"]) == ("10.7.3.9", [])


def test_an_ipv6_address_is_usable_at_once(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("fd00::5", 64),)))
    with sandbox.inside(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        probe.bind(("fd00::5", 0))  # a tentative one cannot be bound
    (found,) = addresses(sandbox, "eth0")
    assert found["nodad"] is True
    assert "tentative" not in found


def test_the_route_to_the_subnet_of_an_address_can_have_a_metric(make: Make, sandbox: Netns) -> None:
    """Otherwise the interface that came up last would carry the traffic to a shared subnet."""
    make(
        bare_plan(0, addresses=(Address("10.7.3.8", 24), Address("fd00::8", 64))),
        bare_plan(1, addresses=(Address("10.7.3.9", 24, 1), Address("fd00::9", 64, 257))),
    )
    metrics = {
        version: [(route["dev"], route.get("metric")) for route in routes(sandbox, version=version, protocol="kernel")]
        for version in (4, 6)
    }
    assert metrics[4] == [("eth0", None), ("eth1", 1)]
    assert [found for found in metrics[6] if found[1] in (256, 257)][:2] == [("eth0", 256), ("eth1", 257)]
    sandbox.ip("link", "set", "eth0", "down")
    sandbox.ip("link", "set", "eth0", "up")
    assert "dev eth0" in sandbox.ip("route", "get", "10.7.3.1")


def test_ipv6_only_works(make: Make, sandbox: Netns) -> None:
    make(
        bare_plan(
            addresses=(Address("fd00::5", 64),),
            routes=(Route("2001:db8::/32", "fd00::1"),),
            defaults=(DefaultRoute("fd00::1", asked=False),),
        )
    )
    assert address_texts(sandbox, "eth0") == ["fd00::5/64"]
    assert [route["gateway"] for route in defaults(sandbox, version=6)] == ["fd00::1"]
    assert defaults(sandbox, version=4) == []


def test_ipv4_only_leaves_ipv6_disabled_in_the_sandbox(make: Make, sandbox: Netns) -> None:
    for which in ("all", "default"):
        write_sysctl(sandbox, f"net/ipv6/conf/{which}/disable_ipv6", "1")
    make(bare_plan(addresses=(Address("10.0.0.5", 24),)))
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24"]
    assert read_sysctl(sandbox, "net/ipv6/conf/eth0/disable_ipv6") == "1"
    assert link_local(sandbox, "eth0") == []


def test_ipv6_works_where_the_runtime_disabled_it_in_the_sandbox(make: Make, sandbox: Netns) -> None:
    for which in ("all", "default"):
        write_sysctl(sandbox, f"net/ipv6/conf/{which}/disable_ipv6", "1")
    make(interface_plan())
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "fd00::5/64"]
    assert [route["dev"] for route in defaults(sandbox, version=6)] == ["eth0"]
    assert len(link_local(sandbox, "eth0")) == 1


def reaches_itself(sandbox: Netns, address: str) -> bool:
    with sandbox.inside(), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as server:
        server.settimeout(0.5)
        server.bind((address, 0))
        server.sendto(b"to myself", server.getsockname())
        try:
            return server.recv(100) == b"to myself"
        except TimeoutError:
            return False


def test_a_pod_reaches_its_own_ipv6_address_where_the_runtime_disabled_ipv6(make: Make, sandbox: Netns) -> None:
    for which in ("all", "default"):
        write_sysctl(sandbox, f"net/ipv6/conf/{which}/disable_ipv6", "1")
    make(interface_plan())
    assert reaches_itself(sandbox, "fd00::5")


def test_packets_to_ipv6_addresses_are_received_once_the_call_returns(make: Make, sandbox: Netns) -> None:
    """A kernel worker adds the local route some time after the kernel has accepted the address."""
    positions = range(1, 16)
    make(*(interface_plan(position) for position in positions))
    assert [position for position in positions if not reaches_itself(sandbox, f"fd00:{position}::5")] == []


def test_several_addresses_of_one_family_keep_their_order(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.0.0.5", 24), Address("10.0.0.4", 24), Address("10.9.0.1", 32))))
    assert address_texts(sandbox, "eth0") == ["10.0.0.5/24", "10.9.0.1/32", "10.0.0.4/24"], (
        "secondaries are listed last"
    )


def test_an_address_may_have_any_text_form(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("FD00:0:0::0005", 64),)))
    assert address_texts(sandbox, "eth0") == ["fd00::5/64"]

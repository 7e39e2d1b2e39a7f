"""Two interfaces in one subnet: each answers for its own addresses only, and traffic leaves by the one that has it."""

import json
import socket
from typing import Any

import pytest

from cni_contrail.link.check import check_interfaces
from cni_contrail.link.errors import KernelError
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route, SourceRouting
from cni_contrail.link.source_routing import remove_rules
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan
from tests.support.kernel_state import everything, read_sysctl, write_sysctl
from tests.support.netns import Netns


def plan(position: int, **changes: Any) -> InterfacePlan:
    """One of several interfaces in 10.0.0.0/24 and fd00::/64."""
    v4, v6 = f"10.0.0.{position + 5}", f"fd00::{position + 5}"
    return bare_plan(
        position,
        addresses=(Address(v4, 24, position), Address(v6, 64, 256 + position)),
        routes=(Route("10.100.0.0/16", "10.0.0.9"),),
        source_routing=(
            SourceRouting(v4, 24, "10.0.0.1", 1000 + position),
            SourceRouting(v6, 64, "fd00::1", 1000 + position),
        ),
        **changes,
    )


PLANS = (plan(0, defaults=(DefaultRoute("10.0.0.1", asked=False), DefaultRoute("fd00::1", asked=False))), plan(1))


def rules(sandbox: Netns) -> list[str]:
    """The rules that look up a table other than the kernel's."""
    lines = [*sandbox.ip("rule").splitlines(), *sandbox.ip("-6", "rule").splitlines()]
    return sorted(line for line in lines if line.split()[-1] not in ("local", "main", "default"))


def interface_for(sandbox: Netns, destination: str, source: str) -> tuple[str, str | None]:
    """The interface that the kernel chooses, and the gateway."""
    [route] = json.loads(sandbox.ip("-j", "route", "get", destination, "from", source))
    return route["dev"], route.get("gateway")


@pytest.mark.parametrize("position", [0, 1])
def test_traffic_leaves_by_the_interface_that_has_the_address(make: Make, sandbox: Netns, position: int) -> None:
    make(*PLANS)
    v4, v6, name = f"10.0.0.{position + 5}", f"fd00::{position + 5}", f"eth{position}"
    assert interface_for(sandbox, "10.0.0.77", v4) == (name, None)
    assert interface_for(sandbox, "198.51.100.1", v4) == (name, "10.0.0.1")
    assert interface_for(sandbox, "10.100.1.1", v4) == (name, "10.0.0.9"), "the interface's own route"
    assert interface_for(sandbox, "fd00::77", v6) == (name, None)
    assert interface_for(sandbox, "2001:db8::1", v6) == (name, "fd00::1")


@pytest.mark.parametrize("name", ["eth0", "eth1"])
def test_settings_of_an_interface_that_shares_a_subnet(make: Make, sandbox: Netns, name: str) -> None:
    make(*PLANS)
    settings = {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "2"}
    assert {key: read_sysctl(sandbox, f"net/ipv4/conf/{name}/{key}") for key in settings} == settings


@pytest.mark.parametrize(
    ("setting", "value", "wanted"), [("arp_ignore", "0", 1), ("arp_announce", "0", 2), ("rp_filter", "1", 2)]
)
def test_check_names_a_setting_that_was_changed(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int, setting: str, value: str, wanted: int
) -> None:
    make(*PLANS)
    write_sysctl(sandbox, f"net/ipv4/conf/eth1/{setting}", value)
    with node.inside():
        assert check_interfaces(netns_fd, PLANS) == [f"eth1 has {setting} {value} instead of {wanted}."]


def test_an_interface_answers_arp_requests_for_its_own_address_only(make: Make, node: Netns) -> None:
    make(*PLANS)
    assert answered(node, "tapplan0", ["10.0.0.6", "10.0.0.5"]) == ["10.0.0.5"]
    assert answered(node, "tapplan1", ["10.0.0.5", "10.0.0.6"]) == ["10.0.0.6"]


def answered(node: Netns, host_end: str, asked: list[str]) -> list[str]:
    """The addresses of which an interface answers requests, up to the last one, which it has."""
    found: list[str] = []
    with node.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806)) as wire:
        wire.bind((host_end, 0x0806))
        wire.settimeout(5)
        for address in asked:
            wire.send(arp_request(address))
        while asked[-1] not in found:
            frame = wire.recv(100)
            if frame[20:22] == b"\0\2":
                found.append(socket.inet_ntoa(frame[28:32]))
    return found


def arp_request(address: str) -> bytes:
    sender = bytes.fromhex("020000000077") + socket.inet_aton("10.0.0.77")
    header = b"\xff" * 6 + sender[:6] + bytes.fromhex("0806 0001 0800 06 04 0001")
    return header + sender + bytes(6) + socket.inet_aton(address)


def test_only_such_interfaces_have_the_settings(make: Make, sandbox: Netns) -> None:
    make(bare_plan(addresses=(Address("10.0.0.5", 24),)))
    assert read_sysctl(sandbox, "net/ipv4/conf/eth0/arp_ignore") == "0"
    assert rules(sandbox) == []


def test_an_address_without_subnet_and_gateway_has_a_rule_alone(make: Make, sandbox: Netns) -> None:
    address = bare_plan(
        addresses=(Address("10.0.0.5", 32),), source_routing=(SourceRouting("10.0.0.5", 32, None, 1000),)
    )
    make(address)
    assert len(rules(sandbox)) == 1


SPOILT = [
    ("rule del from 10.0.0.6 table 1001", "The sandbox has no rule from 10.0.0.6 to table 1001."),
    ("-6 rule del from fd00::5 table 1000", "The sandbox has no rule from fd00::5 to table 1000."),
    ("route del default table 1001", "eth1 does not have the route to 0.0.0.0/0 via 10.0.0.1 in table 1001."),
    ("-6 route del fd00::/64 table 1000", "eth0 does not have the route to fd00::/64 in table 1000."),
    # Of these, tables of source routing have copies.
    ("route del default", "The sandbox has no IPv4 default route, through eth0 or any other interface."),
    ("-6 route del default", "The sandbox has no IPv6 default route, through eth0 or any other interface."),
    ("route del 10.100.0.0/16 dev eth1", "eth1 does not have the route to 10.100.0.0/16 via 10.0.0.9."),
]


@pytest.mark.parametrize(("command", "sentence"), SPOILT)
def test_check_reports_what_is_missing(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int, command: str, sentence: str
) -> None:
    make(*PLANS)
    with node.inside():
        assert check_interfaces(netns_fd, PLANS) == []
    sandbox.ip(*command.split())
    with node.inside():
        assert check_interfaces(netns_fd, PLANS) == [sentence]


def test_rules_are_removed_and_those_of_others_kept(make: Make, sandbox: Netns, netns_fd: int) -> None:
    sandbox.ip("rule", "add", "from", "10.0.0.5", "table", "100")
    before = rules(sandbox)
    make(*PLANS)
    assert len(rules(sandbox)) == 5
    remove_rules(netns_fd, PLANS)
    remove_rules(netns_fd, PLANS)
    assert rules(sandbox) == before


def test_a_rule_left_by_a_killed_call_is_taken_over(make: Make, node: Netns, sandbox: Netns) -> None:
    make(*PLANS)
    for name in node.links():
        node.ip("link", "del", name)
    make(*PLANS)
    assert len(rules(sandbox)) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"defaults": (DefaultRoute("ff02::1", asked=True),)},
        {"source_routing": (SourceRouting("10.0.0.6", 24, "10.0.0.1", 0),)},
    ],
    ids=["a later step fails", "a rule is rejected"],
)
def test_a_failed_add_leaves_no_rule(make: Make, node: Netns, sandbox: Netns, change: dict[str, Any]) -> None:
    before = everything(sandbox), rules(sandbox)
    with pytest.raises(KernelError):
        make(PLANS[0], PLANS[1]._replace(**change))
    assert (everything(sandbox), rules(sandbox)) == before
    assert node.links() == []

"""CHECK: one sentence for each difference between plan and kernel, none for what a later plugin may change."""

import os
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from cni_contrail.link import check
from cni_contrail.link.check import check_interfaces
from cni_contrail.link.errors import KernelError, NetnsError
from cni_contrail.link.observe import Observed, observe
from cni_contrail.link.observed_routes import ObservedRoutes
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route, SourceRouting
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.netns import Netns

Check = Callable[[InterfacePlan], list[str]]


@pytest.fixture
def differences(node: Netns, netns_fd: int) -> Check:
    """Runs the check as the plugin does: in a thread in the node's namespace."""

    def run(plan: InterfacePlan) -> list[str]:
        with node.inside():
            return check_interfaces(netns_fd, [plan])

    return run


@pytest.mark.parametrize(
    "plan",
    [
        interface_plan(),
        bare_plan(),
        interface_plan(1, routes=(Route("192.0.2.0/24", None), Route("2001:db8::/32", "fe80::1"))),
        interface_plan(1, addresses=(Address("10.1.0.5", 32),), routes=(Route("10.0.0.0/8", "10.1.0.1"),)),
        interface_plan(1, addresses=(Address("FD00:1:0::05", 128),), routes=()),
        interface_plan(1, routes=(Route("2001:DB8:0::/32", "FD00:1::0001"),)),
        interface_plan(mac="02:AA:BB:CC:DD:EE", alias=""),
    ],
)
def test_a_new_interface_has_no_difference(make: Make, differences: Check, plan: InterfacePlan) -> None:
    make(plan)
    assert differences(plan) == []


def test_interfaces_on_one_subnet_are_distinguished(make: Make, differences: Check) -> None:
    plans = [
        bare_plan(
            position,
            addresses=(Address(f"10.0.0.{position + 5}", 24), Address(f"fd00::{position + 5}", 64)),
            routes=(Route("10.100.0.0/16", "10.0.0.1"), Route("2001:db8::/32", "fd00::1")),
        )
        for position in range(4)
    ]
    make(*plans)
    assert [differences(plan) for plan in plans] == [[], [], [], []]


SPOILT = [
    ("link set eth0 down", "eth0 is down."),
    ("link set eth0 down", "eth0 does not have the route to 10.100.0.0/16 via 10.0.0.1."),
    (
        "link set eth0 address 02:00:00:00:00:99",
        "eth0 has the MAC address 02:00:00:00:00:99 instead of 02:00:5e:10:00:00.",
    ),
    ("addr del 10.0.0.5/24 dev eth0", "eth0 does not have the address 10.0.0.5/24."),
    ("addr del fd00::5/64 dev eth0", "eth0 does not have the address fd00::5/64."),
    ("route del 10.100.0.0/16", "eth0 does not have the route to 10.100.0.0/16 via 10.0.0.1."),
    ("route del default", "The sandbox has no IPv4 default route, through eth0 or any other interface."),
    ("-6 route del default", "The sandbox has no IPv6 default route, through eth0 or any other interface."),
]


@pytest.mark.parametrize(("command", "sentence"), SPOILT)
def test_each_difference_in_the_sandbox_is_reported(
    make: Make, differences: Check, sandbox: Netns, command: str, sentence: str
) -> None:
    make(interface_plan())
    sandbox.ip(*command.split())
    assert sentence in differences(interface_plan())


def test_a_renamed_interface_is_missing(make: Make, differences: Check, sandbox: Netns) -> None:
    make(interface_plan())
    sandbox.ip("link", "set", "eth0", "down")
    sandbox.ip("link", "set", "eth0", "name", "eth7")
    assert differences(interface_plan()) == ["eth0 does not exist in the sandbox."]


CHANGES_ON_THE_HOST = [
    ("link set tapplan0 down", ["tapplan0 is down."]),
    (
        "link set tapplan0 alias mine",
        ["tapplan0 has the alias 'mine' instead of 'contrail 0123456789ab default/pod 0'."],
    ),
    (
        "link del tapplan0",
        ["The host end tapplan0 of eth0 does not exist.", "eth0 does not exist in the sandbox."],
    ),
]


@pytest.mark.parametrize(("command", "expected"), CHANGES_ON_THE_HOST)
def test_each_difference_on_the_host_is_reported(
    make: Make, differences: Check, node: Netns, command: str, expected: list[str]
) -> None:
    make(interface_plan())
    node.ip(*command.split())
    assert differences(interface_plan()) == expected


TOLERATED = [
    ("an address more", ["addr", "add", "10.0.0.77/32", "dev", "eth0"]),
    ("a route more", ["route", "add", "10.200.0.0/16", "via", "10.0.0.9"]),
    ("a smaller MTU", ["link", "set", "eth0", "mtu", "1300"]),
    ("a larger MTU", ["link", "set", "eth0", "mtu", "9000"]),
    ("another default route beside", ["route", "add", "default", "via", "10.0.0.9", "metric", "5"]),
    ("another default route instead", ["route", "replace", "default", "via", "10.0.0.9"]),
    ("an interface more", ["link", "add", "net9", "type", "veth", "peer", "name", "net8"]),
]


@pytest.mark.parametrize("command", [each[1] for each in TOLERATED], ids=[each[0] for each in TOLERATED])
def test_changes_that_a_later_plugin_may_make_are_tolerated(
    make: Make, differences: Check, sandbox: Netns, command: list[str]
) -> None:
    make(interface_plan())
    sandbox.ip(*command)
    assert differences(interface_plan()) == []


@pytest.mark.parametrize("mtu", ["1400", "9000"])
def test_an_mtu_that_a_later_plugin_set_on_both_ends_is_tolerated(
    make: Make, differences: Check, node: Netns, sandbox: Netns, mtu: str
) -> None:
    make(interface_plan())
    sandbox.ip("link", "set", "eth0", "mtu", mtu)
    node.ip("link", "set", "tapplan0", "mtu", mtu)
    assert differences(interface_plan()) == []


def test_a_route_in_another_table_is_tolerated(make: Make, differences: Check, sandbox: Netns) -> None:
    """As the `sbr` plugin does."""
    make(interface_plan())
    sandbox.ip("route", "del", "10.100.0.0/16")
    sandbox.ip("route", "add", "10.100.0.0/16", "via", "10.0.0.1", "table", "100")
    assert differences(interface_plan()) == []


def test_a_default_route_of_another_interface_is_tolerated(make: Make, differences: Check) -> None:
    second = interface_plan(1, defaults=(DefaultRoute("10.1.0.1", asked=False),))
    make(interface_plan(0))
    make(second)
    assert differences(second) == []


def test_an_unreachable_default_does_not_count_as_default_route(make: Make, differences: Check, sandbox: Netns) -> None:
    make(interface_plan())
    sandbox.ip("route", "replace", "unreachable", "default")
    assert differences(interface_plan()) == [
        "The sandbox has no IPv4 default route, through eth0 or any other interface."
    ]


def test_ends_of_different_pairs_are_reported(make: Make, differences: Check) -> None:
    make(interface_plan(0), interface_plan(1))
    crossed = interface_plan(0, host_name="tapplan1", alias=interface_plan(1).alias)
    assert differences(crossed) == ["eth0 and tapplan1 are not the two ends of one veth pair."]


def test_a_peer_index_in_another_sandbox_is_reported(
    make: Make, differences: Check, node: Netns, sandbox: Netns, make_netns: Callable[[str], Netns]
) -> None:
    make(interface_plan())
    other_sandbox, other_node = make_netns("pod"), make_netns("node")
    ours = sandbox.ip("-o", "link", "show", "eth0").split(":")[0]
    hosts = node.ip("-o", "link", "show", "tapplan0").split(":")[0]
    sandbox.ip("link", "del", "eth0")
    node.ip(*pair("tapplan0", hosts, "eth0", ours, other_sandbox))
    sandbox.ip(*pair("eth0", ours, "tapplan0", hosts, other_node))
    assert "eth0 and tapplan0 are not the two ends of one veth pair." in differences(interface_plan())


def pair(name: str, index: str, peer: str, peer_index: str, netns: Netns) -> list[str]:
    end = ["link", "add", name, "index", index, "type", "veth"]
    return [*end, "peer", "name", peer, "index", peer_index, "netns", netns.name]


def test_a_link_of_another_kind_is_reported(make: Make, differences: Check, node: Netns) -> None:
    make(interface_plan())
    found = differences(interface_plan(host_name="lo", mtu=65536, alias=""))
    assert "lo is a link of kind unknown instead of veth." in found


def test_failed_duplicate_address_detection_is_reported(
    make: Make, differences: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(interface_plan())
    look = observe

    def dad_failed(*arguments: Any) -> Observed:
        seen = look(*arguments)
        return seen._replace(addresses=tuple(each._replace(flags=each.flags | 0x08) for each in seen.addresses))

    monkeypatch.setattr(check, "observe", dad_failed)
    sentence = "eth0 cannot use fd00::5: another host has it (duplicate address detection)."
    assert sentence in differences(interface_plan())


def test_one_incomplete_dump_is_no_difference(make: Make, differences: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    make(interface_plan())
    look, no_routes = observe, ObservedRoutes(frozenset(), frozenset(), frozenset())
    looks = 0

    def cut_short(*arguments: Any) -> Observed:
        nonlocal looks
        looks += 1
        seen = look(*arguments)
        return seen._replace(routes=no_routes) if looks == 1 else seen

    monkeypatch.setattr(check, "observe", cut_short)
    assert differences(interface_plan()) == []
    assert looks == 2


def test_a_sandbox_that_cannot_be_entered_is_an_error(node: Netns) -> None:
    with open("/dev/null") as file, node.inside(), pytest.raises((NetnsError, KernelError)):
        check_interfaces(file.fileno(), [interface_plan()])


def test_a_link_that_cannot_be_read_is_an_error(make: Make, differences: Check) -> None:
    make(interface_plan())
    with pytest.raises(KernelError, match=r"^find link name-of-16-chars: "):
        differences(interface_plan(name="name-of-16-chars"))


def test_the_cost_does_not_grow_with_the_square_of_the_interfaces(make: Make, node: Netns, netns_fd: int) -> None:
    """Counts what is read: the sandbox once, whatever the number of plans. All of them share a subnet."""
    plans = [
        bare_plan(
            position,
            addresses=(Address(f"10.0.0.{position + 5}", 24, position),),
            source_routing=(SourceRouting(f"10.0.0.{position + 5}", 24, "10.0.0.1", 1000 + position),),
        )
        for position in range(64)
    ]
    make(*plans)
    parsed = 0

    def count() -> None:
        nonlocal parsed
        parsed += 1

    with node.inside():
        assert check_interfaces(netns_fd, plans, count) == []
    assert parsed < 2 * len(plans)


def test_a_check_can_be_ended_early(make: Make, node: Netns, netns_fd: int) -> None:
    def end() -> None:
        raise InterruptedError

    make(interface_plan())
    with node.inside(), pytest.raises(InterruptedError):
        check_interfaces(netns_fd, [interface_plan()], end)


MANY_ROUTES = {
    "others": lambda n: f"10.{n // 62500}.{n // 250 % 250}.{n % 250} dev eth0 table 77",
    "default routes": lambda n: f"default via 10.0.0.{n % 250} dev eth0 metric {n + 1}",
    "to a planned destination": lambda n: f"10.100.0.0/16 via 10.0.0.{n % 250} dev eth0 metric {n + 1}",
}


def add_many_routes(sandbox: Netns, destinations: str) -> None:
    """As a tenant may do: thousands of them."""
    lines = [f"route add {MANY_ROUTES[destinations](n)}" for n in range(4_000)]
    added = sandbox.run("ip", "-batch", "-", input="\n".join(lines))
    assert added.returncode == 0, added.stderr


@pytest.mark.parametrize("destinations", MANY_ROUTES)
def test_other_routes_of_a_pod_are_not_kept_in_memory(
    make: Make, differences: Check, sandbox: Netns, destinations: str
) -> None:
    plan = interface_plan()
    make(plan)
    add_many_routes(sandbox, destinations)
    assert differences(plan) == []
    tracemalloc.start()
    try:
        assert differences(plan) == []
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_a_check_can_be_ended_while_it_reads_routes(make: Make, node: Netns, netns_fd: int, sandbox: Netns) -> None:
    plan = interface_plan()
    make(plan)
    looks = Counter[str]()
    with node.inside():
        check_interfaces(netns_fd, [plan], lambda: looks.update(["few routes"]))
        add_many_routes(sandbox, "others")
        check_interfaces(netns_fd, [plan], lambda: looks.update(["many routes"]))
    assert looks["many routes"] > looks["few routes"] + 4_000 // 1_000


def test_checking_leaves_no_descriptor_open(make: Make, differences: Check) -> None:
    make(interface_plan())
    differences(interface_plan())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        differences(interface_plan())
    assert len(os.listdir("/proc/self/fd")) == before

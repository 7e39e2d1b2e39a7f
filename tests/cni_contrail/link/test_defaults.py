"""Default routes: created exclusively unless requested; replaced ones can be restored."""

import socket
import tracemalloc
from collections.abc import Callable

import pytest

from cni_contrail.link import make as making
from cni_contrail.link import routes
from cni_contrail.link.defaults import read_default_routes, restore_defaults
from cni_contrail.link.errors import KernelError
from cni_contrail.link.host_side import HostSides
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, ReplacedRoute, Route
from cni_contrail.link.remove import HostLink, remove_links
from cni_contrail.link.routes import DefaultRouteEntry
from tests.cni_contrail.link.conftest import Make
from tests.support.interface_plans import bare_plan, interface_plan
from tests.support.kernel_state import defaults
from tests.support.netns import Netns

GATEWAY = {4: "10.9.0.1", 6: "fd09::1"}
BOTH = pytest.mark.parametrize("version", [4, 6])
COMMON_METRIC = {4: 0, 6: 1024}


@pytest.fixture
def other(node: Netns, sandbox: Netns) -> str:
    """An interface of another plugin in the sandbox, without default routes yet."""
    sandbox.ip("link", "add", "other0", "type", "veth", "peer", "name", "taken", "netns", node.name)
    node.ip("link", "set", "taken", "up")
    sandbox.ip("link", "set", "other0", "up")
    sandbox.ip("addr", "add", "10.9.0.5/24", "dev", "other0")
    sandbox.ip("addr", "add", "fd09::5/64", "dev", "other0", "nodad")
    return "other0"


@pytest.fixture
def other_default(sandbox: Netns, other: str) -> Callable[..., None]:
    """Gives the other interface a default route: `other_default(4, "metric", "100")`."""

    def add(version: int, *more: str) -> None:
        sandbox.ip(f"-{version}", "route", "append", "default", "via", GATEWAY[version], "dev", other, *more)

    return add


def with_default(version: int, *, asked: bool) -> InterfacePlan:
    gateway = {4: "10.0.0.1", 6: "fd00::1"}[version]
    addresses = (Address("10.0.0.5", 24), Address("fd00::5", 64))
    return bare_plan(addresses=addresses, defaults=(DefaultRoute(gateway, asked=asked),))


def devices(sandbox: Netns, version: int) -> list[str]:
    return [route["dev"] for route in defaults(sandbox, version=version)]


@BOTH
def test_an_unrequested_one_is_added_if_there_is_none(make: Make, sandbox: Netns, version: int) -> None:
    make(with_default(version, asked=False))
    (default,) = defaults(sandbox, version=version)
    assert (default["dev"], default.get("metric", 0)) == ("eth0", COMMON_METRIC[version])


@BOTH
@pytest.mark.parametrize("metric", ["0", "50", "1024", "4096"])
def test_an_unrequested_one_replaces_no_existing_one(
    make: Make, sandbox: Netns, other_default: Callable[..., None], version: int, metric: str
) -> None:
    other_default(version, "metric", metric)
    before = defaults(sandbox, version=version)
    make(with_default(version, asked=False))
    assert defaults(sandbox, version=version) == before


@BOTH
def test_a_default_route_of_the_other_family_does_not_conflict(
    make: Make, sandbox: Netns, other_default: Callable[..., None], version: int
) -> None:
    other_default(10 - version)
    make(with_default(version, asked=False))
    assert devices(sandbox, version) == ["eth0"]
    assert devices(sandbox, 10 - version) == ["other0"]


@BOTH
def test_a_requested_one_replaces_the_existing_one(
    make: Make, sandbox: Netns, other_default: Callable[..., None], version: int
) -> None:
    other_default(version)
    make(with_default(version, asked=True))
    assert devices(sandbox, version) == ["eth0"]


@BOTH
@pytest.mark.parametrize("asked", [True, False])
def test_one_that_came_during_the_wait_for_addresses_counts(
    make: Make,
    sandbox: Netns,
    other_default: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    asked: bool,
) -> None:
    wait = making._Readiness.wait

    def wait_for_another_plugin(readiness: making._Readiness, hosts: HostSides) -> None:
        wait(readiness, hosts)
        other_default(version)

    monkeypatch.setattr(making._Readiness, "wait", wait_for_another_plugin)
    make(with_default(version, asked=asked))
    assert devices(sandbox, version) == ["eth0" if asked else "other0"]


@BOTH
def test_a_requested_one_is_added_if_there_is_none(make: Make, sandbox: Netns, version: int) -> None:
    make(with_default(version, asked=True))
    assert devices(sandbox, version) == ["eth0"]


@BOTH
def test_default_routes_of_a_higher_metric_stay(
    make: Make, sandbox: Netns, other_default: Callable[..., None], version: int
) -> None:
    other_default(version, "metric", "2000")
    make(with_default(version, asked=True))
    assert devices(sandbox, version) == ["eth0", "other0"]


def test_all_default_routes_that_would_take_precedence_are_replaced(
    make: Make, sandbox: Netns, other_default: Callable[..., None]
) -> None:
    other_default(6, "metric", "10")
    other_default(6, "metric", "1024")
    make(with_default(6, asked=True))
    assert devices(sandbox, 6) == ["eth0"]


@BOTH
def test_a_multipath_default_route_is_replaced_as_a_whole(
    make: Make, sandbox: Netns, other: str, other_default: Callable[..., None], version: int
) -> None:
    other_default(version, "metric", "2000")
    hops = [word for last in ("2", "3") for word in ("nexthop", "via", GATEWAY[version][:-1] + last, "dev", other)]
    sandbox.ip(f"-{version}", "route", "add", "default", *hops)
    make(with_default(version, asked=True))
    assert devices(sandbox, version) == ["eth0", "other0"]


@BOTH
def test_no_multipath_default_route_is_created(
    make: Make, sandbox: Netns, other_default: Callable[..., None], version: int
) -> None:
    other_default(version)
    make(with_default(version, asked=False))
    make(interface_plan(1, defaults=(DefaultRoute({4: "10.1.0.1", 6: "fd00:1::1"}[version], asked=True),)))
    (default,) = defaults(sandbox, version=version)
    assert "nexthops" not in default


@BOTH
def test_default_routes_are_read_with_all_that_restoring_needs(
    sandbox: Netns, netns_fd: int, other_default: Callable[..., None], version: int
) -> None:
    family = {4: socket.AF_INET, 6: socket.AF_INET6}[version]
    other_default(version)
    other_default(version, "metric", "2000")
    assert read_default_routes(netns_fd) == (
        ReplacedRoute(family, GATEWAY[version], "other0", COMMON_METRIC[version]),
        ReplacedRoute(family, GATEWAY[version], "other0", 2000),
    )


def test_default_routes_without_gateway_or_with_an_onlink_one_are_read(
    sandbox: Netns, netns_fd: int, other: str
) -> None:
    sandbox.ip("route", "add", "default", "dev", other)
    sandbox.ip("route", "add", "default", "via", "169.254.1.1", "dev", other, "onlink", "metric", "7")
    assert read_default_routes(netns_fd) == (
        ReplacedRoute(socket.AF_INET, None, other, 0),
        ReplacedRoute(socket.AF_INET, "169.254.1.1", other, 7, onlink=True),
    )


def test_other_routes_than_defaults_of_the_main_table_are_not_read(sandbox: Netns, netns_fd: int, other: str) -> None:
    sandbox.ip("route", "add", "default", "via", GATEWAY[4], "dev", other, "table", "100")
    sandbox.ip("route", "add", "default", "via", GATEWAY[4], "dev", other, "tos", "0x08")
    sandbox.ip("route", "add", "unreachable", "default", "metric", "9000")
    sandbox.ip("-6", "route", "add", "unreachable", "default", "metric", "9000")
    sandbox.ip("-6", "route", "add", "default", "from", "fd09::/64", "via", GATEWAY[6], "dev", other)
    sandbox.ip("route", "add", "0.0.0.0/1", "via", GATEWAY[4], "dev", other)
    assert read_default_routes(netns_fd) == ()


def replace_and_remove(make: Make, node: Netns, version: int) -> None:
    """Runs the link steps of an ADD with a requested default route, and of its DEL."""
    plan = with_default(version, asked=True)
    make(plan)
    with node.inside():
        assert remove_links([HostLink(plan.host_name, plan.alias)]) == []


@BOTH
def test_a_replaced_default_route_can_be_restored(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int, other_default: Callable[..., None], version: int
) -> None:
    other_default(version)
    before = read_default_routes(netns_fd)
    replace_and_remove(make, node, version)
    assert read_default_routes(netns_fd) == ()
    restore_defaults(netns_fd, before)
    assert read_default_routes(netns_fd) == before


@BOTH
def test_a_replaced_multipath_default_route_is_restored_in_order(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int, other: str, version: int
) -> None:
    hops = [word for last in ("2", "3") for word in ("nexthop", "via", GATEWAY[version][:-1] + last, "dev", other)]
    sandbox.ip(f"-{version}", "route", "add", "default", *hops)
    before = read_default_routes(netns_fd)
    assert len(before) == 2
    replace_and_remove(make, node, version)
    restore_defaults(netns_fd, before)
    assert read_default_routes(netns_fd) == before


def test_default_routes_with_onlink_or_ipv6_gateways_can_be_restored(
    make: Make, node: Netns, sandbox: Netns, netns_fd: int, other: str
) -> None:
    sandbox.ip("route", "append", "default", "via", "169.254.1.1", "dev", other, "onlink")
    sandbox.ip("route", "append", "default", "via", "inet6", "fe80::1", "dev", other)
    sandbox.ip("route", "append", "default", "dev", other)
    before = read_default_routes(netns_fd)
    assert len(before) == 3
    replace_and_remove(make, node, 4)
    restore_defaults(netns_fd, before)
    assert read_default_routes(netns_fd) == before


def test_routes_of_a_pod_are_not_kept_in_memory_to_restore_one(
    sandbox: Netns, netns_fd: int, other: str, other_default: Callable[..., None]
) -> None:
    other_default(4)
    before = read_default_routes(netns_fd)
    others = [f"route add 10.{n // 62500}.{n // 250 % 250}.{n % 250} dev {other} table 77" for n in range(20_000)]
    added = sandbox.run("ip", "-batch", "-", input="\n".join(others))
    assert added.returncode == 0, added.stderr
    tracemalloc.start()
    try:
        restore_defaults(netns_fd, before)
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_an_existing_default_route_is_not_restored_again(
    sandbox: Netns, netns_fd: int, other_default: Callable[..., None]
) -> None:
    other_default(4, "proto", "dhcp")
    other_default(6, "proto", "ra")
    before = read_default_routes(netns_fd)
    restore_defaults(netns_fd, before)
    assert read_default_routes(netns_fd) == before


def test_a_route_of_a_deleted_interface_is_not_restored(sandbox: Netns, netns_fd: int) -> None:
    restore_defaults(netns_fd, [ReplacedRoute(socket.AF_INET, "10.9.0.1", "other0", 0)])
    assert read_default_routes(netns_fd) == ()


def test_a_route_that_cannot_be_restored_is_an_error(sandbox: Netns, netns_fd: int, other: str) -> None:
    sandbox.ip("link", "set", other, "down")
    with pytest.raises(KernelError, match=r"^restore default route via 10\.9\.0\.1: Network is (down|unreachable)"):
        restore_defaults(netns_fd, [ReplacedRoute(socket.AF_INET, "10.9.0.1", other, 0)])


@BOTH
def test_a_failure_restores_the_replaced_default_route_at_once(
    make: Make, sandbox: Netns, netns_fd: int, other_default: Callable[..., None], version: int
) -> None:
    other_default(version)
    before = read_default_routes(netns_fd)
    plan = with_default(version, asked=True)
    multicast = {4: "224.0.0.1", 6: "ff02::1"}[version]
    with pytest.raises(KernelError, match=f"^eth0: add default route via {multicast}: "):
        make(plan._replace(defaults=(DefaultRoute(multicast, asked=True),)))
    assert read_default_routes(netns_fd) == before


def test_a_failure_in_one_family_restores_the_other_family_too(
    make: Make, sandbox: Netns, netns_fd: int, other_default: Callable[..., None]
) -> None:
    other_default(4)
    other_default(6)
    before = read_default_routes(netns_fd)
    wanted = (DefaultRoute("10.0.0.1", asked=True), DefaultRoute("ff02::1", asked=True))
    with pytest.raises(KernelError, match=r"^eth0: add default route via ff02::1: "):
        make(interface_plan(defaults=wanted))
    assert read_default_routes(netns_fd) == before
    assert sandbox.links() == ["other0"]


def test_a_requested_one_takes_precedence_over_an_unrequested_one_of_the_same_call(make: Make, sandbox: Netns) -> None:
    asked = DefaultRoute("10.1.0.1", asked=True)
    make(interface_plan(0, routes=(Route("10.100.0.0/16", "10.0.0.1"),)), interface_plan(1, defaults=(asked,)))
    assert devices(sandbox, 4) == ["eth1"]
    assert devices(sandbox, 6) == ["eth0"]


def test_a_default_route_that_cannot_be_deleted_is_an_error_and_ours_is_not_added(
    make: Make, sandbox: Netns, other_default: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_default(4)
    before = defaults(sandbox, version=4)

    def delete_nonsense(route: DefaultRouteEntry) -> NetlinkRequest:
        return NetlinkRequest(kind=0x7FE, flags=0, body=bytes(12), what="delete default route")

    monkeypatch.setattr(routes, "delete_default_route", delete_nonsense)
    with pytest.raises(KernelError, match=r"^delete default route: Operation not supported"):
        make(with_default(4, asked=True))
    assert defaults(sandbox, version=4) == before
    assert sandbox.links() == ["other0"]

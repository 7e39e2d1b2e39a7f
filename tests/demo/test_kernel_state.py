"""Links and routes are read from the kernel, links in the order of their creation."""

from collections.abc import Callable

import pytest

from demo.kernel_state import KernelRoute, Link, read_links, read_routes
from tests.support.netns import Netns


@pytest.fixture
def pod(make_netns: Callable[[str], Netns]) -> Netns:
    """A namespace with two links whose names sort differently from their creation."""
    pod, node = make_netns("pod"), make_netns("node")
    for name, mac in (("zulu", "02:00:00:00:00:01"), ("alpha", "02:00:00:00:00:02")):
        sandbox_end = ("name", name, "address", mac, "mtu", "1400", "type", "veth")
        pod.ip("link", "add", *sandbox_end, "peer", "name", f"{name}-host", "netns", node.name)
        pod.ip("link", "set", name, "up")
        node.ip("link", "set", f"{name}-host", "up")
    pod.ip("address", "add", "10.1.0.5/24", "dev", "zulu")
    pod.ip("address", "add", "fd00::5/64", "dev", "zulu", "nodad")
    return pod


def test_links_are_in_order_of_creation_and_without_kernel_assigned_addresses(pod: Netns) -> None:
    assert read_links(pod.name) == [
        Link("zulu", "02:00:00:00:00:01", 1400, ("10.1.0.5/24", "fd00::5/64")),
        Link("alpha", "02:00:00:00:00:02", 1400, ()),
    ]


def test_links_that_the_kernel_makes_in_every_namespace_are_omitted(pod: Netns) -> None:
    pod.ip("link", "add", "tunl0", "type", "veth", "peer", "name", "sit0")
    assert [link.name for link in read_links(pod.name)] == ["zulu", "alpha"]


def test_routes_that_the_kernel_adds_for_addresses_are_omitted(pod: Netns) -> None:
    assert read_routes(pod.name) == []


def test_routes_are_read_as_cidr_with_gateway_and_link(pod: Netns) -> None:
    pod.ip("route", "add", "default", "via", "10.1.0.1")
    pod.ip("route", "add", "10.9.9.9", "dev", "alpha")
    pod.ip("-6", "route", "add", "default", "via", "fd00::1")
    pod.ip("-6", "route", "add", "fd01::/64", "via", "fd00::1")
    assert set(read_routes(pod.name)) == {
        KernelRoute(4, "0.0.0.0/0", "10.1.0.1", "zulu"),
        KernelRoute(4, "10.9.9.9/32", None, "alpha"),
        KernelRoute(6, "::/0", "fd00::1", "zulu"),
        KernelRoute(6, "fd01::/64", "fd00::1", "zulu"),
    }

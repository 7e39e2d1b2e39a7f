"""Kernel state is compared with the manager's API; each difference yields one sentence."""

from typing import Any

import pytest
from msgspec.structs import replace

from contrail_config.objects import ForwardingMode
from demo.comparison import differences, result_differences
from demo.kernel_state import KernelRoute, Link
from tests.support.api_views import INTERFACES

LINKS = [
    Link("eth0", "02:00:00:00:00:00", 1500, ("10.32.0.2/12",)),
    Link("web", "02:00:00:00:00:01", 9000, ("10.10.0.2/24", "fd00:10::2/64")),
    Link("eth2", "02:00:00:00:00:02", 9000, ("10.10.0.3/24", "fd00:10::3/64")),
]
ROUTES = [
    KernelRoute(4, "0.0.0.0/0", "10.10.0.1", "web"),
    KernelRoute(6, "::/0", "fd00:10::1", "web"),
    KernelRoute(4, "10.11.0.0/16", "10.10.0.1", "web"),
    KernelRoute(4, "10.12.0.0/16", None, "web"),
]
RESULT: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "tapx"}, {"name": "eth0", "sandbox": "/run/netns/x"}],
    "ips": [{"address": "10.32.0.2/12", "interface": 1}],
}


def found(links: list[Link], routes: list[KernelRoute]) -> list[str]:
    return list(differences(INTERFACES, links, routes))


def test_matching_state_has_no_differences() -> None:
    assert found(LINKS, ROUTES) == []
    assert found(LINKS, ROUTES[::-1]) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"addresses": ("10.32.0.2/16",)}, "eth0: addresses: 10.32.0.2/16, expected 10.32.0.2/12"),
        ({"addresses": ()}, "eth0: addresses: none, expected 10.32.0.2/12"),
        ({"mac": "02:00:00:00:00:ff"}, "eth0: MAC: 02:00:00:00:00:ff, expected 02:00:00:00:00:00"),
        ({"mtu": 1400}, "eth0: MTU: 1400, expected 1500"),
    ],
)
def test_a_different_link_property_is_reported(change: dict[str, Any], sentence: str) -> None:
    assert found([LINKS[0]._replace(**change), *LINKS[1:]], ROUTES) == [sentence]


@pytest.mark.parametrize("links", [[], LINKS[:2], [LINKS[1], LINKS[0], LINKS[2]], [*LINKS, Link("eth3", "", 1500, ())]])
def test_link_names_and_order_are_compared_first(links: list[Link]) -> None:
    names = ", ".join(link.name for link in links) or "none"
    assert found(links, []) == [f"links in order of creation: {names}, expected eth0, web, eth2"]


def test_missing_and_unexpected_routes_are_reported() -> None:
    wrong = [KernelRoute(4, "0.0.0.0/0", "10.32.0.1", "eth0"), *ROUTES[1:3]]
    assert found(LINKS, wrong) == [
        "route 0.0.0.0/0 via 10.10.0.1 dev web: not found",
        "route 10.12.0.0/16 via the link dev web: not found",
        "route 0.0.0.0/0 via 10.32.0.1 dev eth0: unexpected",
    ]


def test_a_network_that_routes_between_its_pods_has_routes_by_its_gateways() -> None:
    index_0, web, eth2 = INTERFACES
    addresses = tuple(replace(each, subnet_gateway=each.gateway) for each in web.addresses)
    interfaces = (index_0, replace(web, addresses=addresses, forwarding_mode=ForwardingMode.L3), eth2)
    by_gateways = [
        KernelRoute(4, "10.10.0.1/32", None, "web"),
        KernelRoute(4, "10.10.0.0/24", "10.10.0.1", "web"),
        KernelRoute(6, "fd00:10::1/128", None, "web"),
        KernelRoute(6, "fd00:10::/64", "fd00:10::1", "web"),
    ]
    assert list(differences(interfaces, LINKS, [*ROUTES, *by_gateways])) == []
    assert "route 10.10.0.0/24 via 10.10.0.1 dev web: not found" in differences(interfaces, LINKS, ROUTES)


class TestAddResult:
    def test_only_the_first_interface_is_expected(self) -> None:
        assert list(result_differences(RESULT, LINKS)) == []

    def test_further_interfaces_are_reported(self) -> None:
        more = [*RESULT["interfaces"], {"name": "web", "sandbox": "/run/netns/x"}]
        assert list(result_differences(RESULT | {"interfaces": more}, LINKS)) == [
            "result of ADD: interfaces in the sandbox: eth0, web, expected only the first"
        ]

    def test_different_addresses_are_reported(self) -> None:
        ips = [{"address": "10.32.0.3/12"}]
        assert list(result_differences(RESULT | {"ips": ips}, LINKS)) == [
            "result of ADD: addresses: 10.32.0.3/12, expected 10.32.0.2/12"
        ]

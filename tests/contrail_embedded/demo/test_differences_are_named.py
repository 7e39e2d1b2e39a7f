"""What the kernel says is held against what the manager says; every difference is one sentence."""

from typing import Any

import pytest

from contrail_embedded.demo.comparison import differences, result_differences
from contrail_embedded.demo.kernel import KernelRoute, Link
from tests.support.views import INTERFACES

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


def said(links: list[Link], routes: list[KernelRoute]) -> list[str]:
    return list(differences(INTERFACES, links, routes))


def test_agreement_is_silent() -> None:
    assert said(LINKS, ROUTES) == []
    assert said(LINKS, ROUTES[::-1]) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"addresses": ("10.32.0.2/16",)}, "eth0: addresses are 10.32.0.2/16, not 10.32.0.2/12"),
        ({"addresses": ()}, "eth0: addresses are none, not 10.32.0.2/12"),
        ({"mac": "02:00:00:00:00:ff"}, "eth0: MAC is 02:00:00:00:00:ff, not 02:00:00:00:00:00"),
        ({"mtu": 1400}, "eth0: MTU is 1400, not 1500"),
    ],
)
def test_a_link_that_differs_is_named(change: dict[str, Any], sentence: str) -> None:
    assert said([LINKS[0]._replace(**change), *LINKS[1:]], ROUTES) == [sentence]


@pytest.mark.parametrize("links", [[], LINKS[:2], [LINKS[1], LINKS[0], LINKS[2]], [*LINKS, Link("eth3", "", 1500, ())]])
def test_names_and_their_order_are_compared_first(links: list[Link]) -> None:
    found = ", ".join(link.name for link in links) or "none"
    assert said(links, []) == [f"links in the order of their making: {found}, not eth0, web, eth2"]


def test_routes_that_are_missing_or_too_many_are_named() -> None:
    wrong = [KernelRoute(4, "0.0.0.0/0", "10.32.0.1", "eth0"), *ROUTES[1:3]]
    assert said(LINKS, wrong) == [
        "route 0.0.0.0/0 via 10.10.0.1 dev web is missing",
        "route 10.12.0.0/16 via the link dev web is missing",
        "route 0.0.0.0/0 via 10.32.0.1 dev eth0 should not be there",
    ]


class TestResults:
    def test_one_that_tells_the_first_interface_alone_is_right(self) -> None:
        assert list(result_differences(RESULT, LINKS)) == []

    def test_one_that_tells_others_is_named(self) -> None:
        more = [*RESULT["interfaces"], {"name": "web", "sandbox": "/run/netns/x"}]
        assert list(result_differences(RESULT | {"interfaces": more}, LINKS)) == [
            "result of ADD: interfaces in the sandbox are eth0, web, not the first alone"
        ]

    def test_other_addresses_are_named(self) -> None:
        ips = [{"address": "10.32.0.3/12"}]
        assert list(result_differences(RESULT | {"ips": ips}, LINKS)) == [
            "result of ADD: addresses are 10.32.0.3/12, not 10.32.0.2/12"
        ]

"""`routes` in `spec.config`: validated with the rules that the kernel applies at every ADD."""

import json
from typing import Any

import pytest

from contrail_config.objects import Route
from tests.manager.parsing.conftest import Define, ProblemsOf

REFERENCE = '{"domain": "d", "project": "p", "name": "n"}'


def config(*routes: Any) -> str:
    return json.dumps({"type": "contrail-k8s-cni", "routes": routes})


def test_routes_have_a_gateway_or_are_on_link(define: Define) -> None:
    routes = [{"dst": "192.168.0.0/16", "gw": "10.1.1.9"}, {"dst": "192.0.2.1/32"}, {"dst": "fd01::/64", "gw": None}]
    assert define(config(*routes), cidr="10.1.1.0/24").routes == (
        Route(dst="192.168.0.0/16", gw="10.1.1.9"),
        Route(dst="192.0.2.1/32"),
        Route(dst="fd01::/64"),
    )


@pytest.mark.parametrize(
    "routes",
    [
        [{"dst": "fd01::/64", "gw": "fe80::1"}],
        [{"dst": "fd02::1/128"}, {"dst": "fd01::/64", "gw": "fd02::1"}],
    ],
    ids=["link-local", "behind an earlier route"],
)
def test_an_on_link_gateway_is_reachable(routes: list[Any], define: Define) -> None:
    assert len(define(config(*routes), cidr="fd00::/64").routes) == len(routes)


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        ({}, "{}: dst is missing"),
        ("10.0.0.0/8", "'10.0.0.0/8' is not a JSON object"),
        ({"dst": "10.2.0.0"}, "'10.2.0.0' is not a CIDR"),
        ({"dst": "10.2.0.1/16"}, "'10.2.0.1/16' has host bits set: write 10.2.0.0/16"),
        ({"dst": "10.2.0.0/16", "gw": "x"}, "'x' is not an IP address"),
        ({"dst": "10.2.0.0/16", "gw": "fd00::1"}, "dst 10.2.0.0/16 and gw fd00::1 are of different address families"),
        ({"dst": "10.2.0.0/16", "gw": "10.3.0.1"}, "gw 10.3.0.1 is neither in a subnet of the network"),
        ({"dst": "10.1.1.0/24"}, "dst 10.1.1.0/24 is the network's own subnet"),
        (
            {"dst": "0.0.0.0/0"},
            "dst 0.0.0.0/0: a network must not set the default route: use opencontrail.org/default-gw on the pod",
        ),
        ({"dst": "::/0"}, "dst ::/0: a network must not set the default route"),
        (
            {"dst": "10.2.0.0/16", "table": 5, "mtu": 3},
            "{'dst': '10.2.0.0/16', 'mtu': 3, 'table': 5}: mtu, table is not",
        ),
        ({"dst": "172.16.0.0/12"}, "dst 172.16.0.0/12 already has a route"),
    ],
)
def test_an_invalid_route_is_reported_with_its_position(route: Any, reason: str, problems_of: ProblemsOf) -> None:
    (problem,) = problems_of(config({"dst": "172.16.0.0/12"}, route), cidr="10.1.1.0/24")
    assert problem.startswith(f"spec.config, routes[1]: {reason}")


def test_routes_must_be_a_list(problems_of: ProblemsOf) -> None:
    text = json.dumps({"type": "contrail-k8s-cni", "routes": {"dst": "10.2.0.0/16"}})
    assert problems_of(text, cidr="10.1.1.0/24") == ("spec.config, routes: {'dst': '10.2.0.0/16'} is not a JSON list",)


def test_gateways_are_not_validated_in_a_referenced_network(define: Define) -> None:
    assert define(config({"dst": "10.2.0.0/16", "gw": "10.3.0.1"}), network=REFERENCE).routes

"""Options of the live check: what is wrong ends the command before anything is made."""

import argparse

import msgspec
import pytest

from contrail_config.kubernetes.expected_slices import StoredObjects
from contrail_config.objects import VirtualNetwork
from contrailctl.arguments import parse_arguments
from contrailctl.check.live.options import has_gateway, live_options, places_of, selected_networks
from contrailctl.check.live.target import Target, parse_target
from contrailctl.errors import NotFoundError, UsageError
from tests.support.virtual_networks import make_network


def parsed(*options: str) -> argparse.Namespace:
    return parse_arguments(["check", "connectivity", *options], program="contrailctl", version="1")


@pytest.fixture
def blue() -> VirtualNetwork:
    return msgspec.structs.replace(make_network("blue", "10.7.0.0/24"), nad="demo/blue")


@pytest.fixture
def stored(blue: VirtualNetwork) -> StoredObjects:
    red = msgspec.structs.replace(make_network("red", "10.8.0.0/24"), nad="demo/red")
    gone = msgspec.structs.replace(make_network("gone", "10.9.0.0/24"), nad="demo/gone", retired=True)
    return StoredObjects((red, blue, gone, make_network("pods", "10.32.0.0/16")), (), (), {}, {}, {}, {})


def test_all_networks_of_nads_are_checked_unless_some_are_named(stored: StoredObjects) -> None:
    assert list(selected_networks(stored, None)) == ["demo/blue", "demo/red"]
    assert list(selected_networks(stored, ["demo/red", "demo/red"])) == ["demo/red"]


@pytest.mark.parametrize("name", ["demo/green", "blue", "demo/gone"])
def test_a_network_that_does_not_exist_is_named(stored: StoredObjects, name: str) -> None:
    with pytest.raises(NotFoundError, match=f"^network {name} not found"):
        selected_networks(stored, [name])


def test_each_node_has_a_pod_for_each_network_and_one_for_index_0(blue: VirtualNetwork) -> None:
    places = places_of(["node-1", "node-2"], {"demo/blue": blue}, max_pods=4)
    assert places == [("node-1", ""), ("node-1", "demo/blue"), ("node-2", ""), ("node-2", "demo/blue")]


def test_more_pods_than_wanted_are_an_error_that_says_how_many(blue: VirtualNetwork) -> None:
    with pytest.raises(UsageError, match=r"4 pods are needed \(2 nodes, 1 networks and index 0\), more than .* 3"):
        places_of(["node-1", "node-2"], {"demo/blue": blue}, max_pods=3)


def test_without_nodes_nothing_can_be_checked(blue: VirtualNetwork) -> None:
    with pytest.raises(NotFoundError, match=r"^--live: no node has an agent that reports$"):
        places_of([], {"demo/blue": blue}, max_pods=3)


def test_whether_pods_can_have_default_routes_through_a_network(blue: VirtualNetwork) -> None:
    assert has_gateway(blue)
    subnets = tuple(msgspec.structs.replace(each, gateway=None) for each in blue.subnets)
    assert not has_gateway(msgspec.structs.replace(blue, subnets=subnets))


@pytest.mark.parametrize("option", ["--network", "--live-namespace", "--image", "--outside"])
def test_options_of_the_live_check_need_it(option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option} needs --live$"):
        live_options(parsed(option, "192.0.2.9"))
    assert live_options(parsed()) is None


def test_options_are_read() -> None:
    found = live_options(parsed("--live", "--network", "demo/blue", "--outside", "192.0.2.9", "--outside", "[::1]:80"))
    assert found is not None
    assert (found.networks, found.namespace, found.image, found.max_pods) == (["demo/blue"], "", "", 100)
    assert found.outside == [Target("192.0.2.9"), Target("::1", 80)]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("192.0.2.9", Target("192.0.2.9")),
        ("192.0.2.9:80", Target("192.0.2.9", 80)),
        ("2001:DB8::9", Target("2001:db8::9")),
        ("[2001:db8::9]:443", Target("2001:db8::9", 443)),
    ],
)
def test_addresses_outside_may_have_a_port(text: str, target: Target) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize(
    "text",
    ["", "example.org", "example.org:80", "192.0.2.9:0", "192.0.2.9:70000", "192.0.2.9:", "[::1]", "a@192.0.2.9:80"],
)
def test_what_is_no_address_outside(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser of arguments names the option and the text
        parse_target(text)


@pytest.mark.parametrize(("option", "value"), [("--outside", "example.org"), ("--max-pods", "0"), ("--max-pods", "x")])
def test_malformed_values_end_with_status_2(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parsed("--live", option, value)
    assert f"argument {option}: {value!r} is not" in capsys.readouterr().err

"""Interface names that users can request, compared with the names that the kernel accepts."""

import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from manager.parsing.errors import AnnotationError, BadValueError
from manager.parsing.names import interface_name
from manager.parsing.networks import parse_networks
from tests.support.netns import Netns

GOOD = ["a", "net1", "eth1", "abcdefghijklmno", "a.b-c_d", "a@b", "0", "A+B=C", "..."]
REJECTED_BY_THE_KERNEL = ["abcdefghijklmnop", "a/b", "a:b", "a b", ".", "..", "a\tb"]


@pytest.mark.parametrize("name", GOOD)
def test_a_name_that_the_kernel_accepts_is_accepted(name: str, make_netns: Callable[[str], Netns]) -> None:
    assert interface_name(name) == name
    netns = make_netns("names")
    netns.ip("link", "add", "name", name, "type", "veth", "peer", "name", "peer")
    assert f": {name}@peer: " in netns.ip("-o", "link")


@pytest.mark.parametrize("name", REJECTED_BY_THE_KERNEL)
def test_a_name_that_the_kernel_rejects_is_rejected(name: str, make_netns: Callable[[str], Netns]) -> None:
    with pytest.raises(BadValueError, match=r"(not a valid|a reserved) interface name"):
        interface_name(name)
    with pytest.raises(subprocess.CalledProcessError):
        make_netns("names").ip("link", "add", "name", name, "type", "veth", "peer", "name", "peer")


@pytest.mark.parametrize(
    "value",
    ["", "a%d", 'a"b', "a{b", "a}b", "a\\b", "net\u00e9", "a\u00a0b", "a\x00b", "\ud800", "x" * 10_000, 5, None, ["a"]],
)
def test_a_name_with_a_forbidden_character_is_rejected(value: Any) -> None:
    with pytest.raises(BadValueError, match="is not a valid interface name"):
        interface_name(value)


@pytest.mark.parametrize("name", ["eth0", "lo", "all", "default"])
def test_a_reserved_name_is_rejected(name: str) -> None:
    with pytest.raises(BadValueError, match=f"'{name}' is a reserved interface name: it "):
        interface_name(name)


def test_a_name_requested_by_two_elements_is_rejected() -> None:
    with pytest.raises(AnnotationError, match=r"element 3: interface: 'x0' is already requested by element 1"):
        parse_networks("net-a@x0,net-b,net-c@x0", namespace="shop")


def test_a_conflict_with_a_default_name_is_not_checked_here() -> None:
    assert parse_networks("net-a@net2,net-b", namespace="shop")[0].interface == "net2"

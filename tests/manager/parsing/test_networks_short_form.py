"""`[namespace/]name[@interface]`, separated by commas."""

import pytest

from manager.parsing.errors import AnnotationError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import parse_networks


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_blank_annotation_selects_no_network(text: str) -> None:
    assert parse_networks(text, namespace="shop") == ()


def test_networks_keep_their_order() -> None:
    assert [selection.key for selection in parse_networks("net-b,net-a,net-b", namespace="shop")] == [
        "shop/net-b",
        "shop/net-a",
        "shop/net-b",
    ]


def test_namespace_and_interface_name_can_be_written() -> None:
    assert parse_networks("other/net-a@store0", namespace="shop") == (
        NetworkSelection(namespace="other", name="net-a", interface="store0"),
    )


def test_whitespace_around_every_part_is_trimmed() -> None:
    assert parse_networks(" other / net-a @ store0 ,\n net-b ", namespace="shop") == (
        NetworkSelection(namespace="other", name="net-a", interface="store0"),
        NetworkSelection(namespace="shop", name="net-b"),
    )


def test_a_name_may_contain_dots() -> None:
    assert parse_networks("net.v2", namespace="shop")[0].name == "net.v2"


def test_null_is_a_network_name_as_in_multus() -> None:
    assert parse_networks("null", namespace="shop")[0].key == "shop/null"


@pytest.mark.parametrize(
    ("text", "position", "culprit"),
    [
        ("net-a,,net-b", 2, "is empty"),
        ("net-a,", 2, "is empty"),
        (",", 1, "is empty"),
        ("net-a,a/b/c", 2, "'a/b/c'"),
        ("net-a@x@y", 1, "'net-a@x@y'"),
        ("Net-A", 1, "name: 'Net-A'"),
        ("-net", 1, "name: '-net'"),
        ("net_a", 1, "name: 'net_a'"),
        ("shop/", 1, "name is missing"),
        ("Shop/net-a", 1, "namespace: 'Shop'"),
        ("net-a,net-b@eth0", 2, "interface: 'eth0'"),
        ("net-a@a b", 1, "interface: 'a b'"),
        ("net a", 1, "name: 'net a'"),
        ("../net-a", 1, "namespace: '..'"),
    ],
)
def test_an_invalid_element_is_reported_with_position_and_value(text: str, position: int, culprit: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse_networks(text, namespace="shop")
    assert str(caught.value).startswith(f"k8s.v1.cni.cncf.io/networks, element {position}: {culprit}")


def test_typographic_quotes_are_reported() -> None:
    with pytest.raises(AnnotationError, match=r"“ \(U\+201C\) at line 1, column 1 is a typographic quote"):
        parse_networks("“net-a”", namespace="shop")

"""Network selection elements in JSON, key by key (multi-network standard v1.3)."""

import json
from typing import Any

import pytest

from manager.parsing.errors import AnnotationError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import parse_networks


def parse_one(**keys: Any) -> NetworkSelection:
    (selection,) = parse_networks(json.dumps([{"name": "net-a"} | keys]), namespace="shop")
    return selection


def error_of(element: Any) -> str:
    with pytest.raises(AnnotationError) as caught:
        parse_networks(json.dumps([{"name": "first"}, element]), namespace="shop")
    prefix = "k8s.v1.cni.cncf.io/networks, element 2: "
    assert str(caught.value).startswith(prefix)
    return str(caught.value).removeprefix(prefix)


def test_an_element_with_every_supported_key() -> None:
    assert parse_one(
        namespace="other",
        interface="store0",
        mac="02:00:00:AA:BB:CC",
        ips=["10.1.1.5/24", "fd00:0::5"],
        **{"default-route": ["10.1.1.1"], "cni-args": {"level": 3}},
    ) == NetworkSelection(
        namespace="other",
        name="net-a",
        interface="store0",
        mac="02:00:00:aa:bb:cc",
        ips=("10.1.1.5", "fd00::5"),
        default_route=("10.1.1.1",),
        cni_args={"level": 3},
    )


def test_addresses_and_a_mac_can_be_requested_by_cni_args() -> None:
    arguments = {"ips": ["10.1.1.5/24"], "mac": "02-00-00-aa-bb-cc", "level": 3}
    selection = parse_one(**{"cni-args": arguments})
    assert (selection.ips, selection.mac) == (("10.1.1.5",), "02:00:00:aa:bb:cc")
    assert selection.cni_args == arguments
    assert parse_one(ips=["10.1.1.6"], **{"cni-args": arguments}).ips == ("10.1.1.6",)
    assert parse_one(**{"cni-args": {"ips": [], "mac": ""}}).unsupported == ()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"mac": 7}, "cni-args.mac: 7 is not a MAC"),
        ({"ips": "10.1.1.5"}, "cni-args.ips: '10.1.1.5' is not a JSON list"),
    ],
)
def test_invalid_cni_args_are_an_error_only_for_contrail_networks(arguments: dict[str, Any], problem: str) -> None:
    text = json.dumps([{"name": "net-a", "cni-args": arguments}])
    (selection,) = parse_networks(text, namespace="shop", defer_unsupported=True)
    assert selection.unsupported[0].startswith(problem)
    assert (selection.ips, selection.mac) == ((), None)


def test_the_pods_namespace_is_the_default() -> None:
    assert parse_one().key == "shop/net-a"


def test_an_empty_list_selects_no_network() -> None:
    assert parse_networks(" [] ", namespace="shop") == ()


def test_the_name_may_contain_the_namespace_as_in_the_multi_network_design() -> None:
    assert parse_one(name="other-ns/net-c").key == "other-ns/net-c"
    assert parse_one(name="other-ns/net-c", namespace="other-ns").key == "other-ns/net-c"


def test_a_namespace_that_conflicts_with_the_name_is_rejected() -> None:
    assert error_of({"name": "a/net-c", "namespace": "b"}) == "name: 'a/net-c' conflicts with namespace 'b'"


def test_keys_are_case_insensitive_as_in_multus() -> None:
    (selection,) = parse_networks('[{"Name": "net-a", "INTERFACE": "x0"}]', namespace="shop")
    assert (selection.name, selection.interface) == ("net-a", "x0")


def test_the_legacy_interface_key_is_used_if_the_new_one_is_absent() -> None:
    assert parse_one(interfaceRequest="old0").interface == "old0"
    assert parse_one(interfaceRequest="old0", interface="new0").interface == "new0"


@pytest.mark.parametrize("empty", [None, ""])
def test_a_key_without_a_value_counts_as_absent(empty: Any) -> None:
    keys = ("namespace", "interface", "mac", "ips", "default-route", "cni-args", "bandwidth", "deviceID")
    assert parse_one(**dict.fromkeys(keys, empty)) == NetworkSelection(namespace="shop", name="net-a")


def test_unknown_keys_and_vendor_keys_are_ignored() -> None:
    assert parse_one(**{"net.contrail/colour": {"a": [1]}, "whatever": 1}) == parse_one()


@pytest.mark.parametrize("mac", ["02:00:00:aa:bb:cc", "02-00-00-AA-BB-CC", "0200.00aa.bbcc"])
def test_every_common_notation_of_a_mac_is_accepted(mac: str) -> None:
    assert parse_one(mac=mac).mac == "02:00:00:aa:bb:cc"


@pytest.mark.parametrize(
    "mac", ["02:00:00:aa:bb", "02:00:00:aa:bb:cc:dd:ee", "02:00-00:aa:bb:cc", "0200:00aa:bbcc", "zz:00:00:00:00:01", 7]
)
def test_an_invalid_mac_is_rejected(mac: Any) -> None:
    assert error_of({"name": "a", "mac": mac}) == f"mac: {mac!r} is not a MAC address of 6 bytes"


@pytest.mark.parametrize("mac", ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"])
def test_a_group_mac_or_zero_is_rejected(mac: str) -> None:
    assert "is a group address or zero" in error_of({"name": "a", "mac": mac})


def test_one_address_per_family_can_be_requested() -> None:
    assert parse_one(ips=["fd00::5", "10.1.1.5"]).ips == ("fd00::5", "10.1.1.5")


@pytest.mark.parametrize(
    "address",
    ["10.1.1.300", "10.1.1.5/33", "10.01.1.5", "10.1.1.5/", "fe80::1%eth0", "10.1.1.5/255.255.255.0", 5, None],
)
def test_an_invalid_address_is_rejected(address: Any) -> None:
    assert error_of({"name": "a", "ips": [address]}).startswith(f"ips: {address!r} is not a")


@pytest.mark.parametrize("address", ["0.0.0.0", "224.0.0.1/4", "127.0.0.1", "::", "ff02::1"])
def test_an_address_that_is_not_unicast_is_rejected(address: str) -> None:
    assert error_of({"name": "a", "ips": [address]}).endswith("is not a unicast address")


def test_addresses_must_be_a_list() -> None:
    assert error_of({"name": "a", "ips": "10.1.1.5"}) == "ips: '10.1.1.5' is not a JSON list"


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        ("net-a", "'net-a' is not a JSON object"),
        (None, "None is not a JSON object"),
        ({}, "name is missing"),
        ({"name": ""}, "name is missing"),
        ({"name": 5}, "name: 5 is not a string"),
        ({"name": "a@x"}, "name: 'a@x' is not a valid object name"),
        ({"name": "a/b/c"}, "name: 'a/b' is not a valid namespace name"),
        ({"name": "a", "namespace": "N"}, "namespace: 'N' is not a valid namespace name"),
        ({"name": "a", "namespace": ["x"]}, "namespace: ['x'] is not a valid namespace name"),
        ({"name": "a", "cni-args": []}, "cni-args: [] is not a JSON object"),
        ({"name": "a", "interface": 4}, "interface: 4 is not a valid interface name"),
    ],
)
def test_an_invalid_element_is_reported_with_position_key_and_value(element: Any, reason: str) -> None:
    assert error_of(element).startswith(reason)


@pytest.mark.parametrize("text", ['{"name": "net-a"}', '"net-a"', '{"name": "a"}\n'])
def test_json_other_than_a_list_is_rejected(text: str) -> None:
    with pytest.raises(AnnotationError, match="is not a JSON list"):
        parse_networks(text, namespace="shop")


def test_a_bracket_brace_or_quote_makes_the_text_json() -> None:
    with pytest.raises(AnnotationError, match="line 1, column 1"):
        parse_networks("net-a,[", namespace="shop")


def test_invalid_json_is_reported_with_line_and_column() -> None:
    with pytest.raises(AnnotationError, match="line 3, column 4: Expecting"):
        parse_networks('[\n  {"name": "net-a"},\n  {name: "net-b"}\n]'.replace("{name", " name"), namespace="shop")


def test_typographic_quotes_are_reported_with_line_and_column() -> None:
    with pytest.raises(AnnotationError, match=r"“ \(U\+201C\) at line 2, column 3 is a typographic quote"):
        parse_networks('[{\n  “name”: "net-a"}]', namespace="shop")


def test_typographic_quotes_within_a_string_are_accepted() -> None:
    assert parse_one(note="“quoted”") == parse_one()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '[{"name": ' + "9" * 5000 + "}]",
        '[{"name": "\\ud800"}]',
        '[{"name": "a", "cni-args": {"x": NaN}}]',
        '[{"name": "a", "mac": ' + "[" * 500 + "]" * 500 + "}]",
        '[{"name": "' + "a" * 100_000 + '"}]',
    ],
    ids=["deep", "long number", "half a character", "no number", "deep value", "long name"],
)
def test_hostile_input_is_rejected_with_a_short_message(text: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse_networks(text, namespace="shop")
    assert len(str(caught.value)) < 600

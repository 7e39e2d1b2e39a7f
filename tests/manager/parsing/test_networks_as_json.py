"""A JSON list of objects, key by key as the multi-network standard has them."""

import json
from typing import Any

import pytest

from manager.parsing.errors import AnnotationError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import parse_networks


def parse_one(**keys: Any) -> NetworkSelection:
    (selection,) = parse_networks(json.dumps([{"name": "net-a"} | keys]), namespace="shop")
    return selection


def refusal_of(element: Any) -> str:
    with pytest.raises(AnnotationError) as caught:
        parse_networks(json.dumps([{"name": "first"}, element]), namespace="shop")
    prefix = "k8s.v1.cni.cncf.io/networks, element 2: "
    assert str(caught.value).startswith(prefix)
    return str(caught.value).removeprefix(prefix)


def test_an_element_with_every_key_that_is_served() -> None:
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


def test_addresses_and_a_mac_may_be_asked_for_as_arguments() -> None:
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
def test_arguments_that_another_plugin_may_understand_are_no_error_of_its_own(
    arguments: dict[str, Any], problem: str
) -> None:
    text = json.dumps([{"name": "net-a", "cni-args": arguments}])
    (selection,) = parse_networks(text, namespace="shop", defer_unsupported=True)
    assert selection.unsupported[0].startswith(problem)
    assert (selection.ips, selection.mac) == ((), None)


def test_the_pods_namespace_is_meant_where_none_is_stated() -> None:
    assert parse_one().key == "shop/net-a"


def test_an_empty_list_names_no_network() -> None:
    assert parse_networks(" [] ", namespace="shop") == ()


def test_the_namespace_may_stand_in_the_name_as_in_the_multi_network_design() -> None:
    assert parse_one(name="other-ns/net-c").key == "other-ns/net-c"
    assert parse_one(name="other-ns/net-c", namespace="other-ns").key == "other-ns/net-c"


def test_a_namespace_that_contradicts_the_name_is_refused() -> None:
    assert refusal_of({"name": "a/net-c", "namespace": "b"}) == "name: 'a/net-c' conflicts with namespace 'b'"


def test_keys_are_matched_without_regard_to_case_as_multus_does() -> None:
    (selection,) = parse_networks('[{"Name": "net-a", "INTERFACE": "x0"}]', namespace="shop")
    assert (selection.name, selection.interface) == ("net-a", "x0")


def test_the_legacy_key_for_the_interface_counts_where_the_new_one_is_absent() -> None:
    assert parse_one(interfaceRequest="old0").interface == "old0"
    assert parse_one(interfaceRequest="old0", interface="new0").interface == "new0"


@pytest.mark.parametrize("empty", [None, ""])
def test_a_key_without_a_value_is_as_good_as_absent(empty: Any) -> None:
    keys = ("namespace", "interface", "mac", "ips", "default-route", "cni-args", "bandwidth", "deviceID")
    assert parse_one(**dict.fromkeys(keys, empty)) == NetworkSelection(namespace="shop", name="net-a")


def test_keys_that_nobody_knows_are_ignored_those_of_vendors_too() -> None:
    assert parse_one(**{"net.contrail/colour": {"a": [1]}, "whatever": 1}) == parse_one()


@pytest.mark.parametrize("mac", ["02:00:00:aa:bb:cc", "02-00-00-AA-BB-CC", "0200.00aa.bbcc"])
def test_a_mac_is_taken_in_every_common_form(mac: str) -> None:
    assert parse_one(mac=mac).mac == "02:00:00:aa:bb:cc"


@pytest.mark.parametrize(
    "mac", ["02:00:00:aa:bb", "02:00:00:aa:bb:cc:dd:ee", "02:00-00:aa:bb:cc", "0200:00aa:bbcc", "zz:00:00:00:00:01", 7]
)
def test_what_is_no_mac_is_refused(mac: Any) -> None:
    assert refusal_of({"name": "a", "mac": mac}) == f"mac: {mac!r} is not a MAC address of 6 bytes"


@pytest.mark.parametrize("mac", ["01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"])
def test_a_mac_that_no_interface_can_have_is_refused(mac: str) -> None:
    assert "is a group address or zero" in refusal_of({"name": "a", "mac": mac})


def test_one_address_of_each_family_can_be_asked_for() -> None:
    assert parse_one(ips=["fd00::5", "10.1.1.5"]).ips == ("fd00::5", "10.1.1.5")


@pytest.mark.parametrize(
    "address",
    ["10.1.1.300", "10.1.1.5/33", "10.01.1.5", "10.1.1.5/", "fe80::1%eth0", "10.1.1.5/255.255.255.0", 5, None],
)
def test_what_is_no_address_is_refused(address: Any) -> None:
    assert refusal_of({"name": "a", "ips": [address]}).startswith(f"ips: {address!r} is not a")


@pytest.mark.parametrize("address", ["0.0.0.0", "224.0.0.1/4", "127.0.0.1", "::", "ff02::1"])
def test_an_address_that_no_interface_can_have_is_refused(address: str) -> None:
    assert refusal_of({"name": "a", "ips": [address]}).endswith("is not a unicast address")


def test_addresses_must_be_a_list() -> None:
    assert refusal_of({"name": "a", "ips": "10.1.1.5"}) == "ips: '10.1.1.5' is not a JSON list"


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
def test_a_malformed_element_is_named_by_position_key_and_value(element: Any, reason: str) -> None:
    assert refusal_of(element).startswith(reason)


@pytest.mark.parametrize("text", ['{"name": "net-a"}', '"net-a"', '{"name": "a"}\n'])
def test_anything_but_a_list_is_refused(text: str) -> None:
    with pytest.raises(AnnotationError, match="is not a JSON list"):
        parse_networks(text, namespace="shop")


def test_json_is_known_by_any_bracket_brace_or_quote() -> None:
    with pytest.raises(AnnotationError, match="line 1, column 1"):
        parse_networks("net-a,[", namespace="shop")


def test_invalid_json_is_told_with_line_and_column() -> None:
    with pytest.raises(AnnotationError, match="line 3, column 4: Expecting"):
        parse_networks('[\n  {"name": "net-a"},\n  {name: "net-b"}\n]'.replace("{name", " name"), namespace="shop")


def test_typographic_quotes_are_named_with_line_and_column() -> None:
    with pytest.raises(AnnotationError, match=r"“ \(U\+201C\) at line 2, column 3 is a typographic quote"):
        parse_networks('[{\n  “name”: "net-a"}]', namespace="shop")


def test_typographic_quotes_within_a_text_do_no_harm() -> None:
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
def test_hostile_texts_are_refused_in_a_message_of_bounded_length(text: str) -> None:
    with pytest.raises(AnnotationError) as caught:
        parse_networks(text, namespace="shop")
    assert len(str(caught.value)) < 600

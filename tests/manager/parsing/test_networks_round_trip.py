"""Every valid selection round-trips in either form; any other text raises AnnotationError and nothing else."""

import contextlib
import json
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from manager.parsing.errors import AnnotationError
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.networks import parse_networks

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=3).map(".".join)
interfaces = st.from_regex(r"[A-Za-z][A-Za-z0-9._-]{0,14}", fullmatch=True).filter(
    lambda name: name not in {"eth0", "lo", "all", "default"}
)
ipv4 = st.integers(0x0A000000, 0x0AFFFFFF).map(lambda number: str(IPv4Address(number)))
ipv6 = st.integers(0, 2**64 - 1).map(lambda number: str(IPv6Address((0xFD00 << 112) + number)))
pairs = st.tuples(st.lists(ipv4, max_size=1), st.lists(ipv6, max_size=1)).map(lambda both: (*both[0], *both[1]))
macs = st.binary(min_size=5, max_size=5).map(lambda octets: (b"\x02" + octets).hex(":"))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)

short = st.builds(NetworkSelection, namespace=labels, name=names, interface=st.none() | interfaces)
full = st.builds(
    NetworkSelection,
    namespace=labels,
    name=names,
    interface=st.none() | interfaces,
    mac=st.none() | macs,
    ips=pairs,
    default_route=st.none() | pairs,
    cni_args=st.none() | st.dictionaries(st.text(), json_values, max_size=3),
)


def is_valid_combination(selections: Sequence[NetworkSelection]) -> bool:
    asked = [selection.interface for selection in selections if selection.interface]
    carriers = [selection for selection in selections if selection.default_route is not None]
    return len(asked) == len(set(asked)) and len(carriers) <= 1


def as_short_form(selection: NetworkSelection) -> str:
    return f"{selection.key}@{selection.interface}" if selection.interface else selection.key


def as_object(selection: NetworkSelection) -> dict[str, Any]:
    keys = {
        "name": selection.name,
        "namespace": selection.namespace,
        "interface": selection.interface,
        "mac": selection.mac,
        "ips": list(selection.ips) or None,
        "default-route": None if selection.default_route is None else list(selection.default_route),
        "cni-args": selection.cni_args,
    }
    return {key: value for key, value in keys.items() if value is not None}


@given(st.lists(short, max_size=5).filter(is_valid_combination))
def test_the_short_form_round_trips(selections: list[NetworkSelection]) -> None:
    text = ", ".join(as_short_form(selection) for selection in selections)
    assert parse_networks(text, namespace="shop") == tuple(selections)


@given(st.lists(full, max_size=5).filter(is_valid_combination), st.sampled_from([None, 2]))
def test_the_json_form_round_trips(selections: list[NetworkSelection], indent: int | None) -> None:
    text = json.dumps([as_object(selection) for selection in selections], indent=indent)
    assert parse_networks(text, namespace="shop") == tuple(selections)


def parse_or_reject(text: str) -> None:
    with contextlib.suppress(AnnotationError):
        assert is_valid_combination(parse_networks(text, namespace="shop"))


@given(st.text())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    parse_or_reject(text)


@given(st.text(alphabet='[]{}",:/@ \n“”.-_neta019%\\u', max_size=60))
def test_any_text_that_resembles_an_annotation_is_parsed_or_rejected(text: str) -> None:
    parse_or_reject(text)


KEYS = ("name", "namespace", "interface", "mac", "ips", "default-route", "cni-args", "bandwidth", "x.y/z")


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), json_values | labels, max_size=5) | json_values, max_size=3))
def test_any_json_is_parsed_or_rejected(elements: list[Any]) -> None:
    parse_or_reject(json.dumps(elements))

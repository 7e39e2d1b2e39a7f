"""The desired state of the node's datapath as the agent sends it, strictly validated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cni_contrail.addresses import canonical_address, canonical_cidr
from cni_contrail.datapath.desired import LocalPort, Masquerade, Network, Routed, RoutedPort
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.links import packed_mac, packed_name
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address
from cni_contrail.quoting import quoted

_MAX_VNI = (1 << 24) - 1
_MTU = range(68, 65536)


class DesiredState(NamedTuple):
    """`version` is opaque: the agent answers the next request only when it has another one."""

    version: str
    networks: tuple[Network, ...]
    routed: Routed


def read_desired_state(body: bytes) -> DesiredState:
    """Parses the body of the agent's answer; raises `PluginError` with code 100 that names key and value."""
    try:
        document = json.loads(body)
        return DesiredState(_text(document["version"]), tuple(_networks(document["networks"])), _routed(document))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise PluginError(
            Code.BAD_AGENT_RESPONSE, f"agent's desired state of the datapath: {_reason(error)}"
        ) from error


def _networks(items: object) -> Iterator[Network]:
    for item in _list(items):
        yield Network(
            vni=_number(item["vni"], "vni", range(1, _MAX_VNI + 1)),
            mtu=_number(item["mtu"], "mtu", _MTU),
            gateways=tuple(_gateway(each) for each in _list(item["gateways"])),
            ports=tuple(_port(each) for each in _list(item["ports"])),
            snat=_flag(item["snat"], "snat"),
            forwarding=_flag(item["forwarding"], "forwarding"),
        )


def _routed(document: Mapping[str, Any]) -> Routed:
    ports = tuple(
        RoutedPort(*_port(item), tuple(_address(each) for each in _list(item["gateways"])))
        for item in _list(document["routed"])
    )
    masquerade = document["masquerade"]
    if masquerade is None:
        return Routed(ports, None)
    return Routed(ports, Masquerade(tuple(_cidr(each) for each in _list(masquerade["excluded"]))))


def _cidr(value: object) -> str:
    cidr = canonical_cidr(value)
    if cidr is None:
        raise ValueError(f"an excluded network must be a CIDR, not {quoted(value)}")
    return cidr


def _port(item: Mapping[str, Any]) -> LocalPort:
    link, mac = _text(item["link"]), _text(item["mac"])
    packed_name(link)
    packed_mac(mac)
    return LocalPort(link, mac, tuple(_address(each) for each in _list(item["addresses"])))


def _gateway(value: object) -> Address:
    address, _, length = _text(value).partition("/")
    if canonical_cidr(value) is None or not length.isdigit():
        raise ValueError(f"a gateway must be an address with its prefix length, not {quoted(value)}")
    return Address(_address(address), int(length))


def _address(value: object) -> str:
    address = canonical_address(_text(value))
    if address is None:
        raise ValueError(f"an address must be one of IPv4 or IPv6, not {quoted(value)}")
    return address


def _number(value: object, key: str, allowed: range) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise ValueError(f"{key} must be a whole number from {allowed[0]} to {allowed[-1]}, not {quoted(value)}")
    return value


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{key} must be true or false, not {quoted(value)}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"must be a list, not {quoted(value)}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be a string, not {quoted(value)}")
    return value


def _reason(error: Exception) -> str:
    return f"key {error} is missing" if isinstance(error, KeyError) else str(error)

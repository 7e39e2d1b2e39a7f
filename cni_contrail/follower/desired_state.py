"""The desired state of the node's datapath as the agent sends it, strictly validated.

Agent and daemon are replaced one after the other. So unknown keys, which a newer agent sends, are ignored, and one that
an older agent does not send has a default that keeps what that agent meant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cni_contrail.addresses import canonical_cidr
from cni_contrail.datapath.desired import LocalPort, Masquerade, Network, Routed, RoutedPort, Underlay
from cni_contrail.errors import Code, PluginError
from cni_contrail.follower.fields import address, cidr, flag, items, mac, number, text
from cni_contrail.follower.remote_state import read_blocks, read_remotes, read_underlay
from cni_contrail.link.links import packed_name
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address
from cni_contrail.quoting import quoted

MAX_BYTES = 64 << 20
"""Longest desired state that is read: each pod on another node takes about 100 bytes."""

_MAX_VNI = (1 << 24) - 1
_MTU = range(68, 65536)
_UNKNOWN_MTU = 0
_CLUSTER = 0  # number of the cluster's network at index 0


class DesiredState(NamedTuple):
    """`version` is opaque: the agent answers the next request only when it has another one.

    `fabric_subnets` are the CIDRs within which subnets may have a route.
    """

    version: str
    networks: tuple[Network, ...]
    routed: Routed
    underlay: Underlay
    fabric_subnets: tuple[str, ...]


def read_desired_state(body: bytes) -> DesiredState:
    """Parses the body of the agent's answer; raises `PluginError` with code 100 that names key and value."""
    try:
        document = json.loads(body)
        return DesiredState(
            version=text(document["version"]),
            networks=tuple(_networks(document["networks"])),
            routed=_routed(document),
            underlay=read_underlay(document),
            fabric_subnets=_cidrs(document.get("fabric-subnets", [])),
        )
    except (AttributeError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise PluginError(
            Code.BAD_AGENT_RESPONSE, f"agent's desired state of the datapath: {_reason(error)}"
        ) from error


def _networks(values: object) -> Iterator[Network]:
    for item in items(values):
        yield Network(
            vni=number(item["vni"], "vni", range(1, _MAX_VNI + 1)),
            mtu=number(item["mtu"], "mtu", _MTU),
            gateways=tuple(_gateway(each) for each in items(item["gateways"])),
            ports=tuple(_port(each) for each in items(item["ports"])),
            snat=flag(item["snat"], "snat"),
            forwarding=flag(item["forwarding"], "forwarding"),
            remotes=read_remotes(item),
            blocks=read_blocks(item.get("remote-blocks", [])),
            is_complete=flag(item.get("complete", True), "complete"),
            is_routed=flag(item.get("routed", False), "routed"),
            largest_mtu=number(item["largest-mtu"], "largest-mtu", _MTU) if "largest-mtu" in item else None,
        )


def _routed(document: Mapping[str, Any]) -> Routed:
    ports = tuple(_routed_port(item) for item in items(document["routed"]))
    masquerade = document["masquerade"]
    if masquerade is None:
        return Routed(ports, None)
    return Routed(ports, Masquerade(_cidrs(masquerade["excluded"])))


def _routed_port(item: Mapping[str, Any]) -> RoutedPort:
    gateways = tuple(address(each) for each in items(item["gateways"]))
    network = number(item.get("network", _CLUSTER), "network", range(_MAX_VNI + 1))
    link, own_mac, addresses, mtu = _port(item)
    return RoutedPort(link, own_mac, addresses, gateways, network, mtu)


def _cidrs(values: object) -> tuple[str, ...]:
    return tuple(cidr(each) for each in items(values))


def _port(item: Mapping[str, Any]) -> LocalPort:
    link = text(item["link"])
    packed_name(link)
    mtu = number(item.get("mtu", _UNKNOWN_MTU), "mtu", range(_UNKNOWN_MTU, _MTU.stop))
    return LocalPort(link, mac(item["mac"]), tuple(address(each) for each in items(item["addresses"])), mtu)


def _gateway(value: object) -> Address:
    local, _, length = text(value).partition("/")
    if canonical_cidr(value) is None or not length.isdigit():
        raise ValueError(f"a gateway must be an address with its prefix length, not {quoted(value)}")
    return Address(address(local), int(length))


def _reason(error: Exception) -> str:
    return f"key {error} is missing" if isinstance(error, KeyError) else str(error)

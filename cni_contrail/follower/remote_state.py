"""The part of the agent's desired state that is about other nodes. All keys are optional.

Each function raises ValueError, TypeError or KeyError for what is malformed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cni_contrail.datapath.desired import RemoteAddress, RemoteBlock, RemoteEndpoint, RoutedNetwork, Underlay
from cni_contrail.follower.fields import address, cidr, flag, items, mac, number

DEFAULT_PORT = 4789
"""UDP port of VXLAN (RFC 7348)."""

_PORTS = range(1, 1 << 16)
_VNIS = range(1, 1 << 24)
_MTU = range(68, 65536)


def read_underlay(document: Mapping[str, Any]) -> Underlay:
    """Returns how this node reaches others."""
    tunnel, routed = document.get("tunnel"), _routed_network(document.get("routed-network"))
    if tunnel is None:
        return Underlay((), DEFAULT_PORT, frozenset(), routed)
    addresses = tuple(address(each) for each in items(tunnel["addresses"]))
    if not addresses or len(addresses) != len({":" in each for each in addresses}):
        raise ValueError(f"a node has one tunnel address of each family, not {', '.join(addresses) or 'none'}")
    peers = {address(each) for node in items(document.get("nodes", [])) for each in items(node["addresses"])}
    port = number(tunnel["port"], "port", _PORTS)
    return Underlay(addresses, port, frozenset(peers), routed)


def read_remotes(item: Mapping[str, Any]) -> tuple[RemoteEndpoint, ...]:
    """Returns the endpoints of a network on other nodes."""
    return tuple(
        RemoteEndpoint(
            mac(each["mac"]), tuple(address(local) for local in items(each["addresses"])), address(each["tunnel"])
        )
        for each in items(item.get("remotes", []))
    )


def read_blocks(values: object) -> tuple[RemoteBlock, ...]:
    """Returns blocks of addresses on other nodes."""
    return tuple(RemoteBlock(cidr(each["cidr"]), address(each["tunnel"])) for each in items(values))


def _routed_network(item: Mapping[str, Any] | None) -> RoutedNetwork | None:
    if item is None:
        return None
    return RoutedNetwork(
        vni=number(item["vni"], "vni", _VNIS),
        mtu=number(item["mtu"], "mtu", _MTU),
        addresses=tuple(address(each) for each in items(item.get("addresses", []))),
        own_blocks=tuple(cidr(each) for each in items(item.get("own-blocks", []))),
        remotes=read_blocks(item.get("remotes", [])),
        is_complete=flag(item.get("complete", True), "complete"),
        node_addresses=tuple(
            RemoteAddress(address(each["address"]), address(each["tunnel"]))
            for each in items(item.get("node-addresses", []))
        ),
    )

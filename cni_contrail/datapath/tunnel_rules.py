"""Filter of tunnel packets on the node: only the nodes' own pass, as one nf_tables table in the node's namespace.

The sets `ipv4` and `ipv6` have the tunnel addresses of all nodes, this one's included.

Chain `from_nodes`, on packets to the node itself: of those to the UDP port of tunnels only the ones from an address in
the sets to one in the sets pass. Others are dropped and counted. Later fragments of a packet have no port and pass, but
the first one has, so the packet stays incomplete. The destination counts since the kernel's tunnels take packets to any
address of the node, and the nodes' `to_nodes` know of the tunnel addresses only.

Chain `to_nodes`, on packets that the node forwards: none goes to the UDP port of tunnels of a known node. A pod could
otherwise send tunnel packets of its own, which the masquerade gives the address of its node. The tunnels' packets are
not forwarded, but the node's. Not promised: that a process in the node's own namespace does not send any.

The port is the tunnels' alone: packets of another program that uses VXLAN on the same port are dropped, too, unless
they come from a known node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.nftables_messages import Chain, Expression, KeyField
from cni_contrail.datapath.rule_texts import DESTINATION, SOURCE, Field, RuleText, is_family, with_digests
from cni_contrail.link.addresses import packed
from cni_contrail.link.message import NetlinkRequest

TABLE = nft.Table(nft.INET, "contrail-tunnels")
SETS: Mapping[str, tuple[KeyField, ...]] = {"ipv4": (nft.IPV4,), "ipv6": (nft.IPV6,)}
COUNTED = ("drop from unknown nodes", "drop forwarded to")
"""Beginnings of the comments of rules that count dropped packets."""

MODULES: Mapping[str, str] = {"add a rule": "nf_tables"}
"""Kernel module that is missing if the request that begins so fails (`missing_modules`)."""

_FROM_NODES, _TO_NODES = "from_nodes", "to_nodes"
_INPUT, _FORWARD = 1, 2  # NF_INET_LOCAL_IN, NF_INET_FORWARD
_RAW = -300  # NF_IP_PRI_RAW
_UDP = b"\x11"
_DESTINATION_PORT = (nft.TRANSPORT, 2, 2)

CHAINS = (Chain(_FROM_NODES, _INPUT, _RAW), Chain(_TO_NODES, _FORWARD, _RAW))


def rules(port: int) -> list[RuleText]:
    """Returns all rules of the table."""
    return with_digests(_rules(port))


def replace_table(port: int) -> list[NetlinkRequest]:
    """Requests to replace the whole table by one with empty sets, whatever is left of it; part of one transaction."""
    return [
        # Created first, so that the deletion never fails.
        nft.new_table(TABLE),
        nft.delete_table(TABLE),
        nft.new_table(TABLE),
        *(nft.new_set(TABLE, name, key, identifier) for identifier, (name, key) in enumerate(SETS.items(), start=1)),
        *(nft.new_chain(TABLE, chain) for chain in CHAINS),
        *(nft.new_rule(TABLE, rule.chain, rule.expressions, rule.comment) for rule in rules(port)),
    ]


def add_nodes(addresses: Iterable[str]) -> list[NetlinkRequest]:
    """Requests to accept packets between these addresses."""
    return [request for name, keys in _by_set(addresses) for request in nft.add_elements(TABLE, name, keys)]


def remove_nodes(addresses: Iterable[str]) -> list[NetlinkRequest]:
    """Requests not to accept packets from these addresses, or to them, any more."""
    return [request for name, keys in _by_set(addresses) for request in nft.delete_elements(TABLE, name, keys)]


def _by_set(addresses: Iterable[str]) -> Iterator[tuple[str, list[bytes]]]:
    keys: dict[str, list[bytes]] = {}
    for address in addresses:
        keys.setdefault("ipv6" if ":" in address else "ipv4", []).append(packed(address)[1])
    return iter(keys.items())


def _rules(port: int) -> Iterator[RuleText]:
    to_port = (*_is(nft.load_meta(nft.L4PROTO, 0), _UDP), *_is(nft.load_payload(*_DESTINATION_PORT, 0), _packed(port)))
    for family, name in ((nft.IPV4_FAMILY, "ipv4"), (nft.IPV6_FAMILY, "ipv6")):
        between_nodes = (*_is_node(SOURCE[family], name), *_is_node(DESTINATION[family], name))
        accept = (*to_port, *is_family(family), *between_nodes, nft.verdict(nft.ACCEPT))
        yield RuleText(_FROM_NODES, accept, f"accept from {name}")
    yield RuleText(_FROM_NODES, (*to_port, nft.count(), nft.verdict(nft.DROP)), COUNTED[0])
    for family, name in ((nft.IPV4_FAMILY, "ipv4"), (nft.IPV6_FAMILY, "ipv6")):
        to_node = _is_node(DESTINATION[family], name)
        drop = (*to_port, *is_family(family), *to_node, nft.count(), nft.verdict(nft.DROP))
        yield RuleText(_TO_NODES, drop, f"{COUNTED[1]} {name}")


def _is_node(field: Field, name: str) -> tuple[Expression, ...]:
    return nft.load_payload(*field, 0), nft.is_element(name)


def _is(load: Expression, value: bytes) -> tuple[Expression, ...]:
    return load, nft.equals(0, value)


def _packed(port: int) -> bytes:
    return port.to_bytes(2, "big")

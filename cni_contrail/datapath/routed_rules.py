"""Filter and address translation of routed ports, as one nf_tables table of both IP families in the node's namespace.

Chain `from_ports`, before connection tracking. Packets of other links leave it by the first rule, whatever else the
node does; of a routed port only those pass whose link and source address are an element of `ipv4` or `ipv6`:

- a link that is in `ports` and has no other element is mute;
- the unspecified address of IPv6 (duplicate address detection, multicast reports) is dropped without being counted.

Chain `to_outside`, only with masquerade: new connections from a routed port to what is neither another port nor in an
excluded network get the node's address.

Each rule has a comment that ends in a digest of the rule, so that a dump tells whether the table is whole: what the
kernel reports of a rule is not what it was given.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.nftables_messages import Expression, KeyField
from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import LinkError
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import packed_destination

TABLE = nft.Table(nft.INET, "contrail")
PORTS, IPV4, IPV6 = "ports", "ipv4", "ipv6"
SETS: Mapping[str, tuple[KeyField, ...]] = {
    PORTS: (nft.INTERFACE,),
    IPV4: (nft.INTERFACE, nft.IPV4),
    IPV6: (nft.INTERFACE, nft.IPV6),
}
SPOOFED = "drop spoofed source"
"""Beginning of the comment of the rule that counts dropped packets."""

MODULES: Mapping[str, str] = {
    "create chain to_outside": "nft_chain_nat",
    "add a rule to chain to_outside (masquerade": "nft_masq",
    "add a rule": "nf_tables",
}
"""Kernel module that is missing if the request that begins so fails (`missing_modules`)."""

_FROM_PORTS, _TO_OUTSIDE = "from_ports", "to_outside"
_PREROUTING, _POSTROUTING = 0, 4  # NF_INET_...
_RAW, _SOURCE_NAT = -300, 100  # NF_IP_PRI_RAW, NF_IP_PRI_NAT_SRC
_SOURCE = {nft.IPV4_FAMILY: (nft.NETWORK, 12, 4), nft.IPV6_FAMILY: (nft.NETWORK, 8, 16)}
_DESTINATION = {4: (nft.NETWORK, 16, 4), 16: (nft.NETWORK, 24, 16)}
_UNSPECIFIED = bytes(16)


class RuleText(NamedTuple):
    """A rule: its chain, its steps, and its comment."""

    chain: str
    expressions: tuple[Expression, ...]
    comment: str


def rules(masquerade: Masquerade | None) -> list[RuleText]:
    """Returns all rules of the table; raises LinkError if an excluded network is malformed."""
    found = [*_from_ports()]
    try:
        found += [] if masquerade is None else _to_outside(masquerade)
    except ValueError as error:
        raise LinkError(f"masquerade: {error}") from error
    return [rule._replace(comment=f"{rule.comment} {_digest(rule)}") for rule in found]


def create_table(masquerade: Masquerade | None) -> list[NetlinkRequest]:
    """Requests the whole table with empty sets, as part of one transaction; EEXIST if there is one."""
    return [nft.new_exclusive_table(TABLE), *_contents(masquerade)]


def replace_table(masquerade: Masquerade | None) -> list[NetlinkRequest]:
    """Requests to replace the whole table, whatever is left of it."""
    # Created first, so that the deletion never fails.
    return [nft.new_table(TABLE), nft.delete_table(TABLE), *create_table(masquerade)]


def port_element(ifindex: int) -> tuple[str, bytes]:
    """Returns the set and the key of a routed port: what it sends is filtered."""
    return PORTS, struct.pack("=I", ifindex)


def source_element(ifindex: int, address: str) -> tuple[str, bytes]:
    """Returns the set and the key of an address that may be sent from."""
    local = packed(address)[1]
    return (IPV4 if len(local) == 4 else IPV6), nft.key_of([struct.pack("=I", ifindex), local])


def add_elements(elements: Iterable[tuple[str, bytes]]) -> list[NetlinkRequest]:
    """Requests elements, one message for each set; those that exist stay."""
    return [nft.add_elements(TABLE, name, keys) for name, keys in _by_set(elements)]


def delete_elements(elements: Iterable[tuple[str, bytes]]) -> list[NetlinkRequest]:
    """Requests to delete elements, one message for each set."""
    return [nft.delete_elements(TABLE, name, keys) for name, keys in _by_set(elements)]


def _by_set(elements: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    grouped: dict[str, list[bytes]] = {}
    for name, key in elements:
        grouped.setdefault(name, []).append(key)
    return iter(grouped.items())


def _contents(masquerade: Masquerade | None) -> Iterator[NetlinkRequest]:
    for identifier, (name, key) in enumerate(SETS.items(), start=1):
        yield nft.new_set(TABLE, name, key, identifier)
    yield nft.new_chain(TABLE, _FROM_PORTS, hook=_PREROUTING, priority=_RAW, policy=nft.ACCEPT)
    if masquerade is not None:
        yield nft.new_chain(TABLE, _TO_OUTSIDE, hook=_POSTROUTING, priority=_SOURCE_NAT, policy=nft.ACCEPT, kind="nat")
    for rule in rules(masquerade):
        yield nft.new_rule(TABLE, rule.chain, rule.expressions, rule.comment)


def _from_ports() -> Iterator[RuleText]:
    accept, drop = nft.verdict(nft.ACCEPT), nft.verdict(nft.DROP)
    iif = nft.load_meta(nft.IIF, 0)
    yield RuleText(_FROM_PORTS, (iif, nft.is_not_element(PORTS), accept), "accept other links")
    for family, name in ((nft.IPV4_FAMILY, IPV4), (nft.IPV6_FAMILY, IPV6)):
        source = (iif, nft.load_payload(*_SOURCE[family], 1), nft.is_element(name))
        yield RuleText(_FROM_PORTS, (*_is_family(family), *source, accept), f"accept own {name}")
    unspecified = (nft.load_payload(*_SOURCE[nft.IPV6_FAMILY], 0), nft.equals(0, _UNSPECIFIED))
    yield RuleText(_FROM_PORTS, (*_is_family(nft.IPV6_FAMILY), *unspecified, drop), "drop without address")
    yield RuleText(_FROM_PORTS, (nft.count(), drop), SPOOFED)


def _to_outside(masquerade: Masquerade) -> Iterator[RuleText]:
    accept = nft.verdict(nft.ACCEPT)
    from_others = (nft.load_meta(nft.IIF, 0), nft.is_not_element(PORTS), accept)
    yield RuleText(_TO_OUTSIDE, from_others, "accept other links")
    yield RuleText(_TO_OUTSIDE, (nft.load_meta(nft.OIF, 0), nft.is_element(PORTS), accept), "accept to pods")
    for network in masquerade.excluded:
        yield RuleText(_TO_OUTSIDE, (*_is_in(network), accept), f"accept to {network}")
    yield RuleText(_TO_OUTSIDE, (nft.masquerade(),), "masquerade")


def _is_in(network: str) -> tuple[Expression, ...]:
    """The destination is in the network; raises ValueError if it is malformed."""
    _, address, length = packed_destination(network)
    bits = 8 * len(address)
    prefix = ((1 << bits) - 1 ^ (1 << bits - length) - 1).to_bytes(len(address), "big")
    value = (int.from_bytes(address, "big") & int.from_bytes(prefix, "big")).to_bytes(len(address), "big")
    family = nft.IPV4_FAMILY if len(address) == 4 else nft.IPV6_FAMILY
    field = nft.load_payload(*_DESTINATION[len(address)], 0)
    return (*_is_family(family), field, nft.mask(0, prefix), nft.equals(0, value))


def _is_family(family: int) -> tuple[Expression, ...]:
    return nft.load_meta(nft.NFPROTO, 0), nft.equals(0, bytes((family,)))


def _digest(rule: RuleText) -> str:
    return hashlib.blake2b(b"".join((rule.chain.encode(), *rule.expressions)), digest_size=6).hexdigest()

"""Filter of a network: what its pods may send, as nf_tables rules of the bridge family.

Chain `from_ports`, on what comes in from the ports of pods; what no rule accepts is dropped and counted as spoofing, in
chain `spoofed`, also by port in the set of that name. What comes from tunnels is accepted: the node of the sender has
filtered it (`tunnel_rules` says who is a node). From ports these are accepted:

- IPv4 and IPv6 packets whose port, MAC and source address are an element of the sets `ipv4` and `ipv6`;
- ARP packets whose sender, both in the frame and in the message, is an element: a pod cannot claim another's address;
- neighbour advertisements whose target is an element, too. Router advertisements and redirects are never accepted,
  except behind an authentication header, with which Linux discards packets of strangers. So that they cannot hide in
  fragments, the first fragment of an ICMPv6 message must contain its type.

Frames with a VLAN tag and other protocols have no rule. A port without elements is mute. The unspecified address of
IPv6 (duplicate address detection, multicast reports) is dropped without being counted: every honest pod sends it.

Chain `between_ports`, on what is forwarded: of broadcast and multicast only what ARP and neighbour discovery need. The
rest is counted as broadcast, once for each port that it would have reached.

Chain `from_bridge`, on what the bridge itself sends: no redirects, which the kernel sends for each packet that leaves
by the link by which it came, as those between pods of a routed network do. For IPv6 it has no setting.

Comments of rules end in digests (`rule_texts`), so that a rule of somebody else, or of another version, is found.

Sources: RFC 826, RFC 4861 (sections 4.2 to 4.5), RFC 6980 and RFC 7112 for why the message type is read behind
extension headers, and must be there.
"""

from __future__ import annotations

import functools
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.entries import Source
from cni_contrail.datapath.nftables_messages import Chain, Expression, KeyField, Rule
from cni_contrail.datapath.nftables_tables import TableState
from cni_contrail.datapath.rule_texts import RuleText, with_digests
from cni_contrail.datapath.tunnel_names import BRIDGED
from cni_contrail.link.addresses import packed
from cni_contrail.link.links import packed_mac
from cni_contrail.link.message import NetlinkRequest
from cni_contrail.link.named_tuple import NamedTuple

TABLE = nft.Table(nft.BRIDGE, "contrail")
SETS: Mapping[str, tuple[KeyField, ...]] = {
    "ipv4": (nft.INTERFACE, nft.MAC, nft.IPV4),
    "ipv6": (nft.INTERFACE, nft.MAC, nft.IPV6),
}
SPOOFED = "spoofed"
"""Set of ports from which packets were dropped as spoofing, with their number."""

MODULES: Mapping[str, str] = {"add a rule to chain from_ports": "nft_meta_bridge"}
"""Kernel module that is missing if the request that begins so fails (`missing_modules`)."""

_FROM_PORTS, _BETWEEN_PORTS, _FROM_BRIDGE = "from_ports", "between_ports", "from_bridge"
_PREROUTING, _FORWARD, _OUTPUT = 0, 2, 3  # NF_BR_PRE_ROUTING, NF_BR_FORWARD, NF_BR_LOCAL_OUT
_PRIORITY = -200  # NF_BR_PRI_FILTER_BRIDGED
_CHAINS = (
    Chain(SPOOFED),
    Chain(_FROM_PORTS, _PREROUTING, _PRIORITY, nft.DROP),
    Chain(_BETWEEN_PORTS, _FORWARD, _PRIORITY),
    Chain(_FROM_BRIDGE, _OUTPUT, _PRIORITY),
)

_ETHERNET_SOURCE, _ETHERNET_TYPE = (nft.LINK_LAYER, 6, 6), (nft.LINK_LAYER, 12, 2)
_IPV4_SOURCE, _IPV6_SOURCE = (nft.NETWORK, 12, 4), (nft.NETWORK, 8, 16)
_ARP_SENDER_MAC, _ARP_SENDER = (nft.NETWORK, 8, 6), (nft.NETWORK, 14, 4)
_ICMP_TYPE, _ND_TARGET = (nft.TRANSPORT, 0, 1), (nft.TRANSPORT, 8, 16)
_ICMPV6 = b"\x3a"
_FRAGMENT = 44
_FRAGMENT_OFFSET = (2, 2)  # where it is in the extension header
_OFFSET_BITS = b"\xff\xf8"
_SOLICITATION, _ADVERTISEMENT = b"\x87", b"\x88"
_REDIRECT = b"\x89"
_NEVER_FROM_PODS = {b"\x86": "drop router advertisements", _REDIRECT: "drop redirects"}
_IPV4, _ARP, _IPV6 = b"\x08\x00", b"\x08\x06", b"\x86\xdd"
_UNSPECIFIED = bytes(16)
_GROUP_BIT = b"\x01"  # of the first byte of a MAC: broadcast or multicast

_Field = tuple[int, int, int]


_NO_PORTS: Mapping[str, int] = {}


class Drops(NamedTuple):
    """Packets that the filter has dropped since it was made, by reason; `tunnel`: of tunnels, from unknown nodes.

    `mtu`: what the kernel has not routed since it is too large (`too_large`), in a network only.
    `ports`: those dropped as spoofing by link, of links that exist, without zeros.
    """

    spoofing: int
    broadcast: int
    tunnel: int = 0
    mtu: int = 0
    ports: Mapping[str, int] = _NO_PORTS


def create_filter() -> list[NetlinkRequest]:
    """Requests the whole filter, with empty sets; part of one transaction."""
    return [
        nft.new_table(TABLE),
        *(nft.new_set(TABLE, name, key, identifier) for identifier, (name, key) in enumerate(SETS.items(), start=1)),
        nft.new_counting_set(TABLE, SPOOFED, nft.INTERFACE, len(SETS) + 1),
        *(nft.new_chain(TABLE, chain) for chain in _CHAINS),
        *(nft.new_rule(TABLE, rule.chain, rule.expressions, rule.comment) for rule in _complete()),
    ]


def replace_filter() -> list[NetlinkRequest]:
    """Requests to replace the whole filter, whatever is left of it."""
    # Created first, so that the deletion never fails.
    return [nft.new_table(TABLE), nft.delete_table(TABLE), *create_filter()]


def is_complete(found: TableState) -> bool:
    """Returns whether this is the filter as this version makes it, with any elements."""
    return found.is_whole(_CHAINS, _complete())


def drops_of(rules: Iterable[Rule], ports: Mapping[str, int]) -> Drops:
    """Returns the sums of the rules' counters, as each chain drops for one reason, with those of the ports."""
    packets = Counter[str]()
    for rule in rules:
        packets[rule.chain] += rule.packets
    return Drops(spoofing=packets[SPOOFED], broadcast=packets[_BETWEEN_PORTS], ports=ports)


def forget_ports(indexes: Iterable[int]) -> list[NetlinkRequest]:
    """Requests to remove the counts of ports that are gone."""
    return nft.delete_elements(TABLE, SPOOFED, [nft.index_key(index) for index in indexes])


def element(source: Source, ifindex: int) -> tuple[str, bytes]:
    """Returns the set and the key of a filter element; `ifindex` is that of its port."""
    family_bytes = packed(source.address)[1]
    key = nft.key_of([struct.pack("=I", ifindex), packed_mac(source.mac), family_bytes])
    return ("ipv4" if len(family_bytes) == 4 else "ipv6"), key


def change_elements(add: Iterable[tuple[str, bytes]], remove: Iterable[tuple[str, bytes]]) -> Iterator[NetlinkRequest]:
    """Requests to add and to remove elements."""
    for request, elements in ((nft.add_elements, list(add)), (nft.delete_elements, list(remove))):
        for name in SETS:
            yield from request(TABLE, name, [key for set_name, key in elements if set_name == name])


@functools.cache
def _complete() -> tuple[RuleText, ...]:
    return tuple(with_digests(_rules()))


def _rules() -> Iterator[RuleText]:
    accept, drop, spoofed = nft.verdict(nft.ACCEPT), nft.verdict(nft.DROP), nft.go_to(SPOOFED)
    arp, ipv4, ipv6 = _is(_ETHERNET_TYPE, _ARP), _is(_ETHERNET_TYPE, _IPV4), _is(_ETHERNET_TYPE, _IPV6)
    icmpv6 = [*ipv6, nft.load_meta(nft.L4PROTO, 0), nft.equals(0, _ICMPV6)]
    other = [*ipv6, nft.load_meta(nft.L4PROTO, 0), nft.differs(0, _ICMPV6)]
    claim = _is_source("ipv4", _ARP_SENDER_MAC, _ARP_SENDER)
    target = _is_source("ipv6", _ETHERNET_SOURCE, _ND_TARGET)
    source = _is_source("ipv6", _ETHERNET_SOURCE, _IPV6_SOURCE)
    group = [nft.load_payload(nft.LINK_LAYER, 0, 1, 0), nft.mask(0, _GROUP_BIT), nft.equals(0, _GROUP_BIT)]
    for tunnel in BRIDGED:
        from_tunnel = (nft.load_meta(nft.IIFNAME, 0), nft.equals(0, f"{tunnel}\0".encode()))
        yield RuleText(_FROM_PORTS, (*from_tunnel, accept), f"accept from {tunnel}")
    for chain, expressions, text in (
        (_FROM_PORTS, [*ipv4, *_is_source("ipv4", _ETHERNET_SOURCE, _IPV4_SOURCE), accept], "accept IPv4"),
        (_FROM_PORTS, [*arp, *_is_source("ipv4", _ETHERNET_SOURCE, _ARP_SENDER), *claim, accept], "accept ARP"),
        *((_FROM_PORTS, [*icmpv6, *_is(_ICMP_TYPE, kind), spoofed], text) for kind, text in _NEVER_FROM_PODS.items()),
        (_FROM_PORTS, [*icmpv6, *_is(_ICMP_TYPE, _ADVERTISEMENT), *source, *target, accept], "accept advertisements"),
        (_FROM_PORTS, [*icmpv6, *_is(_ICMP_TYPE, _ADVERTISEMENT), spoofed], "drop other advertisements"),
        (_FROM_PORTS, [*other, *source, accept], "accept IPv6"),
        (_FROM_PORTS, [*icmpv6, nft.load_payload(*_ICMP_TYPE, 0), *source, accept], "accept ICMPv6"),
        (_FROM_PORTS, [*icmpv6, *_is_later_fragment(), *source, accept], "accept later fragments"),
        (_FROM_PORTS, [*ipv6, *_is(_IPV6_SOURCE, _UNSPECIFIED), drop], "drop unspecified source"),
        (_FROM_PORTS, [spoofed], "drop others"),
        # Two rules: one whose port cannot be counted does not match.
        (SPOOFED, [nft.load_meta(nft.IIF, 0), nft.count_by(SPOOFED, 0)], "count by port"),
        (SPOOFED, [nft.count(), drop], "drop"),
        (_BETWEEN_PORTS, [*group, *arp, accept], "accept ARP"),
        (_BETWEEN_PORTS, [*group, *icmpv6, *_is(_ICMP_TYPE, _SOLICITATION), accept], "accept solicitations"),
        (_BETWEEN_PORTS, [*group, *icmpv6, *_is(_ICMP_TYPE, _ADVERTISEMENT), accept], "accept advertisements"),
        (_BETWEEN_PORTS, [*group, nft.count(), drop], "drop broadcast"),
        (_FROM_BRIDGE, [*icmpv6, *_is(_ICMP_TYPE, _REDIRECT), drop], "drop redirects"),
    ):
        yield RuleText(chain, tuple(expressions), text)


def _is(field: _Field, value: bytes) -> list[Expression]:
    return [nft.load_payload(*field, 0), nft.equals(0, value)]


def _is_later_fragment() -> list[Expression]:
    offset = nft.load_extension_header(_FRAGMENT, *_FRAGMENT_OFFSET, 0)
    return [offset, nft.mask(0, _OFFSET_BITS), nft.differs(0, bytes(2))]


def _is_source(name: str, mac: _Field, address: _Field) -> list[Expression]:
    """The port, the MAC (8 bytes of registers) and the address are an element."""
    return [
        nft.load_meta(nft.IIF, 0),
        nft.load_payload(*mac, 1),
        nft.load_payload(*address, 3),
        nft.is_element(name),
    ]

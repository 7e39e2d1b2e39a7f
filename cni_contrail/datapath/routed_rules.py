"""Filter and address translation of routed ports, as one nf_tables table of both IP families in the node's namespace.

Chain `from_ports`, before connection tracking. Packets of other links leave it by the first rule, whatever else the
node does; of a routed port only those pass whose link and source address are an element of `ipv4` or `ipv6`:

- what is dropped is counted, also by port in the set `spoofed`;
- a link that is in `ports` and has no other element is mute;
- the unspecified address of IPv6 (duplicate address detection, multicast reports) is dropped without being counted.

Chain `to_node`, for packets to the node itself: no routed port begins a connection to a loopback address. The kernel
prevents that by itself, unless somebody sets `route_localnet`, as the plugin `portmap` does on the link of a pod.
Answers to the node, which reaches a published port at a loopback address, pass.

Chain `between_ports`, for packets from one routed port to another, or from and to other nodes through a tunnel. The
network of a port is the group of its link. That of a tunnel is the cluster's, so no other one spans nodes. Only those
pass that

- stay in one network, whose pair of groups is an element of `networks`,
- go to a pod of the cluster's network (0) through a Service, which has translated their destination, or come back from
  there. So pods of all networks reach the Services of the cluster's, such as its name server, and no pod of it reaches
  those of others.

That a connection is known is not enough: it may be of pods that had the same addresses before. Nor do ICMP errors pass,
which anybody can write, nor echo requests: where two have one identifier, the kernel gives the later another one, and
says then, too, that the destination was translated. No Service is of ICMP.

Chain `to_outside`, only with masquerade: new connections from a routed port to what is neither another port nor in an
excluded network get the node's address. Chain `valid_to_outside` drops what belongs to no connection, and so would keep
the pod's address.

Chain `until_known` instead, while the masquerade is pending: new connections from a routed port to other links are
dropped. Connection tracking remembers one that passed with the pod's address, and never translates it later.

Comments of rules end in digests (`rule_texts`), so that a dump tells whether the table is whole.
"""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.nftables_messages import Chain, KeyField
from cni_contrail.datapath.rule_texts import DESTINATION, SOURCE, RuleText, is_family, is_in, with_digests
from cni_contrail.datapath.tunnel_names import ROUTED_PREFIX
from cni_contrail.link.addresses import packed
from cni_contrail.link.errors import LinkError
from cni_contrail.link.message import NetlinkRequest

TABLE = nft.Table(nft.INET, "contrail")
PORTS, IPV4, IPV6, NETWORKS = "ports", "ipv4", "ipv6", "networks"
SETS: Mapping[str, tuple[KeyField, ...]] = {
    PORTS: (nft.INTERFACE,),
    IPV4: (nft.INTERFACE, nft.IPV4),
    IPV6: (nft.INTERFACE, nft.IPV6),
    NETWORKS: (nft.GROUP, nft.GROUP),
}
COUNTED = "spoofed"
"""Set of ports from which packets with a spoofed source were dropped, with their number."""

SPOOFED = "drop spoofed source"
"""Beginning of the comment of the rule that counts packets with a spoofed source."""

MODULES: Mapping[str, str] = {
    "create chain to_outside": "nft_chain_nat",
    "add a rule to chain to_outside (masquerade": "nft_masq",
    "add a rule to chain until_known": "nft_ct",
    "add a rule to chain to_node": "nft_ct",
    "add a rule to chain between_ports": "nft_ct",
    "add a rule to chain valid_to_outside": "nft_ct",
    "add a rule": "nf_tables",
}
"""Kernel module that is missing if the request that begins so fails (`missing_modules`)."""

_FROM_PORTS, _TO_NODE, _BETWEEN_PORTS = "from_ports", "to_node", "between_ports"
_VALID_TO_OUTSIDE, _TO_OUTSIDE, _UNTIL_KNOWN = "valid_to_outside", "to_outside", "until_known"
_PREROUTING, _INPUT, _FORWARD, _POSTROUTING = 0, 1, 2, 4  # NF_INET_...
_RAW, _FILTER, _SOURCE_NAT = -300, 0, 100  # NF_IP_PRI_RAW, NF_IP_PRI_FILTER, NF_IP_PRI_NAT_SRC
_CLUSTER = struct.pack("=I", 0)
_ICMP, _ICMPV6 = bytes([socket.IPPROTO_ICMP]), bytes([socket.IPPROTO_ICMPV6])
_UNSPECIFIED = bytes(16)
_LOOPBACK = "127.0.0.0/8"  # that of IPv6 is never routed


def chains(masquerade: Masquerade | None) -> list[Chain]:
    """Returns all chains of the table."""
    always = [
        Chain(_FROM_PORTS, _PREROUTING, _RAW),
        Chain(_TO_NODE, _INPUT, _FILTER),
        Chain(_BETWEEN_PORTS, _FORWARD, _FILTER),
    ]
    if masquerade is None:
        return always
    if not masquerade.is_known:
        return [*always, Chain(_UNTIL_KNOWN, _FORWARD, _FILTER)]
    translated = Chain(_TO_OUTSIDE, _POSTROUTING, _SOURCE_NAT, kind="nat")
    return [*always, Chain(_VALID_TO_OUTSIDE, _FORWARD, _FILTER), translated]


def rules(masquerade: Masquerade | None) -> list[RuleText]:
    """Returns all rules of the table; raises LinkError if an excluded network is malformed."""
    try:
        return with_digests([*_from_ports(), *_to_node(), *_between_ports(), *_beyond_ports(masquerade)])
    except ValueError as error:
        raise LinkError(f"masquerade: {error}") from error


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


def network_element(network: int) -> tuple[str, bytes]:
    """Returns the set and the key by which packets may pass between the ports of a network."""
    return NETWORKS, struct.pack("=II", network, network)


def add_elements(elements: Iterable[tuple[str, bytes]]) -> list[NetlinkRequest]:
    """Requests elements; those that exist stay."""
    return [request for name, keys in _by_set(elements) for request in nft.add_elements(TABLE, name, keys)]


def delete_elements(elements: Iterable[tuple[str, bytes]]) -> list[NetlinkRequest]:
    """Requests to delete elements."""
    return [request for name, keys in _by_set(elements) for request in nft.delete_elements(TABLE, name, keys)]


def forget_ports(indexes: Iterable[int]) -> list[NetlinkRequest]:
    """Requests to remove the counts of ports that are gone."""
    return nft.delete_elements(TABLE, COUNTED, [nft.index_key(index) for index in indexes])


def _by_set(elements: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    grouped: dict[str, list[bytes]] = {}
    for name, key in elements:
        grouped.setdefault(name, []).append(key)
    return iter(grouped.items())


def _contents(masquerade: Masquerade | None) -> Iterator[NetlinkRequest]:
    for identifier, (name, key) in enumerate(SETS.items(), start=1):
        yield nft.new_set(TABLE, name, key, identifier)
    yield nft.new_counting_set(TABLE, COUNTED, nft.INTERFACE, len(SETS) + 1)
    for chain in chains(masquerade):
        yield nft.new_chain(TABLE, chain)
    for rule in rules(masquerade):
        yield nft.new_rule(TABLE, rule.chain, rule.expressions, rule.comment)


def _from_ports() -> Iterator[RuleText]:
    accept, drop = nft.verdict(nft.ACCEPT), nft.verdict(nft.DROP)
    iif = nft.load_meta(nft.IIF, 0)
    yield RuleText(_FROM_PORTS, (iif, nft.is_not_element(PORTS), accept), "accept other links")
    for family, name in ((nft.IPV4_FAMILY, IPV4), (nft.IPV6_FAMILY, IPV6)):
        source = (iif, nft.load_payload(*SOURCE[family], 1), nft.is_element(name))
        yield RuleText(_FROM_PORTS, (*is_family(family), *source, accept), f"accept own {name}")
    unspecified = (nft.load_payload(*SOURCE[nft.IPV6_FAMILY], 0), nft.equals(0, _UNSPECIFIED))
    yield RuleText(_FROM_PORTS, (*is_family(nft.IPV6_FAMILY), *unspecified, drop), "drop without address")
    # Two rules: one whose port cannot be counted does not match.
    yield RuleText(_FROM_PORTS, (iif, nft.count_by(COUNTED, 0)), "count spoofed source")
    yield RuleText(_FROM_PORTS, (nft.count(), drop), SPOOFED)


def _to_node() -> Iterator[RuleText]:
    from_port = (nft.load_meta(nft.IIF, 0), nft.is_element(PORTS))
    begins = nft.has_state(nft.NEW | nft.RELATED | nft.INVALID)
    drop = (*from_port, *is_in(DESTINATION, _LOOPBACK), *begins, nft.verdict(nft.DROP))
    yield RuleText(_TO_NODE, drop, "drop to loopback")


def _between_ports() -> Iterator[RuleText]:
    accept = nft.verdict(nft.ACCEPT)
    tunnel = ROUTED_PREFIX.encode()
    from_others = (nft.load_meta(nft.IIFNAME, 0), nft.differs(0, tunnel), nft.load_meta(nft.IIF, 0))
    to_others = (nft.load_meta(nft.OIFNAME, 0), nft.differs(0, tunnel), nft.load_meta(nft.OIF, 0))
    groups = (nft.load_meta(nft.IIFGROUP, 0), nft.load_meta(nft.OIFGROUP, 1))
    to_cluster = (nft.load_meta(nft.OIFGROUP, 0), nft.equals(0, _CLUSTER))
    from_cluster = (nft.load_meta(nft.IIFGROUP, 0), nft.equals(0, _CLUSTER), *nft.has_state(nft.ESTABLISHED))
    by_service = nft.is_destination_translated()
    no_echo = (nft.load_meta(nft.L4PROTO, 0), nft.differs(0, _ICMP), nft.differs(0, _ICMPV6))
    for comment, expressions in (
        ("accept from other links", (*from_others, nft.is_not_element(PORTS), accept)),
        ("accept to other links", (*to_others, nft.is_not_element(PORTS), accept)),
        ("accept in one network", (*groups, nft.is_element(NETWORKS), accept)),
        ("accept to Services of the cluster", (*to_cluster, *no_echo, *by_service, accept)),
        ("accept from Services of the cluster", (*from_cluster, *by_service, accept)),
        ("drop between networks", (nft.count(), nft.verdict(nft.DROP))),
    ):
        yield RuleText(_BETWEEN_PORTS, expressions, comment)


def _beyond_ports(masquerade: Masquerade | None) -> Iterator[RuleText]:
    if masquerade is None:
        return iter(())
    if not masquerade.is_known:
        return _until_known()
    return itertools.chain(_valid_to_outside(masquerade), _to_outside(masquerade))


def _until_known() -> Iterator[RuleText]:
    yield from _between_others_and_to_ports(_UNTIL_KNOWN)
    drop = (*nft.has_state(nft.NEW), nft.verdict(nft.DROP))
    yield RuleText(_UNTIL_KNOWN, drop, "drop new connections")


def _valid_to_outside(masquerade: Masquerade) -> Iterator[RuleText]:
    yield from _not_translated(_VALID_TO_OUTSIDE, masquerade)
    yield RuleText(_VALID_TO_OUTSIDE, (*nft.has_state(nft.INVALID), nft.verdict(nft.DROP)), "drop invalid")


def _to_outside(masquerade: Masquerade) -> Iterator[RuleText]:
    yield from _not_translated(_TO_OUTSIDE, masquerade)
    yield RuleText(_TO_OUTSIDE, (nft.masquerade(),), "masquerade")


def _not_translated(chain: str, masquerade: Masquerade) -> Iterator[RuleText]:
    yield from _between_others_and_to_ports(chain)
    for network in masquerade.excluded:
        expressions = (*is_in(DESTINATION, network), nft.verdict(nft.ACCEPT))
        yield RuleText(chain, expressions, f"accept to {network}")


def _between_others_and_to_ports(chain: str) -> Iterator[RuleText]:
    accept = nft.verdict(nft.ACCEPT)
    yield RuleText(chain, (nft.load_meta(nft.IIF, 0), nft.is_not_element(PORTS), accept), "accept other links")
    yield RuleText(chain, (nft.load_meta(nft.OIF, 0), nft.is_element(PORTS), accept), "accept to pods")

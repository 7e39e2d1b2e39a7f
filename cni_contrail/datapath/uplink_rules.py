"""Filter and address translation of uplinks, as one nf_tables table in each network's namespace, and one on the node.

In a network's namespace nothing is forwarded but what the network may: between its bridge and its uplink, new
connections of pods with `snat`, which get the uplink's address, and packets from and to the subnets that are reachable
from outside.

On the node, packets from uplinks that have their network's uplink address get the node's. Not forwarded are

- packets between uplinks, since networks do not reach each other,
- packets between uplinks and host ends in the node's namespace, which are index 0 of pods, or tunnels there, which lead
  to index 0 of pods on other nodes, for the same reason,
- packets to link-local addresses, such as a cloud's metadata service, which no router forwards (RFC 3927, section 7).

The node's own addresses are reachable from a network with an uplink, as they are from index 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.desired import UPLINK
from cni_contrail.datapath.network_ports import HOST_END_PREFIX
from cni_contrail.datapath.nftables_messages import Chain, Expression
from cni_contrail.datapath.rule_texts import DESTINATION, SOURCE, RuleText, is_in, with_digests
from cni_contrail.datapath.tunnel_names import ROUTED_PREFIX
from cni_contrail.datapath.uplink_addresses import IPV4_RANGE, IPV6_RANGE
from cni_contrail.link.bridge_port import BRIDGE
from cni_contrail.link.links import LinkInfo
from cni_contrail.link.message import NetlinkRequest

TABLE = nft.Table(nft.INET, "contrail-uplink")
NODE_PREFIX = "ctup-"
"""Beginning of the names of all uplinks on the node."""

ALIAS_PREFIX = "contrail-uplink "
"""Beginning of their aliases, as bytes also in the kernel's messages about them."""

MODULES: Mapping[str, str] = {
    "create chain to_outside": "nft_chain_nat",
    "add a rule to chain to_outside (masquerade": "nft_masq",
    "add a rule to chain between_links": "nft_ct",
}
"""Kernel module that is missing if the request that begins so fails (`missing_modules`)."""

_BETWEEN_LINKS, _TO_OUTSIDE = "between_links", "to_outside"
_FORWARD, _POSTROUTING = 2, 4  # NF_INET_...
_FILTER, _SOURCE_NAT = 0, 100  # NF_IP_PRI_FILTER, NF_IP_PRI_NAT_SRC
_NAT = Chain(_TO_OUTSIDE, _POSTROUTING, _SOURCE_NAT, kind="nat")
NETWORK_CHAINS = (Chain(_BETWEEN_LINKS, _FORWARD, _FILTER, nft.DROP), _NAT)
NODE_CHAINS = (Chain(_BETWEEN_LINKS, _FORWARD, _FILTER), _NAT)
_LINK_LOCAL = "169.254.0.0/16"


def node_link(vni: int) -> str:
    """Returns the name of the node's end of a network's uplink."""
    return f"{NODE_PREFIX}{vni}"


def alias_of(vni: int) -> str:
    """Returns the alias of the node's end of a network's uplink."""
    return f"{ALIAS_PREFIX}{vni}"


def network_of_uplink(link: LinkInfo) -> int | None:
    """Returns the number of the network of which a link on the node is the uplink, None if it is none.

    The alias tells, which a new one does not have yet, and otherwise the name.
    """
    number = link.alias.removeprefix(ALIAS_PREFIX)
    if number == link.alias or link.kind != "veth":
        number = link.name.removeprefix(NODE_PREFIX)
    return int(number) if number != link.name and number.isdecimal() and number.isascii() else None


def network_rules(*, snat: bool, subnets: Sequence[str], between_pods: bool = False) -> list[RuleText]:
    """Returns the rules of the table of a network; `subnets` (CIDRs) are reachable from outside.

    `between_pods`: the bridge routes packets between pods, of this node and of others.
    """
    accept, new = nft.verdict(nft.ACCEPT), nft.has_state(nft.NEW)
    outward = (*_is_link(nft.IIFNAME, BRIDGE), *_is_link(nft.OIFNAME, UPLINK))
    inward = (*_is_link(nft.IIFNAME, UPLINK), *_is_link(nft.OIFNAME, BRIDGE))
    rules = [RuleText(_BETWEEN_LINKS, (*nft.has_state(nft.ESTABLISHED | nft.RELATED), accept), "accept established")]
    for subnet in subnets:
        source, destination = is_in(SOURCE, subnet), is_in(DESTINATION, subnet)
        rules.append(RuleText(_BETWEEN_LINKS, (*outward, *source, accept), f"accept from {subnet}"))
        rules.append(RuleText(_BETWEEN_LINKS, (*inward, *destination, accept), f"accept to {subnet}"))
    if between_pods:
        between = (*_is_link(nft.IIFNAME, BRIDGE), *_is_link(nft.OIFNAME, BRIDGE))
        rules.append(RuleText(_BETWEEN_LINKS, (*between, accept), "accept between pods"))
    if snat:
        rules.append(RuleText(_BETWEEN_LINKS, (*outward, *new, accept), "accept new from pods"))
        rules.append(RuleText(_TO_OUTSIDE, (*outward, nft.masquerade()), "masquerade"))
    return with_digests(rules)


def node_rules() -> list[RuleText]:
    """Returns the rules of the node's table."""
    return with_digests(_node_rules())


def replace_network_table(rules: Iterable[RuleText]) -> list[NetlinkRequest]:
    """Requests to replace the table of a network, whatever is left of it: what no rule accepts is dropped."""
    return _replace_table(NETWORK_CHAINS, rules)


def replace_node_table() -> list[NetlinkRequest]:
    """Requests to replace the node's table, whatever is left of it: what no rule drops is accepted."""
    return _replace_table(NODE_CHAINS, node_rules())


def _replace_table(chains: Iterable[Chain], rules: Iterable[RuleText]) -> list[NetlinkRequest]:
    return [
        nft.new_table(TABLE),  # so that the deletion never fails
        nft.delete_table(TABLE),
        nft.new_table(TABLE),
        *(nft.new_chain(TABLE, chain) for chain in chains),
        *(nft.new_rule(TABLE, rule.chain, rule.expressions, rule.comment) for rule in rules),
    ]


def _node_rules() -> Iterator[RuleText]:
    accept, drop = nft.verdict(nft.ACCEPT), (nft.count(), nft.verdict(nft.DROP))
    from_uplinks, to_uplinks = _begins(nft.IIFNAME, NODE_PREFIX), _begins(nft.OIFNAME, NODE_PREFIX)
    from_pods, to_pods = _begins(nft.IIFNAME, HOST_END_PREFIX), _begins(nft.OIFNAME, HOST_END_PREFIX)
    from_tunnels, to_tunnels = _begins(nft.IIFNAME, ROUTED_PREFIX), _begins(nft.OIFNAME, ROUTED_PREFIX)
    established = nft.has_state(nft.ESTABLISHED | nft.RELATED)
    for text, expressions in (
        ("drop between networks", (*from_uplinks, *to_uplinks, *drop)),
        ("drop to index 0", (*from_uplinks, *to_pods, *drop)),
        ("drop from index 0", (*from_pods, *to_uplinks, *drop)),
        ("drop to index 0 on other nodes", (*from_uplinks, *to_tunnels, *drop)),
        ("drop from index 0 on other nodes", (*from_tunnels, *to_uplinks, *drop)),
        # What connection tracking does not know keeps its address.
        ("drop invalid", (*from_uplinks, *nft.has_state(nft.INVALID), *drop)),
        ("accept established", (*established, accept)),
        ("drop to link-local", (*from_uplinks, *is_in(DESTINATION, _LINK_LOCAL), *drop)),
        ("drop to uplinks", (*to_uplinks, *is_in(DESTINATION, str(IPV4_RANGE)), *drop)),
        ("drop to uplinks, IPv6", (*to_uplinks, *is_in(DESTINATION, str(IPV6_RANGE)), *drop)),
    ):
        yield RuleText(_BETWEEN_LINKS, expressions, text)
    for range_ in (IPV4_RANGE, IPV6_RANGE):
        source = is_in(SOURCE, str(range_))
        yield RuleText(_TO_OUTSIDE, (*from_uplinks, *source, nft.masquerade()), f"masquerade {range_}")


def _is_link(kind: int, name: str) -> tuple[Expression, ...]:
    return _begins(kind, f"{name}\0")


def _begins(kind: int, text: str) -> tuple[Expression, ...]:
    return nft.load_meta(kind, 0), nft.equals(0, text.encode())

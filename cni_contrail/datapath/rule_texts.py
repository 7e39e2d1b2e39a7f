"""nf_tables rules with comments, and the parts that rules of several tables share.

The comment of a rule ends in a digest of it, so that a dump tells whether a table is whole: what the kernel reports of
a rule is not what it was given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from cni_contrail.datapath import nftables_messages as nft
from cni_contrail.datapath.nftables_messages import Expression
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.routes import packed_destination

Field = tuple[int, int, int]
"""Base, offset and length of bytes of a packet."""

SOURCE: Mapping[int, Field] = {nft.IPV4_FAMILY: (nft.NETWORK, 12, 4), nft.IPV6_FAMILY: (nft.NETWORK, 8, 16)}
DESTINATION: Mapping[int, Field] = {nft.IPV4_FAMILY: (nft.NETWORK, 16, 4), nft.IPV6_FAMILY: (nft.NETWORK, 24, 16)}
"""The address of a packet, by family."""


class RuleText(NamedTuple):
    """A rule: its chain, its steps, and its comment."""

    chain: str
    expressions: tuple[Expression, ...]
    comment: str


def with_digests(rules: Iterable[RuleText]) -> list[RuleText]:
    """Returns the rules with the digest of each at the end of its comment."""
    return [rule._replace(comment=f"{rule.comment} {_digest(rule)}") for rule in rules]


def is_family(family: int) -> tuple[Expression, ...]:
    """The packet is of this family."""
    return nft.load_meta(nft.NFPROTO, 0), nft.equals(0, bytes((family,)))


def is_in(field: Mapping[int, Field], network: str) -> tuple[Expression, ...]:
    """The address (SOURCE or DESTINATION) is in the network; raises ValueError if that is malformed."""
    _, address, length = packed_destination(network)
    bits = 8 * len(address)
    prefix = ((1 << bits) - 1 ^ (1 << bits - length) - 1).to_bytes(len(address), "big")
    value = (int.from_bytes(address, "big") & int.from_bytes(prefix, "big")).to_bytes(len(address), "big")
    family = nft.IPV4_FAMILY if len(address) == 4 else nft.IPV6_FAMILY
    loaded = nft.load_payload(*field[family], 0)
    return (*is_family(family), loaded, nft.mask(0, prefix), nft.equals(0, value))


def _digest(rule: RuleText) -> str:
    return hashlib.blake2b(b"".join((rule.chain.encode(), *rule.expressions)), digest_size=6).hexdigest()

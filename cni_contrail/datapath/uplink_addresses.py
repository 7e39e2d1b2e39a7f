"""Addresses of uplinks: a /31 of 169.254.192.0/18 and a /127 of a unique local prefix for each, unique on the node.

They leave the node in no packet: what comes from a pod has the node's address there. Which pair a network has depends
on its number, and on what the node has already; it stays as long as the uplink exists.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

IPV4_RANGE = ipaddress.IPv4Network("169.254.192.0/18")
IPV6_RANGE = ipaddress.IPv6Network("fd4b:9c62:7ea1:fab0::/112")
_RESERVED = 256  # the last addresses of 169.254.0.0/16 (RFC 3927)
_PAIRS = (IPV4_RANGE.num_addresses - _RESERVED) // 2
_LENGTHS = {4: 31, 6: 127}

AnyNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network


class Pair(NamedTuple):
    """The number of a pair of addresses: the lower one is the node's, the higher one the network's."""

    number: int

    def node(self, version: int) -> Address:
        """Returns the node's address of IP version 4 or 6."""
        return _address(version, 2 * self.number)

    def network(self, version: int) -> Address:
        """Returns the network's address."""
        return _address(version, 2 * self.number + 1)

    def subnet(self) -> AnyNetwork:
        """Returns both IPv4 addresses."""
        return ipaddress.IPv4Network((self.node(4).address, 31))


def pair_of(address: Address) -> Pair | None:
    """Returns the pair to which a node's IPv4 address belongs."""
    parsed = ipaddress.ip_address(address.address)
    offset = int(parsed) - int(IPV4_RANGE.network_address)
    if parsed.version != 4 or address.prefix_length != _LENGTHS[4] or not 0 <= offset < 2 * _PAIRS or offset % 2:
        return None
    return Pair(offset // 2)


def free_pair(vni: int, used: Collection[Pair], others: Collection[AnyNetwork]) -> Pair | None:
    """Returns a pair that no uplink uses, and that is in none of the `others`; None if there is none left.

    One of the others that contains the whole range is a link that has all link-local addresses, and leaves room.
    """
    near = [each for each in others if overlap(IPV4_RANGE, each) and each.prefixlen > IPV4_RANGE.prefixlen]
    for offset in range(_PAIRS):
        pair = Pair((vni + offset) % _PAIRS)
        if pair not in used and not any(overlap(pair.subnet(), other) for other in near):
            return pair
    return None


def choose_pair(
    vni: int, own: Collection[Pair], shared: Collection[Pair], used: Collection[Pair], others: Collection[AnyNetwork]
) -> Pair | None:
    """Returns the pair of an uplink: one of its `own` that no other uses, if possible one that both ends have.

    `shared` are those that the network's end has, too. Otherwise a free one, None if there is none.
    """
    candidates = set(own).difference(used)
    if candidates:
        return min(candidates.intersection(shared) or candidates)
    return free_pair(vni, used, others)


def overlap(one: AnyNetwork, other: AnyNetwork) -> bool:
    """Returns whether two networks of any family have an address in common."""
    if isinstance(one, ipaddress.IPv4Network):
        return isinstance(other, ipaddress.IPv4Network) and one.overlaps(other)
    return isinstance(other, ipaddress.IPv6Network) and one.overlaps(other)


def _address(version: int, offset: int) -> Address:
    first = (IPV4_RANGE if version == 4 else IPV6_RANGE).network_address
    return Address(str(first + offset), _LENGTHS[version])

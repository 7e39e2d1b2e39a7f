"""IP addresses in network byte order, and the request that adds one to a link.

Sources: rtnetlink(7), linux/if_addr.h.
"""

from __future__ import annotations

import functools
import socket
import struct

from cni_contrail.link.links import LinkRef
from cni_contrail.link.message import CREATE, DUMP, EXCLUSIVE, Message, NetlinkRequest, attribute, attributes, number
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.link.plan import Address

_RTM_NEWADDR = 20
_RTM_DELADDR = 21
_RTM_GETADDR = 22
_HEADER = struct.Struct("=BBBBi")  # struct ifaddrmsg: family, prefix length, flags, scope, link index
# IFA_F_NODAD: no duplicate address detection, which would make the address unusable for a second or more. The allocator
# of the address guarantees that it is unique.
_NO_DAD = 0x02
IPV6_ADDRESSES = 9  # RTNLGRP_IPV6_IFADDR: multicast group of IPv6 address notifications
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_BROADCAST = 4
_IFA_RT_PRIORITY = 9
_LONGEST_WITH_BROADCAST = 30  # RFC 3021: in a /31 both addresses are hosts


class AddressInfo(NamedTuple):
    """An address of a link as the kernel reports it, in network byte order, with the lower 8 of its IFA_F_ flags."""

    ifindex: int
    local: bytes
    prefix_length: int
    flags: int


SubnetKey = tuple[int, int, int]
"""Family, prefix length, and the bits of the prefix as a number."""


@functools.lru_cache(maxsize=64)  # each address of a plan is packed several times
def packed(text: str) -> tuple[int, bytes]:
    """Returns family and bytes of an address; raises ValueError if the text is not an address."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return family, socket.inet_pton(family, text)
    except (OSError, ValueError) as error:
        raise ValueError(f"{text!r} is not an IP address") from error


def packed_with_length(address: Address) -> tuple[int, bytes]:
    """Returns family and bytes; raises ValueError if the address or its prefix length is invalid."""
    family, local = packed(address.address)
    check_length(address.prefix_length, local)
    return family, local


def check_length(length: int, address: bytes) -> None:
    """Raises ValueError if the prefix length exceeds the bits of the address."""
    bits = 8 * len(address)
    if not 0 <= length <= bits:
        raise ValueError(f"{length} is not a prefix length of an address of {bits} bits")


def add_address(end: LinkRef, address: Address) -> NetlinkRequest:
    """Requests to add the address to the link, with a broadcast address if the subnet has one.

    An IPv6 address is usable at once, without duplicate address detection.
    """
    family, local = packed_with_length(address)
    # On a link that is not point-to-point both attributes are the local address (linux/if_addr.h).
    parts = [attribute(_IFA_LOCAL, local), attribute(_IFA_ADDRESS, local)]
    length = address.prefix_length
    if family == socket.AF_INET and length <= _LONGEST_WITH_BROADCAST:
        parts.append(attribute(_IFA_BROADCAST, _broadcast(local, length)))
    if address.metric:
        parts.append(number(_IFA_RT_PRIORITY, address.metric))
    flags = _NO_DAD if family == socket.AF_INET6 else 0
    body = _HEADER.pack(family, length, flags, 0, end.ifindex) + b"".join(parts)
    return NetlinkRequest(_RTM_NEWADDR, CREATE | EXCLUSIVE, body, f"{end.name}: add address {address.address}/{length}")


def remove_address(end: LinkRef, address: Address) -> NetlinkRequest:
    """Requests to remove the address from the link."""
    family, local = packed_with_length(address)
    body = _HEADER.pack(family, address.prefix_length, 0, 0, end.ifindex) + attribute(_IFA_LOCAL, local)
    return NetlinkRequest(_RTM_DELADDR, 0, body, f"{end.name}: remove address {address.address}")


def parse_ready_address(notification: Message) -> bytes | None:
    """Returns the address that a notification reports as usable, None if it reports something else."""
    if notification.kind != _RTM_NEWADDR:
        return None
    return attributes(notification.body[_HEADER.size :]).get(_IFA_ADDRESS)


def dump_addresses() -> NetlinkRequest:
    """Requests all addresses of both families; `parse_address` reads the answers."""
    return NetlinkRequest(_RTM_GETADDR, DUMP, _HEADER.pack(socket.AF_UNSPEC, 0, 0, 0, 0), "read addresses")


def parse_address(body: bytes) -> AddressInfo:
    """Parses one answer to `dump_addresses`."""
    _, length, flags, _, ifindex = _HEADER.unpack_from(body)
    found = attributes(body[_HEADER.size :])
    # IPv6 has no local address unless the link is point-to-point.
    return AddressInfo(ifindex, found.get(_IFA_LOCAL) or found[_IFA_ADDRESS], length, flags)


def subnet_of(address: Address) -> SubnetKey:
    """Returns the subnet of the address."""
    family, local = packed(address.address)
    return family, address.prefix_length, prefix_bits(local, address.prefix_length)


def network_of(address: Address) -> str:
    """Returns the subnet of the address in CIDR form."""
    family, length, prefix = subnet_of(address)
    _, local = packed(address.address)
    network = (prefix << 8 * len(local) - length).to_bytes(len(local), "big")
    return f"{socket.inet_ntop(family, network)}/{length}"


def covers(network: Address, address: bytes) -> bool:
    """Returns whether `address` is in the subnet of `network`."""
    _, local = packed(network.address)
    length = network.prefix_length
    return len(local) == len(address) and prefix_bits(local, length) == prefix_bits(address, length)


def prefix_bits(address: bytes, length: int) -> int:
    """Returns the bits of the prefix as a number."""
    return int.from_bytes(address, "big") >> 8 * len(address) - length


def _broadcast(address: bytes, length: int) -> bytes:
    return (int.from_bytes(address, "big") | (1 << 32 - length) - 1).to_bytes(4, "big")

"""IP addresses as bytes, and the message that gives one to a link.

Sources: rtnetlink(7), linux/if_addr.h.
"""

from __future__ import annotations

import functools
import socket
import struct

from cni_contrail.link.links import End
from cni_contrail.link.message import CREATE, EXCLUSIVE, Message, Request, attribute, attributes, number
from cni_contrail.link.plan import Address

_RTM_NEWADDR = 20
_HEADER = struct.Struct("=BBBBi")  # struct ifaddrmsg: family, prefix length, flags, scope, link index
_NO_DAD = 0x02  # IFA_F_NODAD: whoever gave out the address knows that nobody else has it
IPV6_ADDRESSES = 9  # RTNLGRP_IPV6_IFADDR: notifications of addresses
_IFA_ADDRESS = 1
_IFA_LOCAL = 2
_IFA_BROADCAST = 4
_IFA_RT_PRIORITY = 9
_LONGEST_WITH_BROADCAST = 30  # RFC 3021: in a /31 both addresses are hosts


Subnet = tuple[int, int, int]
"""Family, prefix length, and what the bits of the prefix are as a number."""


@functools.lru_cache(maxsize=64)  # a plan says an address several times
def packed(text: str) -> tuple[int, bytes]:
    """Returns family and bytes of an address; ValueError if it is none."""
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        return family, socket.inet_pton(family, text)
    except (OSError, ValueError) as error:
        raise ValueError(f"{text!r} is no IP address") from error


def packed_with_length(address: Address) -> tuple[int, bytes]:
    """Returns family and bytes; ValueError if the address or its prefix length is none."""
    family, local = packed(address.address)
    check_length(address.prefix_length, local)
    return family, local


def check_length(length: int, address: bytes) -> None:
    """Raises ValueError if the address has not so many bits."""
    bits = 8 * len(address)
    if not 0 <= length <= bits:
        raise ValueError(f"{length} is no prefix length of an address of {bits} bits")


def add_address(end: End, address: Address) -> Request:
    """Asks for the link to have the address, with its broadcast address if the subnet has one.

    An IPv6 address serves at once, without duplicate address detection.
    """
    family, local = packed_with_length(address)
    parts = [attribute(_IFA_LOCAL, local), attribute(_IFA_ADDRESS, local)]
    length = address.prefix_length
    if family == socket.AF_INET and length <= _LONGEST_WITH_BROADCAST:
        parts.append(attribute(_IFA_BROADCAST, _broadcast(local, length)))
    if address.metric:
        parts.append(number(_IFA_RT_PRIORITY, address.metric))
    flags = _NO_DAD if family == socket.AF_INET6 else 0
    body = _HEADER.pack(family, length, flags, 0, end.ifindex) + b"".join(parts)
    return Request(_RTM_NEWADDR, CREATE | EXCLUSIVE, body, f"{end.name}: add address {address.address}/{length}")


def ready_address(notification: Message) -> bytes | None:
    """Reads which address a notification says to be ready; None if it says something else."""
    if notification.kind != _RTM_NEWADDR:
        return None
    return attributes(notification.body[_HEADER.size :]).get(_IFA_ADDRESS)


def subnet_of(address: Address) -> Subnet:
    """The subnet that the address is in."""
    family, local = packed(address.address)
    return family, address.prefix_length, _prefix(local, address.prefix_length)


def covers(network: Address, address: bytes) -> bool:
    """Tells whether the address is in the subnet of the other one."""
    _, local = packed(network.address)
    length = network.prefix_length
    return len(local) == len(address) and _prefix(local, length) == _prefix(address, length)


def _prefix(address: bytes, length: int) -> int:
    return int.from_bytes(address, "big") >> 8 * len(address) - length


def _broadcast(address: bytes, length: int) -> bytes:
    return (int.from_bytes(address, "big") | (1 << 32 - length) - 1).to_bytes(4, "big")

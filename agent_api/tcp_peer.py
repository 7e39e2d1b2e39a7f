"""Attribution of a TCP peer to a user of this host, by the kernel's socket tables.

Any local process can connect to a TCP port. Where the peer's socket is in the network namespace of the agent, which is
the host's, `/proc/net/tcp` and `/proc/net/tcp6` name the user who created it; no capability is needed.

A peer that has closed its socket is rejected: the kernel lists such sockets as those of root, without an inode. A local
peer whose socket is not found is rejected too. A peer with an address of another host cannot be attributed.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator

Address = tuple[str, int]
"""IP address and port; further elements, as of IPv6 addresses of sockets, are ignored."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def is_foreign_user(peer: Address, own: Address) -> bool:
    """Returns whether the peer is a process of this host that is not known to run as root or as the agent's user.

    `peer` and `own` are the two ends of an established connection. Blocks for as long as the kernel lists all sockets,
    so call it in a thread. Raises OSError.
    """
    entry = _find(_table_forms(peer), _table_forms(own))
    if entry is None:
        return _is_local(peer[0])
    uid, inode = entry
    return inode == 0 or uid not in {0, os.geteuid()}


def _find(peer: set[str], own: set[str]) -> tuple[int, int] | None:
    """Returns user id and inode of the socket with these ends, None if it is not listed."""
    for line in _lines():
        fields = line.split()
        if fields[1] in peer and fields[2] in own:
            return int(fields[7]), int(fields[9])
    return None


def _lines() -> Iterator[str]:
    for table in _TABLES:
        # A host without IPv6 has no table for it.
        if os.path.exists(table):
            with open(table, encoding="ascii") as file:
                next(file)
                yield from file


def _table_forms(address: Address) -> set[str]:
    """Returns the forms of an address in the tables: an IPv4 address is that of an IPv6 socket too."""
    ip = _ip(address[0])
    forms = [ip.packed, b"\0" * 10 + b"\xff\xff" + ip.packed] if ip.version == 4 else [ip.packed]
    return {f"{_hexadecimal(packed)}:{address[1]:04X}" for packed in forms}


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    ip = ipaddress.ip_address(text.partition("%")[0])
    return ip.ipv4_mapped or ip if ip.version == 6 else ip


def _hexadecimal(packed: bytes) -> str:
    # The kernel prints 32-bit words in the byte order of the machine.
    return "".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", packed))


def _is_local(text: str) -> bool:
    """Returns whether this host has the address; a socket can be bound only to such an address."""
    ip = _ip(text)
    if ip.is_link_local:
        return True  # binding would need the interface, so a neighbour is treated as this host
    with socket.socket(socket.AF_INET if ip.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(ip), 0))
        except OSError:
            return False
    return True

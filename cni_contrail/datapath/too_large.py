"""Packets that the kernel did not forward from one link of a network's namespace to another: larger than the MTU.

The kernel counts them by namespace, which is the network's alone, and answers them with the MTU that fits: of IPv4
those that must not be fragmented (FragFails), of IPv6 all (Ip6InTooBigErrors).

Not counted are frames that a bridge drops since they do not fit the MTU of another port, as after the MTU of a network
was lowered: the kernel has no counter of those, and rules of nf_tables do not tell them from frames that a link
divides later (GSO). Those of the node's own namespace belong to all of its programs.

Sources: RFC 4293, net/ipv4/proc.c and net/ipv6/proc.c of Linux.
"""

from __future__ import annotations

import os

from cni_contrail.link.errors import LinkError


def count_too_large(directory: str = "/proc/thread-self/net") -> int:
    """Returns their number since the namespace of the calling thread was made; raises LinkError."""
    names, values = (line.split()[1:] for line in _read(f"{directory}/snmp").splitlines() if line.startswith("Ip:"))
    ipv4 = int(dict(zip(names, values, strict=True))["FragFails"])
    if not os.path.exists(f"{directory}/snmp6"):
        return ipv4
    ipv6 = dict(line.split() for line in _read(f"{directory}/snmp6").splitlines())
    return ipv4 + int(ipv6["Ip6InTooBigErrors"])


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError as error:
        raise LinkError(f"read {path}: {error.strerror}") from error

"""Announces the addresses of new interfaces to their neighbours, whose caches may still map them to another pod's MAC.

The kernel itself sends the announcements when the broadcast MAC of a link is set, even to the value it already has. The
MAC itself is not set: ADD announces when the runtime has its result, and a later plugin of the chain (`tuning`) may
have changed it by then. What is announced is the MAC that the link has.

For each IPv4 address the kernel sends an ARP request with the address as sender and target (RFC 5227, section 2.3:
hosts update their caches from a request as from a reply, and more hosts process requests), for each IPv6 address an
unsolicited neighbour advertisement with the override flag. `make_interfaces` enables this on the link (`arp_notify`,
`ndisc_notify`).

A packet socket could send the same frames, but closing it waits for an RCU grace period: 9 ms, longer than creating
the whole interface.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cni_contrail.link.exchange import open_route_socket
from cni_contrail.link.links import set_broadcast_address
from cni_contrail.link.plan import InterfacePlan


def announce(netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    """Announces the addresses of all interfaces that still exist.

    Raises NetnsError if the sandbox cannot be entered, KernelError for any rejection other than a missing link.
    """
    with open_route_socket(netns_fd) as sandbox:
        errors = sandbox.execute([set_broadcast_address(plan) for plan in plans])
    for error in errors.values():
        if error.errno != errno.ENODEV:
            raise error

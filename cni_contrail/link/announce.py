"""Tells the neighbours which MAC address has the addresses now: an address may have been another pod's before.

The kernel itself writes the announcements, when the MAC of the link is set to what it is: for each IPv4 address an ARP
request with the address as sender and as target (RFC 5227, section 2.3: hosts update their caches by a request as by a
reply, and more of them look at requests), for each IPv6 address an unsolicited neighbour advertisement with the
override flag. `make_interfaces` has turned this on for the link (`arp_notify`, `ndisc_notify`).

A packet socket could send the same frames, but closing one waits for an RCU grace period: 9 ms, more than the whole
of making the interface.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from cni_contrail.link.exchange import route_socket_in
from cni_contrail.link.links import set_mac
from cni_contrail.link.plan import InterfacePlan


def announce(netns_fd: int, plans: Sequence[InterfacePlan]) -> None:
    """Announces the addresses of all interfaces that are still there.

    Raises NetnsError if the sandbox cannot be entered, KernelError if the kernel refuses for another reason than that
    the link is gone.
    """
    with route_socket_in(netns_fd) as sandbox:
        refusals = sandbox.carry_out([set_mac(plan) for plan in plans])
    for refusal in refusals.values():
        if refusal.errno != errno.ENODEV:
            raise refusal

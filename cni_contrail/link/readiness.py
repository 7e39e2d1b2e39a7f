"""Waits for what the kernel does only after it has said yes.

- A link that got its carrier counts as down for up to a second (`lookup.settle_carrier`).
- An IPv6 address is there at once, but it is a kernel thread that makes the route by which packets to it are taken in.
  Then the kernel sends a notification of the address: usually some 20 us later, more where many pods start at once.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from cni_contrail.link.addresses import IPV6_ADDRESSES, packed, ready_address
from cni_contrail.link.exchange import RouteSocket
from cni_contrail.link.lookup import settle_carrier
from cni_contrail.link.plan import InterfacePlan


class Readiness:
    """Begun before the interfaces get their addresses, awaited when all requests are carried out."""

    def __init__(self, sandbox: RouteSocket, plans: Sequence[InterfacePlan]) -> None:
        self._sandbox = sandbox
        self._plans = plans
        given = [packed(address.address) for plan in plans for address in plan.addresses]
        self._unready: set[bytes | None] = {local for family, local in given if family == socket.AF_INET6}
        if self._unready:
            sandbox.listen(IPV6_ADDRESSES)

    def wait(self, host: RouteSocket) -> None:
        """Returns when all links and addresses serve; raises KernelError if the kernel does not get that far."""
        for plan in self._plans:
            settle_carrier(self._sandbox, plan.name)
            settle_carrier(host, plan.host_name)
        heard = self._sandbox.heard("make IPv6 addresses ready")
        while self._unready:
            self._unready.discard(ready_address(next(heard)))

"""Kernel settings of the links, where netlink has no attribute for them: files under /proc/sys.

The files show the network namespace of the thread that opens them, whatever mount they are seen through. So a plugin in
a container, whose own /proc/sys is read-only, writes through the host's one mounted elsewhere.

What is set, and why:

- host end: `accept_ra` off, since a pod could otherwise give the node routes and addresses by a router advertisement
  (CVE-2020-10749). That the end gets no link-local address either is asked for by netlink (`links.set_host_end`).
- sandbox end: `accept_ra` off, since the plan holds all routes. If the plan has IPv6 addresses, also:
  `disable_ipv6` off, and for the loopback too, which carries what a pod sends to itself (some runtimes turn it on for
  a new namespace); `accept_dad` off, so that the link-local address serves at once like the others;
  `keep_addr_on_down`, so that a later plugin may take the link down and up without losing addresses; `ndisc_notify`,
  so that the kernel announces the addresses (`announce`) and a changed MAC address.

Not promised: a sandbox whose `net.ipv6.conf.all.accept_dad` is on has duplicate address detection on the link-local
address; that is not changed for the sake of one interface, and the planned addresses are without it anyway.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cni_contrail.link.errors import LinkError, SysctlError
from cni_contrail.link.plan import InterfacePlan

_LEAST_IPV6_MTU = 1280  # RFC 8200, section 5: below it the kernel keeps no IPv6 settings for a link
_LONGEST = 32  # bytes, more than any number has


class Sysctls:
    """The kernel settings below one mount of /proc/sys; SysctlError if it is none."""

    __slots__ = ("_directory", "_kernel_has_ipv6")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._kernel_has_ipv6 = os.path.isdir(f"{directory}/net/ipv6")
        if not self._kernel_has_ipv6 and not os.path.isdir(f"{directory}/net"):
            raise SysctlError(f"{directory} holds no kernel settings: {directory}/net is not there")

    def has_ipv6(self, plan: InterfacePlan) -> bool:
        """Tells whether the links of the plan will have IPv6 settings."""
        return self._kernel_has_ipv6 and plan.mtu >= _LEAST_IPV6_MTU

    def check(self, plan: InterfacePlan) -> None:
        """Raises LinkError if the plan has an IPv6 address, but its links will have no IPv6."""
        if not _wants_ipv6(plan) or self.has_ipv6(plan):
            return
        if self._kernel_has_ipv6:
            reason = f"its MTU of {plan.mtu} is below {_LEAST_IPV6_MTU}, the least for IPv6"
        else:
            reason = f"IPv6 is disabled in the kernel ({self._directory}/net/ipv6 is not there)"
        raise LinkError(f"{plan.name}: cannot have an IPv6 address: {reason}")

    def settle_host_ends(self, plans: Sequence[InterfacePlan]) -> None:
        """Writes the settings of the host ends; the calling thread is in the host's namespace."""
        for plan in plans:
            if self.has_ipv6(plan):
                self._ensure(plan, plan.host_name, "accept_ra", "0")

    def settle_sandbox_ends(self, plans: Sequence[InterfacePlan]) -> None:
        """Writes the settings of the sandbox ends; the calling thread is in the sandbox."""
        for plan in plans:
            if self.has_ipv6(plan):
                self._ensure(plan, plan.name, "accept_ra", "0")
        with_ipv6 = [plan for plan in plans if _wants_ipv6(plan)]
        if with_ipv6:
            self._ensure(with_ipv6[0], "lo", "disable_ipv6", "0")
        for plan in with_ipv6:
            self._ensure(plan, plan.name, "disable_ipv6", "0")
            self._ensure(plan, plan.name, "accept_dad", "0")
            self._ensure(plan, plan.name, "keep_addr_on_down", "1")
            self._ensure(plan, plan.name, "ndisc_notify", "1")

    def _ensure(self, plan: InterfacePlan, link: str, setting: str, value: str) -> None:
        """Makes an IPv6 setting of a link have the value.

        One that has it already is not written: that works on a read-only mount too, and does not queue for the lock
        that writing some of them takes.
        """
        path = f"{self._directory}/net/ipv6/conf/{link}/{setting}"
        try:
            _ensure(path, value.encode())
        except OSError as error:
            step = f"set net.ipv6.conf.{link}.{setting} to {value}"
            raise SysctlError(f"{plan.name}: {step}: {path}: {error.strerror}") from error


def _wants_ipv6(plan: InterfacePlan) -> bool:
    return any(":" in address.address for address in plan.addresses)


def _ensure(path: str, value: bytes) -> None:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        if _holds(path, value):
            return
        raise
    try:
        if os.read(fd, _LONGEST).strip() != value:
            os.pwrite(fd, value, 0)
    finally:
        os.close(fd)


def _holds(path: str, value: bytes) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(fd, _LONGEST).strip() == value
    finally:
        os.close(fd)

"""Kernel settings of links for which netlink has no attribute: files under /proc/sys.

The files show the network namespace of the thread that opens them, whatever mount they are opened through. A plugin in
a container, whose own /proc/sys is read-only, therefore writes through the host's /proc/sys, mounted elsewhere.

Settings and their reasons:

- host end: `disable_ipv6`, since a pod could otherwise reach the node, and what it forwards to, around its network;
  `links.set_host_end` has the settings for IPv4, by netlink. `accept_ra` off, since a write to the setting of all links
  enables IPv6 again, and a pod could then add routes and addresses to the node by a router advertisement
  (CVE-2020-10749).
- sandbox end: `accept_ra` off, since the plan contains all routes. If the plan has IPv6 addresses, also:
  `disable_ipv6` off, also for the loopback, which carries traffic of a pod to itself (some runtimes disable IPv6 in a
  new namespace); `accept_dad` off, so that the link-local address is usable at once like the others;
  `keep_addr_on_down`, so that a later plugin may set the link down and up without losing addresses; `ndisc_notify`,
  so that the kernel announces the addresses (`announce`) and a changed MAC address.

Not promised: where `net.ipv6.conf.all.accept_dad` of the sandbox is on, the link-local address has duplicate address
detection. That setting is not changed for one interface, and planned addresses have none anyway (IFA_F_NODAD).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from cni_contrail.link.errors import LinkError, SysctlError
from cni_contrail.link.plan import InterfacePlan

MIN_IPV6_MTU = 1280
"""Bytes (RFC 8200, section 5): with less the kernel keeps no IPv6 settings for a link."""
_MAX_BYTES = 32  # longer than any number


class Sysctls:
    """The kernel settings below one mount of /proc/sys; raises SysctlError if the directory is none."""

    __slots__ = ("_directory", "_kernel_has_ipv6")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._kernel_has_ipv6 = os.path.isdir(f"{directory}/net/ipv6")
        if not self._kernel_has_ipv6 and not os.path.isdir(f"{directory}/net"):
            raise SysctlError(f"{directory}: no kernel settings: {directory}/net not found")

    def supports_ipv6(self, plan: InterfacePlan) -> bool:
        """Returns whether the links of the plan will have IPv6 settings."""
        return self._kernel_has_ipv6 and plan.mtu >= MIN_IPV6_MTU

    def check(self, plan: InterfacePlan) -> None:
        """Raises LinkError if the plan has an IPv6 address but its links cannot have one."""
        if not _wants_ipv6(plan) or self.supports_ipv6(plan):
            return
        if self._kernel_has_ipv6:
            reason = f"its MTU of {plan.mtu} is below {MIN_IPV6_MTU}, the minimum for IPv6"
        else:
            reason = f"IPv6 is disabled in the kernel ({self._directory}/net/ipv6 not found)"
        raise LinkError(f"{plan.name}: cannot have an IPv6 address: {reason}")

    def configure_host_ends(self, plans: Sequence[InterfacePlan]) -> None:
        """Writes the settings of the host ends; the calling thread is in the host's namespace."""
        for plan in plans:
            if self.supports_ipv6(plan):
                self._set(plan, plan.host_name, "disable_ipv6", "1")
                self._set(plan, plan.host_name, "accept_ra", "0")

    def configure_sandbox_ends(self, plans: Sequence[InterfacePlan]) -> None:
        """Writes the settings of the sandbox ends; the calling thread is in the sandbox."""
        for plan in plans:
            if self.supports_ipv6(plan):
                self._set(plan, plan.name, "accept_ra", "0")
        with_ipv6 = [plan for plan in plans if _wants_ipv6(plan)]
        if with_ipv6:
            self._ensure(with_ipv6[0], "lo", "disable_ipv6", "0")
        for plan in with_ipv6:
            self._ensure(plan, plan.name, "disable_ipv6", "0")
            self._set(plan, plan.name, "accept_dad", "0")
            self._set(plan, plan.name, "keep_addr_on_down", "1")
            self._set(plan, plan.name, "ndisc_notify", "1")

    def _ensure(self, plan: InterfacePlan, link: str, setting: str, value: str) -> None:
        """Sets a setting of a link that mostly has the value: it is read first, and then not written.

        Writing some settings waits for a lock of the kernel.
        """
        self._apply(ensure_setting, plan, link, setting, value)

    def _set(self, plan: InterfacePlan, link: str, setting: str, value: str) -> None:
        """Sets a setting of a link that mostly has another value."""
        self._apply(write_setting, plan, link, setting, value)

    def _apply(
        self, apply: Callable[[str, bytes], None], plan: InterfacePlan, link: str, setting: str, value: str
    ) -> None:
        path = f"{self._directory}/net/ipv6/conf/{link}/{setting}"
        try:
            apply(path, value.encode())
        except OSError as error:
            step = f"set net.ipv6.conf.{link}.{setting} to {value}"
            raise SysctlError(f"{plan.name}: {step}: {path}: {error.strerror}") from error


def _wants_ipv6(plan: InterfacePlan) -> bool:
    return any(":" in address.address for address in plan.addresses)


def ensure_setting(path: str, value: bytes) -> None:
    """Writes a setting that does not have the value yet; raises OSError."""
    if not _has_value(path, value):
        write_setting(path, value)


def write_setting(path: str, value: bytes) -> None:
    """Writes a setting. On a read-only mount, one that has the value already is left as it is. Raises OSError."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        if _has_value(path, value):
            return
        raise
    try:
        os.write(fd, value)
    finally:
        os.close(fd)


def _has_value(path: str, value: bytes) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(fd, _MAX_BYTES).strip() == value
    finally:
        os.close(fd)

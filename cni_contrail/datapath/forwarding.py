"""Forwarding of packets between links of the node, which routed ports need.

IPv4: `net.ipv4.ip_forward`. IPv6: `net.ipv6.conf.all.forwarding`, after which a link no longer accepts router
advertisements, and loses the default route that it has from one, unless its `accept_ra` is 2. So each link that accepts
them (1) gets 2 first, as on a router that has its uplink's address from its provider.

Settings that already have their value are not written. They are not taken back: other programs may rely on them.
"""

from __future__ import annotations

import os

from cni_contrail.link.errors import SysctlError
from cni_contrail.link.sysctls import ensure_setting

_MAX_BYTES = 32  # longer than any number
_ALL_LINKS = ("all", "default")  # not links


def enable_forwarding(*, ipv6: bool, sysctl_dir: str) -> int:
    """Enables forwarding of IPv4, and with `ipv6` of IPv6; returns the number of settings changed.

    The calling thread is in the node's network namespace. Raises SysctlError.
    """
    changes = _set(sysctl_dir, "ipv4/ip_forward", "1")
    if ipv6 and _read(sysctl_dir, "ipv6/conf/all/forwarding") != "1":
        changes += _keep_router_advertisements(sysctl_dir)
        changes += _set(sysctl_dir, "ipv6/conf/all/forwarding", "1")
    return changes


def arp_problem(sysctl_dir: str) -> str | None:
    """Returns why pods get no answer to ARP requests for their gateway, if they get none; raises SysctlError."""
    value = _read(sysctl_dir, "ipv4/conf/all/arp_ignore")
    if value not in ("2", "8"):
        return None
    return f"net.ipv4.conf.all.arp_ignore is {value}: pods cannot resolve their gateway; set it to 0 or 1"


def forwarding_problem(*, ipv6: bool, sysctl_dir: str) -> str | None:
    """Returns which forwarding is not enabled that pods need; None if all is. Raises SysctlError."""
    keys = ["ipv4/ip_forward", *(["ipv6/conf/all/forwarding"] if ipv6 else [])]
    off = [key for key in keys if _read(sysctl_dir, key) != "1"]
    return ", ".join(f"net.{key.replace('/', '.')} is off" for key in off) or None


def enable_ipv6(link: str, *, sysctl_dir: str) -> None:
    """Enables IPv6 on a host end, which ignores router advertisements of its pod; raises SysctlError."""
    _ensure(sysctl_dir, f"ipv6/conf/{link}/accept_ra", "0")
    _ensure(sysctl_dir, f"ipv6/conf/{link}/disable_ipv6", "0")


def disable_ipv6(link: str, *, sysctl_dir: str) -> None:
    """Disables IPv6 on a host end, which removes its IPv6 addresses, routes and neighbours; raises SysctlError."""
    if os.path.isdir(f"{sysctl_dir}/net/ipv6/conf/{link}"):
        _ensure(sysctl_dir, f"ipv6/conf/{link}/disable_ipv6", "1")


def _set(sysctl_dir: str, key: str, value: str) -> int:
    """Writes a setting that does not have the value yet; returns the number of changes. Raises SysctlError."""
    if _read(sysctl_dir, key) == value:
        return 0
    _ensure(sysctl_dir, key, value)
    return 1


def _ensure(sysctl_dir: str, key: str, value: str) -> None:
    path = f"{sysctl_dir}/net/{key}"
    try:
        ensure_setting(path, value.encode())
    except OSError as error:
        raise _sysctl_error(f"set net.{key.replace('/', '.')} to {value}", path, error) from error


def _keep_router_advertisements(sysctl_dir: str) -> int:
    changes = 0
    for link in os.listdir(f"{sysctl_dir}/net/ipv6/conf"):
        key = f"ipv6/conf/{link}/accept_ra"
        try:
            if link not in _ALL_LINKS and _read(sysctl_dir, key) == "1":
                changes += _set(sysctl_dir, key, "2")
        except SysctlError:
            if os.path.exists(f"{sysctl_dir}/net/ipv6/conf/{link}"):
                raise  # otherwise the link was deleted meanwhile
    return changes


def _read(sysctl_dir: str, key: str) -> str:
    path = f"{sysctl_dir}/net/{key}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(fd, _MAX_BYTES).decode().strip()
        finally:
            os.close(fd)
    except OSError as error:
        raise _sysctl_error(f"read net.{key.replace('/', '.')}", path, error) from error


def _sysctl_error(what: str, path: str, error: OSError) -> SysctlError:
    return SysctlError(f"{what}: {path}: {error.strerror}")

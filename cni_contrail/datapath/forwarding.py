"""Forwarding of packets between links of the node, which routed ports need.

IPv4: `net.ipv4.ip_forward`. IPv6: `net.ipv6.conf.all.forwarding`, after which a link no longer accepts router
advertisements, and loses the default route that it has from one, unless its `accept_ra` is 2. So each link that accepts
them (1) gets 2 first, as on a router that has its uplink's address from its provider.

Settings that already have their value are not written. They are not taken back: other programs may rely on them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cni_contrail.datapath.kernel_settings import read_settings, write_settings
from cni_contrail.link.errors import SysctlError

_IPV4, _IPV6 = "ipv4/ip_forward", "ipv6/conf/all/forwarding"
_ARP_IGNORE = "ipv4/conf/all/arp_ignore"
_ACCEPT_RA = "/accept_ra"
_ALL_LINKS = ("all", "default")  # not links


def enable_forwarding(*, ipv6: bool, sysctl_dir: str) -> int:
    """Enables forwarding of IPv4, and with `ipv6` of IPv6; returns the number of settings changed.

    The calling thread is in the node's network namespace. Raises SysctlError.
    """
    changes = 0
    for key, value in plan_forwarding(read_forwarding(sysctl_dir, ipv6=ipv6), ipv6=ipv6).items():
        try:
            changes += write_settings(sysctl_dir, {key: value})
        except SysctlError:
            if not _is_of_gone_link(sysctl_dir, key):
                raise
    return changes


def read_forwarding(sysctl_dir: str, *, ipv6: bool) -> dict[str, str]:
    """Returns the settings on which `plan_forwarding` depends; raises SysctlError."""
    found = read_settings(sysctl_dir, [_IPV4, _IPV6] if ipv6 else [_IPV4])
    if ipv6 and found[_IPV6] != "1":
        for link in os.listdir(f"{sysctl_dir}/net/ipv6/conf"):
            if link not in _ALL_LINKS:
                found |= _read_unless_gone(sysctl_dir, f"ipv6/conf/{link}{_ACCEPT_RA}")
    return found


def plan_forwarding(found: Mapping[str, str], *, ipv6: bool) -> dict[str, str]:
    """Returns the settings to write so that packets are forwarded, in that order. Pure.

    `found` also has `accept_ra` of the links if IPv6 is not forwarded yet.
    """
    changes = {} if found[_IPV4] == "1" else {_IPV4: "1"}
    if ipv6 and found[_IPV6] != "1":
        changes |= {key: "2" for key, value in found.items() if key.endswith(_ACCEPT_RA) and value == "1"}
        changes[_IPV6] = "1"
    return changes


def arp_problem(sysctl_dir: str) -> str | None:
    """Returns why pods get no answer to ARP requests for their gateway, if they get none; raises SysctlError."""
    value = read_settings(sysctl_dir, [_ARP_IGNORE])[_ARP_IGNORE]
    if value not in ("2", "8"):
        return None
    return f"net.ipv4.conf.all.arp_ignore is {value}: pods cannot resolve their gateway; set it to 0 or 1"


def forwarding_problem(*, ipv6: bool, sysctl_dir: str) -> str | None:
    """Returns which forwarding is not enabled that pods need; None if all is. Raises SysctlError."""
    found = read_settings(sysctl_dir, [_IPV4, _IPV6] if ipv6 else [_IPV4])
    off = [key for key, value in found.items() if value != "1"]
    return ", ".join(f"net.{key.replace('/', '.')} is off" for key in off) or None


def enable_ipv6(link: str, *, sysctl_dir: str) -> None:
    """Enables IPv6 on a host end, which ignores router advertisements of its pod; raises SysctlError."""
    write_settings(sysctl_dir, {f"ipv6/conf/{link}/accept_ra": "0", f"ipv6/conf/{link}/disable_ipv6": "0"})


def disable_ipv6(link: str, *, sysctl_dir: str) -> None:
    """Disables IPv6 on a host end, which removes its IPv6 addresses, routes and neighbours; raises SysctlError."""
    if os.path.isdir(f"{sysctl_dir}/net/ipv6/conf/{link}"):
        write_settings(sysctl_dir, {f"ipv6/conf/{link}/disable_ipv6": "1"})


def _read_unless_gone(sysctl_dir: str, key: str) -> dict[str, str]:
    try:
        return read_settings(sysctl_dir, [key])
    except SysctlError:
        if not _is_of_gone_link(sysctl_dir, key):
            raise
        return {}


def _is_of_gone_link(sysctl_dir: str, key: str) -> bool:
    """Returns whether a setting is that of a link that was deleted meanwhile."""
    return key.endswith(_ACCEPT_RA) and not os.path.exists(f"{sysctl_dir}/net/{key.removesuffix(_ACCEPT_RA)}")

"""Links, addresses, routes and sysctls of a network namespace, read with `ip` and from /proc."""

import json
import re
from typing import Any

from tests.support.netns import Netns

_OPERATIONAL = re.compile(r"NO-CARRIER,|,LOWER_UP|M-DOWN,| state \S+")
"""Operational state, which the kernel changes on its own; the rest of the output is configuration."""


def link(netns: Netns, name: str) -> dict[str, Any]:
    """The link of this name, with details."""
    (found,) = json.loads(netns.ip("-j", "-d", "link", "show", "dev", name))
    assert isinstance(found, dict)
    return found


def addresses(netns: Netns, name: str) -> list[dict[str, Any]]:
    """The addresses of the link without the link-local one that the kernel derives from its MAC."""
    (found,) = json.loads(netns.ip("-j", "addr", "show", "dev", name))
    return [each for each in found["addr_info"] if each["scope"] != "link"]


def address_texts(netns: Netns, name: str) -> list[str]:
    """`addresses` as `address/prefix length`."""
    return [f"{each['local']}/{each['prefixlen']}" for each in addresses(netns, name)]


def link_local(netns: Netns, name: str) -> list[dict[str, Any]]:
    """The link-local addresses of the link."""
    (found,) = json.loads(netns.ip("-j", "addr", "show", "dev", name))
    return [each for each in found["addr_info"] if each["scope"] == "link"]


def routes(netns: Netns, *, version: int, protocol: str = "static", table: str = "main") -> list[dict[str, Any]]:
    """The routes of one protocol in the kernel's order; the plugin's routes are `static`."""
    found = json.loads(netns.ip("-j", f"-{version}", "route", "show", "table", table, "proto", protocol) or "[]")
    assert isinstance(found, list)
    return found


def defaults(netns: Netns, *, version: int) -> list[dict[str, Any]]:
    """All default routes of the main table."""
    found = json.loads(netns.ip("-j", f"-{version}", "route", "show", "default") or "[]")
    assert isinstance(found, list)
    return found


def everything(netns: Netns) -> str:
    """Links, addresses and routes of the main table as text, to compare before and after."""
    links = _OPERATIONAL.sub("", netns.ip("-o", "link"))
    return links + netns.ip("-o", "addr") + netns.ip("-4", "route") + netns.ip("-6", "route")


def read_sysctl(netns: Netns, key: str) -> str:
    """The value of a sysctl, `net/ipv6/conf/eth0/accept_ra`."""
    with netns.inside(), open(f"/proc/sys/{key}") as file:
        return file.read().strip()


def write_sysctl(netns: Netns, key: str, value: str) -> None:
    with netns.inside(), open(f"/proc/sys/{key}", "w") as file:
        file.write(value)

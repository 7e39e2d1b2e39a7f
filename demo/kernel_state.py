"""Reads links and routes of a network namespace with iproute2, independently of our own netlink code."""

import ipaddress
import json
import subprocess
from typing import Any, NamedTuple

from cni_contrail.link.kernel_links import KERNEL_LINKS

EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}
"""Destination of a default route, by family."""

_TIMEOUT = 10.0


class Link(NamedTuple):
    """A link; `addresses` are in CIDR form, without the link-local ones that the kernel assigns."""

    name: str
    mac: str
    mtu: int
    addresses: tuple[str, ...]


class KernelRoute(NamedTuple):
    """A route through a link; `gateway` is None for an on-link route."""

    family: int
    destination: str
    gateway: str | None
    link: str


def raise_loopback(namespace: str) -> None:
    """Brings up the loopback link, which is down in a new network namespace."""
    _ip(namespace, "link", "set", "lo", "up")


def read_links(namespace: str) -> list[Link]:
    """Returns the links of a network namespace that the kernel has not made itself, in the order of their creation."""
    links = [link for link in _ip(namespace, "address", "show") if link["ifname"] not in {"lo", *KERNEL_LINKS}]
    return [_link(link) for link in sorted(links, key=lambda link: int(link["ifindex"]))]


def read_routes(namespace: str) -> list[KernelRoute]:
    """Returns the routes of both families, without those that the kernel adds for addresses."""
    return [
        KernelRoute(family, _destination(route["dst"], family), route.get("gateway"), route["dev"])
        for family in (4, 6)
        for route in _ip(namespace, f"-{family}", "route", "show")
        if route.get("protocol") != "kernel"  # added by the kernel along with an address
    ]


def _link(link: dict[str, Any]) -> Link:
    addresses = (f"{each['local']}/{each['prefixlen']}" for each in link["addr_info"] if each["scope"] == "global")
    return Link(link["ifname"], link["address"], link["mtu"], tuple(addresses))


def _destination(text: str, family: int) -> str:
    """Returns a CIDR; iproute2 prints `default` and omits the prefix of a single address."""
    if text == "default":
        return EVERYWHERE[family]
    return str(ipaddress.ip_network(text))


def _ip(namespace: str, *command: str) -> list[dict[str, Any]]:
    completed = subprocess.run(
        ["ip", "-n", namespace, "-json", *command], check=True, capture_output=True, timeout=_TIMEOUT
    )
    rows: list[dict[str, Any]] = json.loads(completed.stdout or b"[]")
    return rows

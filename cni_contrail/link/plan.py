"""What one attachment shall be in the kernel: worked out whole before anything is made.

Plain tuples, since this module is on the path of ADD, where import time is latency.
"""

from __future__ import annotations

from cni_contrail.link.named_tuple import NamedTuple


class Address(NamedTuple):
    """An address with its prefix length; IPv4 or IPv6 by its form.

    `metric` is that of the route to its subnet, 0 for what the kernel takes: 0 for IPv4, 256 for IPv6.
    """

    address: str
    prefix_length: int
    metric: int = 0


class Route(NamedTuple):
    """A route through the interface: `destination` a CIDR, `gateway` an address, or None for on-link."""

    destination: str
    gateway: str | None


class DefaultRoute(NamedTuple):
    """A default route of one family through the interface.

    `asked`: an annotation asked for it, so it replaces an existing default route of the sandbox, which is recorded and
    put back by DEL; otherwise it is created exclusively.
    """

    gateway: str
    asked: bool


class InterfacePlan(NamedTuple):
    """One interface: its sandbox end `name`, its host end `host_name`, both with `mtu` (bytes)."""

    name: str
    host_name: str
    alias: str
    mac: str
    mtu: int
    addresses: tuple[Address, ...]
    routes: tuple[Route, ...]
    defaults: tuple[DefaultRoute, ...]


class ReplacedRoute(NamedTuple):
    """A default route of the sandbox that an asked-for one replaced: what DEL puts back.

    `family` is AF_INET or AF_INET6; `gateway` None for on-link; `onlink`: the gateway is in no subnet of the interface.
    """

    family: int
    gateway: str | None
    interface: str
    metric: int
    onlink: bool = False

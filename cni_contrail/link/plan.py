"""Interface plans: the desired state of one attachment in the kernel, complete before anything is created.

Plain tuples, since this module is on the path of ADD, where import time is latency. The record of an attachment stores
plans by these field names.
"""

from __future__ import annotations

from cni_contrail.link.named_tuple import NamedTuple


class Address(NamedTuple):
    """An IPv4 or IPv6 address with its prefix length.

    `metric` applies to the route to its subnet; 0 means the kernel's default: 0 for IPv4, 256 for IPv6.
    """

    address: str
    prefix_length: int
    metric: int = 0


class Route(NamedTuple):
    """A route through the interface: `destination` is a CIDR, `gateway` an address, or None for on-link."""

    destination: str
    gateway: str | None


class DefaultRoute(NamedTuple):
    """A default route of one family through the interface.

    `asked`: an annotation requests it, so it replaces an existing default route of the sandbox, which is recorded and
    restored by DEL; otherwise it is created exclusively.
    """

    gateway: str
    asked: bool


class SourceRouting(NamedTuple):
    """Traffic from `address` uses the routing table `table` of the interface, with a default route via `gateway`.

    `gateway` is None if the table has no default route.
    """

    address: str
    prefix_length: int
    gateway: str | None
    table: int


class InterfacePlan(NamedTuple):
    """One interface: the sandbox end `name` and the host end `host_name`, both with `mtu` (bytes).

    `source_routing` has its addresses in subnets that overlap those of other interfaces of the pod.

    The host end is in the host's namespace, or with `namespace` in that of its network (`host_side`), as a port of the
    bridge. `routed` are gateways of the pod's subnets, by which it reaches even these; its `routes` say so. With them
    and without `namespace` the datapath routes it in the host's, and `network` is the number of its network, if that is
    isolated from the cluster's.

    A veth pair, unless `vlan_id` is set (nested mode): then `name` is a macvlan over the VLAN `vlan_id` of the host's
    link `parent`, and `host_name` is the name that a VLAN link gets if this plugin creates it (see `vlan_links`).
    """

    name: str
    host_name: str
    alias: str
    mac: str
    mtu: int
    addresses: tuple[Address, ...]
    routes: tuple[Route, ...]
    defaults: tuple[DefaultRoute, ...]
    source_routing: tuple[SourceRouting, ...] = ()
    parent: str = ""
    vlan_id: int = 0
    namespace: str = ""
    routed: tuple[str, ...] = ()
    network: int = 0


class ReplacedRoute(NamedTuple):
    """A default route of the sandbox that a requested one replaced; DEL restores it.

    `family` is AF_INET or AF_INET6; `gateway` is None for on-link; `onlink`: the gateway is in no subnet of the
    interface.
    """

    family: int
    gateway: str | None
    interface: str
    metric: int
    onlink: bool = False

"""Interfaces of pods, `eth0` each, connected to networks of a node without the plugin."""

import os
from collections.abc import Iterable
from ipaddress import ip_interface

from cni_contrail.datapath.desired import LocalPort, RoutedPort
from cni_contrail.datapath.routed_port import connect_routed
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks

_BEHIND_OTHERS = 0x7FFFFFFF  # metric of the route that the kernel adds for the subnet of an address


def plug(pod: Netns, networks: NodeNetworks, vni: int, port: LocalPort, *, mtu: int) -> None:
    """Creates the interface in a network that the node has, in the subnets 10.7.0.0/24 and fd07::/64."""
    networks.run(
        vni, "ip", "link", "add", port.link, "mtu", str(mtu), "up", "type", "veth",
        "peer", "name", "eth0", "address", port.mac, "mtu", str(mtu), "netns", pod.path,
    )  # fmt: skip
    for address in port.addresses:
        length, options = (64, ["nodad"]) if ":" in address else (24, [])
        pod.ip("address", "add", f"{address}/{length}", "dev", "eth0", *options)
    pod.ip("link", "set", "eth0", "up")


def route_by_gateways(pod: Netns, gateways: Iterable[Address]) -> None:
    """Lets the pod send what is for its own subnets to their gateways, as in a network that is routed."""
    for gateway in gateways:
        subnet = str(ip_interface(f"{gateway.address}/{gateway.prefix_length}").network)
        pod.ip("route", "delete", subnet, "dev", "eth0")
        pod.ip("route", "add", gateway.address, "dev", "eth0")
        pod.ip("route", "add", subnet, "via", gateway.address, "dev", "eth0")
    pod.ip("neighbour", "flush", "dev", "eth0")


def plug_routed(pod: Netns, port: RoutedPort, subnets: tuple[str, str], *, mtu: int) -> None:
    """Creates the interface of index 0 and connects it as ADD does; the calling thread is in the node's namespace."""
    lengths = [int(subnet.partition("/")[2]) for subnet in subnets]
    plan = InterfacePlan(
        name="eth0",
        host_name=port.link,
        alias=f"contrail pod {port.link}",
        mac=port.mac,
        mtu=mtu,
        addresses=tuple(Address(*each, _BEHIND_OTHERS) for each in zip(port.addresses, lengths, strict=True)),
        routes=tuple(
            route
            for gateway, subnet in zip(port.gateways, subnets, strict=True)
            for route in (Route(f"{gateway}/{128 if ':' in gateway else 32}", None), Route(subnet, gateway))
        ),
        defaults=tuple(DefaultRoute(gateway, asked=False) for gateway in port.gateways),
    )
    netns = open_netns(pod.path)
    try:
        make_interfaces(netns, [plan])
        connect_routed(port, None)
    finally:
        os.close(netns)

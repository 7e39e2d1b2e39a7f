"""A node with routed pods and a host outside, in namespaces of their own."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import pytest

from cni_contrail.datapath.desired import Masquerade, Routed, RoutedPort
from cni_contrail.datapath.routed_port import connect_routed
from cni_contrail.datapath.routed_reconciler import RoutedOutcome, purge_routed, reconcile_routed
from cni_contrail.link.make import make_interfaces
from cni_contrail.link.netns import open_netns
from cni_contrail.link.plan import Address, DefaultRoute, InterfacePlan, Route
from tests.cni_contrail.conftest import until
from tests.support import kernel_state
from tests.support.netns import Netns

GATEWAYS = ("10.8.0.1", "fd08::1")
SUBNETS = ("10.8.0.0/24", "fd08::/64")
NODE_OUTSIDE = ("192.0.2.1", "2001:db8::1")
OUTSIDE = ("192.0.2.2", "2001:db8::2")
COUNTED_PORTS = re.compile(r"\n\s*elements = {[^}]*\bcounter\b[^}]*}")
"""Elements that the kernel adds to a set of the filter when it drops a packet."""
REMOTE = ("10.8.9.2", "fd08:9::2")
"""Addresses of the host behind a tunnel."""

BEHIND_OTHERS = 0x7FFFFFFF
"""Metric of the route that the kernel adds for the subnet of an address."""


class RoutedPod(NamedTuple):
    """A pod's namespace with `eth0`, its port on the node, and the plan by which both were made."""

    namespace: Netns
    port: RoutedPort
    plan: InterfacePlan

    @property
    def ipv4(self) -> str:
        """Its IPv4 address."""
        return self.port.addresses[0]

    @property
    def ipv6(self) -> str:
        """Its IPv6 address."""
        return self.port.addresses[1]


def is_up(namespace: Netns, link: str) -> bool:
    """Whether the link has a carrier, and the kernel has noticed it."""
    return bool(kernel_state.link(namespace, link)["operstate"] == "UP")


class RoutedNode:
    """A node without a default route, whose link `uplink` leads to a host outside that knows no pods."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.namespace = self._namespace("node")
        self.outside = self._namespace("outside")
        self.pods: list[RoutedPod] = []
        self.masquerade: Masquerade | None = Masquerade(SUBNETS)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", self.outside.name)
        self.namespace.ip("link", "add", "uplink", *peer)
        ends = ((self.outside, "eth0"), (self.namespace, "uplink"))
        for number, (namespace, link) in enumerate(ends, start=1):
            namespace.ip("link", "set", link, "addrgenmode", "none")  # the kernel's own is tentative for a second
            namespace.ip("address", "add", f"fe80::{number}/64", "dev", link, "nodad")
            namespace.ip("link", "set", link, "up")
        for namespace, link in ends:  # the kernel notices the carrier a moment later
            until(partial(is_up, namespace, link))
        for namespace, link, addresses in ((self.namespace, "uplink", NODE_OUTSIDE), (self.outside, "eth0", OUTSIDE)):
            namespace.ip("address", "add", f"{addresses[0]}/24", "dev", link)
            namespace.ip("address", "add", f"{addresses[1]}/64", "dev", link, "nodad")

    def add_pod(self, number: int, *, network: int = 0) -> RoutedPod:
        """Creates a pod whose addresses end in the number, as the plugin does; its port is not connected yet."""
        namespace = self._namespace("pod")
        addresses = (f"10.8.0.{number}", f"fd08::{number:x}")
        port = RoutedPort(f"tap{number}", f"02:00:00:00:08:{number:02x}", addresses, GATEWAYS, network)
        plan = InterfacePlan(
            name="eth0",
            host_name=port.link,
            alias=f"contrail pod {number}",
            mac=port.mac,
            mtu=1450,
            addresses=(Address(addresses[0], 24, BEHIND_OTHERS), Address(addresses[1], 64, BEHIND_OTHERS)),
            routes=(
                Route(f"{GATEWAYS[0]}/32", None),
                Route(SUBNETS[0], GATEWAYS[0]),
                Route(f"{GATEWAYS[1]}/128", None),
                Route(SUBNETS[1], GATEWAYS[1]),
            ),
            defaults=tuple(DefaultRoute(gateway, asked=False) for gateway in GATEWAYS),
        )
        netns = open_netns(namespace.path)
        with self.namespace.inside():
            make_interfaces(netns, [plan])
        os.close(netns)
        pod = RoutedPod(namespace, port, plan)
        self.pods.append(pod)
        return pod

    def add_remote(self) -> Netns:
        """Returns the namespace of a host that knows the pods, behind a link that has the name of a tunnel."""
        remote = self._namespace("remote")
        self.namespace.ip("link", "add", "contrail.0", "type", "veth", "peer", "name", "eth0", "netns", remote.name)
        for namespace, link, last in ((remote, "eth0", 2), (self.namespace, "contrail.0", 1)):
            namespace.ip("link", "set", link, "up")
            namespace.ip("address", "add", f"10.8.9.{last}/24", "dev", link)
            namespace.ip("address", "add", f"fd08:9::{last}/64", "dev", link, "nodad")
        for subnet, gateway in zip(SUBNETS, ("10.8.9.1", "fd08:9::1"), strict=True):
            remote.ip("route", "add", subnet, "via", gateway)
        self.masquerade = Masquerade((*SUBNETS, "10.8.9.0/24", "fd08:9::/64"))
        self.reconcile()
        return remote

    def remove_pod(self, pod: RoutedPod) -> None:
        """Deletes a pod's link; its port is no longer desired."""
        self.namespace.ip("link", "delete", pod.port.link)
        self.pods.remove(pod)

    def desired(self) -> Routed:
        """All pods."""
        return Routed(tuple(pod.port for pod in self.pods), self.masquerade)

    def connect(self, pod: RoutedPod) -> None:
        """Connects one port."""
        with self.namespace.inside():
            connect_routed(pod.port, self.masquerade)

    def reconcile(self) -> RoutedOutcome:
        """Brings the kernel to `desired`."""
        with self.namespace.inside():
            return reconcile_routed(self.desired())

    def purge(self) -> None:
        """Removes everything."""
        with self.namespace.inside():
            purge_routed(with_ports=True)

    def run(self, *command: str) -> str:
        """Runs a command in the node's namespace."""
        done = self.namespace.run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self) -> str:
        """Everything in the kernel that a routed port may have, without what changes by itself."""
        commands = (
            ("ip", "-d", "link"),
            ("ip", "address"),
            ("ip", "route", "show", "table", "all"),
            ("ip", "-6", "route", "show", "table", "all"),
            ("ip", "neighbour", "show", "nud", "permanent"),
            ("nft", "-s", "list", "ruleset"),
        )
        return COUNTED_PORTS.sub("", "\n".join(self.run(*command) for command in commands))

    def _namespace(self, kind: str) -> Netns:
        namespace = Netns(kind)
        self._stack.callback(namespace.delete)
        return namespace


@pytest.fixture
def node() -> Iterator[RoutedNode]:
    """A node without pods."""
    with ExitStack() as stack:
        yield RoutedNode(stack)


@pytest.fixture
def pair(node: RoutedNode) -> tuple[RoutedPod, RoutedPod]:
    """Two connected pods of one subnet."""
    pods = node.add_pod(2), node.add_pod(3)
    for pod in pods:
        node.connect(pod)
    return pods

"""A node with virtual networks whose packets may leave them, and a host outside."""

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import LocalPort, Network
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.link.plan import Address
from tests.support.fake_clock import FakeClock
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks

GATEWAYS = (Address("10.7.0.1", 24), Address("fd07::1", 64))
OTHER_GATEWAYS = (Address("10.9.0.1", 24), Address("fd09::1", 64))
NODE = ("192.0.2.1", "2001:db8::1")
OUTSIDE = ("192.0.2.2", "2001:db8::2")
MTU = 1450
_numbers = itertools.count()


class Pod:
    """A pod's namespace with `eth0` in one network; its addresses end in `number`."""

    def __init__(self, networks: NodeNetworks, network: Network, stack: ExitStack, number: int) -> None:
        self.namespace = Netns("pod")
        stack.callback(self.namespace.delete)
        mac, link = f"02:00:00:00:00:{number:02x}", f"tap{number}"
        addresses = [(each.address.removesuffix("1") + f"{number:x}", each.prefix_length) for each in network.gateways]
        self.ipv4, self.ipv6 = (address for address, _ in addresses)
        self.port = LocalPort(link, mac, (self.ipv4, self.ipv6))
        networks.run(network.vni, "ip", "link", "add", link, "mtu", str(MTU), "up", "type", "veth", "peer", "name",
                     "eth0", "address", mac, "mtu", str(MTU), "netns", self.namespace.name)  # fmt: skip
        self.namespace.ip("link", "set", "eth0", "up")
        for (address, length), gateway in zip(addresses, network.gateways, strict=True):
            flags = ("nodad",) if ":" in address else ()
            self.namespace.ip("address", "add", f"{address}/{length}", "dev", "eth0", *flags)
            family = "-6" if ":" in address else "-4"
            self.namespace.ip(family, "route", "add", "default", "via", gateway.address)


class UplinkNode:
    """A node without a default route, whose link `fabric` leads to a host outside that knows no pods."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._stack = stack
        self.clock = FakeClock()
        self.fabric_subnets: tuple[str, ...] = ("0.0.0.0/0", "::/0")
        self.networks = NodeNetworks(directory)
        stack.callback(self.networks.close)
        self.namespace, self.outside = Netns("node"), Netns("outside")
        stack.callback(self.outside.delete)
        stack.callback(self.namespace.delete)
        self.reconciler = NodeReconciler(self.networks.namespaces, clock=self.clock)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", self.outside.name)
        self.namespace.ip("link", "add", "fabric", *peer)
        for number, (namespace, link) in enumerate(((self.outside, "eth0"), (self.namespace, "fabric")), start=1):
            namespace.ip("link", "set", link, "addrgenmode", "none")  # the kernel's own is tentative for a second
            namespace.ip("address", "add", f"fe80::{number}/64", "dev", link, "nodad")
        for namespace, link, addresses in ((self.namespace, "fabric", NODE), (self.outside, "eth0", OUTSIDE)):
            namespace.ip("link", "set", link, "addrgenmode", "none")  # the kernel's own is tentative for a second
            namespace.ip("address", "add", f"fe80::{addresses[0][-1]}/64", "dev", link, "nodad")
            namespace.ip("link", "set", link, "up")
            namespace.ip("address", "add", f"{addresses[0]}/24", "dev", link)
            namespace.ip("address", "add", f"{addresses[1]}/64", "dev", link, "nodad")

    def network(self, *, snat: bool = False, forwarding: bool = False) -> Network:
        """Returns a network of a number of its own; all have the same addresses."""
        vni = 12_000_000 + os.getpid() % 10_000 * 100 + next(_numbers) % 100
        return Network(vni, MTU, GATEWAYS, (), snat=snat, forwarding=forwarding)

    def add_pod(self, network: Network, number: int = 2) -> tuple[Network, Pod]:
        """Creates the network and a pod of it; returns the network with its port."""
        self.reconcile(network)
        pod = Pod(self.networks, network, self._stack, number)
        return network._replace(ports=(*network.ports, pod.port)), pod

    def reconcile(self, *desired: Network) -> NodeOutcome:
        """Brings the kernel to the desired state."""
        with self.namespace.inside():
            return self.reconciler.reconcile(desired, fabric_subnets=self.fabric_subnets)

    def add_host(self, link: str, address: str) -> Netns:
        """Returns the namespace of a host behind a new link of the node."""
        namespace = Netns("host")
        self._stack.callback(namespace.delete)
        peer = ("type", "veth", "peer", "name", "eth0", "netns", namespace.name)
        self.namespace.ip("link", "add", link, "up", *peer)
        gateway = address.removesuffix("2") + "1"
        self.namespace.ip("address", "add", f"{gateway}/24", "dev", link)
        namespace.ip("link", "set", "eth0", "up")
        namespace.ip("address", "add", f"{address}/24", "dev", "eth0")
        namespace.ip("route", "add", "default", "via", gateway)
        return namespace

    def route_outside(self, *subnets: str) -> None:
        """Lets the host outside reach subnets through the node."""
        for subnet in subnets:
            gateway = NODE[1] if ":" in subnet else NODE[0]
            self.outside.ip("route", "add", subnet, "via", gateway)

    def run(self, *command: str) -> str:
        """Runs a command in the node's namespace."""
        done = self.namespace.run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def objects(self) -> str:
        """Links, addresses, routes and rules of the node, without what changes by itself."""
        commands = (
            ("ip", "-o", "link"),
            ("ip", "-o", "address"),
            ("ip", "route", "show", "table", "all"),
            ("ip", "-6", "route", "show", "table", "all"),
            ("nft", "-s", "list", "ruleset"),
        )
        return "\n".join(self.run(*command) for command in commands)

    @property
    def namespaces(self) -> Namespaces:
        """The namespaces of its networks."""
        return self.networks.namespaces


@pytest.fixture
def node(tmp_path: Path) -> Iterator[UplinkNode]:
    """A node without networks."""
    with ExitStack() as stack:
        yield UplinkNode(tmp_path / "networks", stack)

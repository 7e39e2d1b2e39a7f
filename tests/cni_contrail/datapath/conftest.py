"""A virtual network with pods, made by the reconciler in namespaces of its own."""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from cni_contrail.datapath.desired import LocalPort, Network
from cni_contrail.datapath.namespaces import Namespaces, name_of
from cni_contrail.datapath.network_reconciler import Reconciled, reconcile_network
from cni_contrail.link.plan import Address
from tests.support.netns import Netns

MTU = 1450
GATEWAYS = (Address("10.7.0.1", 24), Address("fd07::1", 64))
_HIGHEST_VNI = 1 << 24
_numbers = itertools.count()


class Pod(NamedTuple):
    """A pod's namespace, with `eth0` in the network."""

    namespace: Netns
    port: LocalPort

    @property
    def mac(self) -> str:
        """MAC of eth0."""
        return self.port.mac

    @property
    def ipv4(self) -> str:
        """Its IPv4 address."""
        return self.port.addresses[0]

    @property
    def ipv6(self) -> str:
        """Its IPv6 address."""
        return self.port.addresses[1]


class VirtualNetwork:
    """A network of this process, with its bridge, and its desired state."""

    def __init__(self, vni: int, stack: ExitStack) -> None:
        self.vni = vni
        self.name = name_of(vni)
        self._stack = stack
        self.namespaces = Namespaces()
        stack.callback(self.namespaces.delete, vni)
        self.netns = self.namespaces.open(vni)
        stack.callback(os.close, self.netns)
        self.pods: list[Pod] = []
        self.reconcile()

    def desired(self) -> Network:
        """The network with all its pods."""
        return Network(self.vni, MTU, GATEWAYS, tuple(pod.port for pod in self.pods))

    def reconcile(self) -> Reconciled:
        """Brings the kernel to `desired`."""
        return reconcile_network(self.netns, self.desired())

    def add_pod(self, number: int) -> Pod:
        """Creates a pod whose MAC and addresses end in the number; it is connected by the next `reconcile`."""
        port = LocalPort(f"tap{number}", f"02:00:00:00:00:{number:02x}", (f"10.7.0.{number}", f"fd07::{number:x}"))
        pod = Pod(Netns("pod"), port)
        self._stack.callback(pod.namespace.delete)
        self.ip("link", "add", port.link, "mtu", str(MTU), "up", "type", "veth", "peer", "name", "eth0",
                "address", port.mac, "mtu", str(MTU), "netns", pod.namespace.name)  # fmt: skip
        pod.namespace.ip("address", "add", f"{pod.ipv4}/24", "dev", "eth0")
        pod.namespace.ip("address", "add", f"{pod.ipv6}/64", "dev", "eth0", "nodad")
        pod.namespace.ip("link", "set", "eth0", "up")
        self.pods.append(pod)
        return pod

    def ip(self, *args: str) -> str:
        """Runs `ip` in the network's namespace."""
        return self.run("ip", *args)

    def run(self, *command: str) -> str:
        """Runs a command in the network's namespace."""
        within = ["nsenter", f"--net={self.namespaces.path(self.vni)}", "--", *command]
        return subprocess.run(within, check=True, capture_output=True, text=True, timeout=20).stdout


@pytest.fixture
def make_network() -> Iterator[Callable[[], VirtualNetwork]]:
    """Creates networks with numbers that no other test process uses."""
    first = _HIGHEST_VNI - 1 - (os.getpid() % 100_000) * 100
    with ExitStack() as stack:
        yield lambda: VirtualNetwork(first - next(_numbers) % 100, stack)


@pytest.fixture
def network(make_network: Callable[[], VirtualNetwork]) -> VirtualNetwork:
    """A network without pods."""
    return make_network()


@pytest.fixture
def pair(network: VirtualNetwork) -> tuple[Pod, Pod]:
    """Two connected pods of the network."""
    pods = network.add_pod(2), network.add_pod(3)
    network.reconcile()
    return pods

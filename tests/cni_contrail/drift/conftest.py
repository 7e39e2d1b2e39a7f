"""A node whose kernel is programmed and watched, in namespaces of its own, without an agent."""

import itertools
import os
import re
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.desired import (
    LocalPort,
    Masquerade,
    Network,
    RemoteBlock,
    RemoteEndpoint,
    Routed,
    RoutedNetwork,
    RoutedPort,
    Underlay,
)
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.drift.drift_watch import DriftWatch
from cni_contrail.follower.desired_state import DesiredState
from cni_contrail.follower.kernel_program import KernelProgram
from cni_contrail.link.plan import Address
from tests.support.fake_clock import FakeClock
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks

MTU = 1450
GATEWAYS = (Address("10.7.0.1", 24), Address("fd07::1", 64))
ROUTED_GATEWAYS = ("10.8.0.1", "fd08::1")
PORT = LocalPort("tap2", "02:00:00:00:00:02", ("10.7.0.2", "fd07::2"))
ROUTED_PORT = RoutedPort("tapr2", "02:00:00:00:08:02", ("10.8.0.2", "fd08::2"), ROUTED_GATEWAYS)
OTHER_ROUTED_PORT = RoutedPort("tapr3", "02:00:00:00:08:03", ("10.8.0.3", "fd08::3"), ROUTED_GATEWAYS)
OTHER_NODE = "192.0.2.9"
REMOTE = RemoteEndpoint("02:00:00:00:09:09", ("10.7.0.9", "fd07::9"), OTHER_NODE)
NO_UNDERLAY = Underlay((), 4789, frozenset())
UNDERLAY = Underlay(
    ("192.0.2.1",), 4789, frozenset({OTHER_NODE}),
    RoutedNetwork(1, 1400, ("10.8.0.254",), ("10.8.0.0/26",), (RemoteBlock("10.8.0.64/26", OTHER_NODE),)),
)  # fmt: skip
DEADLINE = 10.0  # seconds
_FIRST_VNI = 11_000_000 + os.getpid() % 10_000 * 100
_numbers = itertools.count()
_versions = itertools.count()

_COUNTED = re.compile(r"\s*elements = \{[^}]*counter[^}]*\}")
"""Elements of a set that counts drops by port: the kernel adds one with the first packet, which no test sends."""


class Lines:
    """Log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, message: str, /) -> None:
        self.lines.append(message)

    warning = error = info


class CountingReconciler(NodeReconciler):
    """Counts its `audits`: the rounds that read the kernel because something may have drifted."""

    audits = 0

    def repair(
        self, desired: Sequence[Network], routed: Routed, underlay: Underlay | None, networks: Collection[int]
    ) -> NodeOutcome:
        self.audits += 1
        return super().repair(desired, routed, underlay, networks)


class WatchedNode:
    """The node; the calling thread is in its namespace. Its uplink leads nowhere."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        self.networks = NodeNetworks(folder)
        stack.callback(self.networks.close)
        self.namespace = Netns("node")
        stack.callback(self.namespace.delete)
        stack.enter_context(self.namespace.inside())
        self.clock = FakeClock()
        self.log = Lines()
        self.reconciler = CountingReconciler(self.networks.namespaces, clock=self.clock)
        self.program = KernelProgram(
            Endpoint("/nonexistent", "", 0), "test", self.reconciler, self.log, clock=self.clock
        )
        self.watch(DriftWatch())

    def watch(self, watch: DriftWatch) -> None:
        """Watches by this one, until the end of the test."""
        self._stack.callback(watch.close)
        self._watch = watch
        self.program.watch(watch)

    def network(self, *ports: LocalPort, snat: bool = False) -> Network:
        """Returns a network with a number of its own."""
        return Network(_FIRST_VNI + next(_numbers) % 100, MTU, GATEWAYS, ports, snat=snat)

    def desire(self, *networks: Network, routed: tuple[RoutedPort, ...] = (), underlay: Underlay = NO_UNDERLAY) -> None:
        """Programs a new desired state."""
        ports = Routed(routed, Masquerade(()))
        self.program.program(DesiredState(f"v{next(_versions)}", networks, ports, underlay, ()))

    def add_fabric(self) -> None:
        """Creates the link to other nodes, with UNDERLAY's address."""
        self.namespace.ip("link", "add", "fabric", "up", "type", "veth", "peer", "name", "pfabric")
        self.namespace.ip("link", "set", "pfabric", "up")
        self.namespace.ip("address", "add", f"{UNDERLAY.addresses[0]}/24", "dev", "fabric")

    def add_link(self, network: Network, link: str = PORT.link) -> None:
        """Creates the host end of a port, which is connected with the next desired state."""
        mtu = ("mtu", str(MTU))
        peer = ("type", "veth", "peer", "name", f"p{link}", *mtu)
        self.networks.run(network.vni, "ip", "link", "add", link, *mtu, "up", *peer)
        self.networks.run(network.vni, "ip", "link", "set", f"p{link}", "up")

    def add_routed_link(self, port: RoutedPort) -> None:
        """Creates the host end of a routed port."""
        peer = ("type", "veth", "peer", "name", f"p{port.link}")
        self.namespace.ip("link", "add", port.link, "up", *peer)
        self.namespace.ip("link", "set", port.link, "alias", "contrail pod")
        self.namespace.ip("link", "set", f"p{port.link}", "up")

    def await_repair(self, vni: int) -> str:
        """Repairs what is notified until the network, or with 0 index 0, was repaired; returns what the log says."""
        name = f"network {vni}:" if vni else "index 0:"
        found = self.await_line(f"datapath: {name}")
        assert "repaired" in found
        return found

    def await_line(self, beginning: str) -> str:
        """Repairs what is notified until the log has a line that begins so, and returns it."""
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            for line in self.log.lines:
                if line.startswith(beginning):
                    return line
            self._watch.wait(deadline - time.monotonic())
            self.program.repair()
        raise AssertionError(f"nothing was repaired: {self.log.lines}")

    def objects(self, vni: int) -> list[str]:
        """What is desired of a network, or with 0 of the node, as the kernel has it."""
        commands = (
            ("ip", "-o", "address", "show", "scope", "global"),
            ("ip", "route", "show", "proto", "67"),
            ("ip", "-6", "route", "show", "proto", "67"),
            ("ip", "neighbour", "show", "nud", "permanent"),
            ("bridge", "fdb", "show", "state", "static"),
            ("nft", "-s", "list", "ruleset"),
        )
        text = "\n".join(self.run(vni, *command) for command in commands)
        lines = _COUNTED.sub("", text).splitlines()
        return sorted(re.sub(r"^\d+: ", "", line.replace(" linkdown", "")) for line in lines)

    def run(self, vni: int, *command: str) -> str:
        """Runs a command in a network's namespace, or with 0 in the node's."""
        if vni:
            return self.networks.run(vni, *command)
        done = self.namespace.run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def node(tmp_path: Path) -> Iterator[WatchedNode]:
    """A node without networks."""
    with ExitStack() as stack:
        yield WatchedNode(tmp_path / "networks", stack)


@pytest.fixture
def network(node: WatchedNode) -> Network:
    """A network with a connected port."""
    empty = node.network()
    node.desire(empty)
    node.add_link(empty)
    found = empty._replace(ports=(PORT,))
    node.desire(found)
    settle(node)
    return found


@pytest.fixture
def routed(node: WatchedNode) -> RoutedPort:
    """A connected port of index 0."""
    for port in (ROUTED_PORT, OTHER_ROUTED_PORT):
        node.add_routed_link(port)
    node.desire(routed=(ROUTED_PORT, OTHER_ROUTED_PORT))
    settle(node)
    return ROUTED_PORT


def settle(node: WatchedNode) -> None:
    """Takes the notifications of what the test did, and lets an audit see its links."""
    node.program.audit()
    while node.program.repair():
        pass
    node.log.lines.clear()
    node.clock.advance(3600)  # no back-off of what the test did

"""Nodes of a cluster as network namespaces, joined by a fabric, each with its own virtual networks and pods."""

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

from cni_contrail.datapath.desired import (
    LocalPort,
    Network,
    RemoteEndpoint,
    Routed,
    RoutedNetwork,
    RoutedPort,
    Underlay,
)
from cni_contrail.datapath.node_outcome import NodeOutcome
from cni_contrail.datapath.node_reconciler import STALE_SECONDS, NodeReconciler
from cni_contrail.link.plan import Address
from tests.support.fake_clock import FakeClock
from tests.support.frames import PacketSocket
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugged_pods import plug, plug_routed

PORT = 4789
MTU = 1430
ROUTED_GATEWAYS, ROUTED_SUBNETS = ("10.9.0.1", "fd09::1"), ("10.9.0.0/16", "fd09::/64")
_LAST = b"the last packet"
GATEWAYS = (Address("10.7.0.1", 24), Address("fd07::1", 64))


class FabricPod(NamedTuple):
    """A pod with one interface, `eth0`, in one network."""

    namespace: Netns
    node: "FabricNode"
    vni: int
    port: LocalPort

    @property
    def ipv4(self) -> str:
        """Its IPv4 address."""
        return self.port.addresses[0]

    @property
    def ipv6(self) -> str:
        """Its IPv6 address."""
        return self.port.addresses[1]


class RoutedPod(NamedTuple):
    """A pod with index 0 alone, `eth0`."""

    namespace: Netns
    node: "FabricNode"
    port: RoutedPort

    @property
    def ipv4(self) -> str:
        """Its IPv4 address."""
        return self.port.addresses[0]


class FabricNode:
    """A node; its link `eth0` leads to the fabric, `addresses` are its tunnel addresses."""

    def __init__(self, number: int, folder: Path, clock: FakeClock, stack: ExitStack) -> None:
        self.number = number
        self.namespace = Netns("node")
        stack.callback(self.namespace.delete)
        self.addresses: tuple[str, ...] = (f"192.0.2.{number}", f"2001:db8::{number:x}")
        self.networks = NodeNetworks(folder / str(number))
        stack.callback(self.networks.close)
        self.reconciler = NodeReconciler(self.networks.namespaces, clock=clock)

    @property
    def tunnel(self) -> str:
        """Its first tunnel address."""
        return self.addresses[0]

    def tunnel_from(self, node: "FabricNode") -> str:
        """Its first address of a family that the other node has, too."""
        families = {":" in address for address in node.addresses}
        return next((address for address in self.addresses if (":" in address) in families), self.tunnel)

    def reconcile(
        self, networks: list[Network], underlay: Underlay | None, routed: Routed | None = None
    ) -> NodeOutcome:
        """Brings the node's kernel to this state."""
        with self.namespace.inside():
            return self.reconciler.reconcile(networks, routed or Routed((), None), underlay)

    def run(self, *command: str) -> str:
        """Runs a command in the node's namespace."""
        done = self.namespace.run(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Cluster:
    """All nodes and pods; `mtu` is that of networks, `families` are those of the underlay. See `cluster`."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self.clock = FakeClock()
        self.fabric = Netns("fabric")
        stack.callback(self.fabric.delete)
        self.fabric.ip("link", "add", "fabric", "up", "type", "bridge", "mcast_snooping", "0")
        self.nodes: list[FabricNode] = []
        self.pods: list[FabricPod] = []
        self.mtu = MTU
        self.families: tuple[int, ...] = (0, 1)
        self.routed_pods: list[RoutedPod] = []

    def add_node(self) -> FabricNode:
        """Creates a node that is connected to the fabric."""
        node = FabricNode(len(self.nodes) + 1, self._folder, self.clock, self._stack)
        self.attach(node.namespace, f"node{node.number}")
        for position in self.families:
            length, options = ("64", ("nodad",)) if position else ("24", ())
            node.namespace.ip("address", "add", f"{node.addresses[position]}/{length}", "dev", "eth0", *options)
        node.addresses = tuple(node.addresses[position] for position in self.families)
        self.nodes.append(node)
        return node

    def attach(self, namespace: Netns, port: str) -> None:
        """Connects a namespace to the fabric by its link `eth0`."""
        self.fabric.ip("link", "add", port, "up", "master", "fabric", "type", "veth", "peer", "name", "eth0",
                       "netns", namespace.name)  # fmt: skip
        namespace.ip("link", "set", "eth0", "addrgenmode", "none", "up")

    def underlay(self, node: FabricNode) -> Underlay:
        """The underlay as a node sees it."""
        others = frozenset(address for each in self.nodes if each is not node for address in each.addresses)
        return Underlay(node.addresses, PORT, others)

    def network(self, node: FabricNode, vni: int) -> Network:
        """A network as a node should have it."""
        pods = [pod for pod in self.pods if pod.vni == vni]
        return Network(
            vni,
            self.mtu,
            GATEWAYS,
            tuple(pod.port for pod in pods if pod.node is node),
            remotes=tuple(
                RemoteEndpoint(pod.port.mac, pod.port.addresses, pod.node.tunnel_from(node))
                for pod in pods
                if pod.node is not node
            ),
        )

    def sync(self) -> list[NodeOutcome]:
        """Brings all nodes to the state that follows from the pods; fails if there is a problem."""
        outcomes = self.reconcile()
        assert not any(outcome.problems for outcome in outcomes), [outcome.problems for outcome in outcomes]
        return outcomes

    def reconcile(self) -> list[NodeOutcome]:
        """Brings all nodes to the state that follows from the pods, as far as it can be done now."""
        vnis = sorted({pod.vni for pod in self.pods})
        return [node.reconcile([self.network(node, vni) for vni in vnis], self.underlay(node)) for node in self.nodes]

    def let_removals_begin(self) -> None:
        """Lets the time pass after which stale entries are removed."""
        self.sync()
        self.clock.advance(STALE_SECONDS)

    def sync_index_0(self, networks: dict[FabricNode, RoutedNetwork]) -> list[NodeOutcome]:
        """Brings index 0 of all nodes to these states and the pods'; fails if there is a problem."""
        outcomes = []
        for node, network in networks.items():
            outcomes.append(node.reconcile([], self.underlay(node)._replace(routed=network), self.routed(node)))
        assert not any(outcome.problems for outcome in outcomes), [outcome.problems for outcome in outcomes]
        return outcomes

    def routed(self, node: FabricNode) -> Routed:
        """The pods of index 0 on a node."""
        return Routed(tuple(pod.port for pod in self.routed_pods if pod.node is node), None)

    def add_routed_pod(self, node: FabricNode, addresses: tuple[str, str]) -> RoutedPod:
        """Creates a pod of index 0, and connects it as ADD does."""
        number = len(self.routed_pods) + 1
        port = RoutedPort(f"tap{number}", f"02:00:00:00:09:{number:02x}", addresses, ROUTED_GATEWAYS)
        pod = RoutedPod(Netns("pod"), node, port)
        self._stack.callback(pod.namespace.delete)
        with node.namespace.inside():
            plug_routed(pod.namespace, port, ROUTED_SUBNETS, mtu=self.mtu)
        self.routed_pods.append(pod)
        return pod

    def add_pod(self, node: FabricNode, vni: int, number: int, name: str = "", mac: str = "") -> FabricPod:
        """Creates a pod whose MAC and addresses end in the number, on a node that has the network already, or not.

        `mac` is another one.
        """
        node.reconcile([self.network(node, vni)], None)
        link = name or f"tap{number}"
        port = LocalPort(link, mac or f"02:00:00:00:00:{number:02x}", (f"10.7.0.{number}", f"fd07::{number:x}"))
        pod = FabricPod(Netns("pod"), node, vni, port)
        self._stack.callback(pod.namespace.delete)
        plug(pod.namespace, node.networks, vni, port, mtu=self.mtu)
        self.pods.append(pod)
        return pod

    def remove_pod(self, pod: FabricPod) -> None:
        """Deletes a pod's link."""
        pod.node.networks.run(pod.vni, "ip", "link", "delete", pod.port.link)
        self.pods.remove(pod)


class Capture:
    """Frames that a node sends into the fabric."""

    def __init__(self, cluster: Cluster, node: FabricNode) -> None:
        self._node = node
        self._peer = next(each for each in cluster.nodes if each is not node)
        self._socket = PacketSocket(cluster.fabric, f"node{node.number}")

    def tunnelled(self) -> list[bytes]:
        """Tunnel packets since the last call."""
        with self._node.namespace.inside():
            family = socket.AF_INET6 if ":" in self._peer.tunnel else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as sending:
                sending.sendto(_LAST, (self._peer.tunnel, 9))
        frames = self._socket.received_until(_LAST)
        return [frame for frame in frames if _is_tunnelled(frame)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _is_tunnelled(frame: bytes) -> bool:
    at = 14 + (40 if frame[12:14] == b"\x86\xdd" else 20)
    return frame[12:14] in (b"\x08\x00", b"\x86\xdd") and frame[at + 2 : at + 4] == PORT.to_bytes(2, "big")


@contextlib.contextmanager
def cluster_of(nodes: int, families: tuple[int, ...] = (0, 1)) -> Iterator[Cluster]:
    """A cluster with this number of nodes; `families` of the underlay: 0 is IPv4, 1 is IPv6."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))
        cluster = Cluster(folder, stack)
        cluster.families = families
        for _ in range(nodes):
            cluster.add_node()
        yield cluster

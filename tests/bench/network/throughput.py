"""TCP between pods of two nodes: by a network's tunnel, by that of index 0, and by plain bridges on the same fabric."""

import random
from contextlib import ExitStack
from statistics import median
from typing import Any, NamedTuple

from cni_contrail.datapath.desired import RemoteBlock, RoutedNetwork
from tests.bench.datapath.tcp_stream import gigabits_per_second
from tests.support.netns import Netns
from tests.support.node_fabric import Cluster, FabricNode, cluster_of

TUNNEL = 50  # bytes that a tunnel over IPv4 adds to a packet
SMALL, LARGE = 1450, 1500
"""MTUs of pods: on a fabric of 1500, and on one with room for tunnels."""

BOUNDS = {SMALL: (0.65, 0.75), LARGE: (0.75, 0.82)}
"""Minimum and target of the ratio of a network to a plain path with pods of equal MTU."""

_VNI = 9_200_001


class Pair(NamedTuple):
    """Pods on two nodes, and an address of the second one. `must` and `aim` are None for plain paths."""

    first: Netns
    second: Netns
    address: str
    peer: str = ""
    bounds: tuple[float, float] | None = None


def measure_throughput(*, rounds: int, seconds: float) -> dict[str, Any]:
    """Measures each kind once per round, in random order; ratios are medians of those of the rounds."""
    with ExitStack() as stack:
        pairs = _pairs(stack, SMALL, SMALL + TUNNEL) | _pairs(stack, LARGE, LARGE + TUNNEL)
        rates: dict[str, list[float]] = {name: [] for name in pairs}
        for _ in range(rounds):
            for name in random.sample(list(pairs), len(pairs)):
                pair = pairs[name]
                rates[name].append(gigabits_per_second(pair.first, pair.second, pair.address, seconds))
    return {name: _summary(pair, rates[name], rates.get(pair.peer)) for name, pair in pairs.items()}


def _summary(pair: Pair, measured: list[float], plain: list[float] | None) -> dict[str, float]:
    rates = {"Gbit/s": round(median(measured), 2)}
    if plain is None:
        return rates
    rates["of the plain path"] = round(median(rate / peer for rate, peer in zip(measured, plain, strict=True)), 3)
    if pair.bounds is not None:
        rates["must"], rates["aim"] = pair.bounds
    return rates


def _pairs(stack: ExitStack, mtu: int, fabric_mtu: int) -> dict[str, Pair]:
    """Pairs of pods with this MTU, all on one fabric."""
    cluster = stack.enter_context(cluster_of(2, (0,)))
    cluster.mtu = mtu
    plain = f"plain path, MTU {mtu}"
    pairs = {
        plain: _plain(cluster, stack),
        f"network, MTU {mtu}": _in_network(cluster)._replace(peer=plain, bounds=BOUNDS[mtu]),
        f"index 0, MTU {mtu}": _routed(cluster)._replace(peer=plain),
    }
    for port in cluster.fabric.links():
        cluster.fabric.ip("link", "set", port, "mtu", str(fabric_mtu))
    for node in cluster.nodes:
        node.namespace.ip("link", "set", "eth0", "mtu", str(fabric_mtu))
    _program(cluster)
    return pairs


def _plain(cluster: Cluster, stack: ExitStack) -> Pair:
    """Pods on bridges of nodes whose links to the fabric are ports of these bridges, as without tunnels."""
    pods = []
    for number in (1, 2):
        node, pod = (_namespace(stack, kind) for kind in ("node", "pod"))
        cluster.attach(node, f"plain{number}")
        node.ip("link", "add", "plain0", "up", "type", "bridge", "mcast_snooping", "0")
        node.ip("link", "set", "eth0", "master", "plain0")
        node.ip("link", "add", "port", "mtu", str(cluster.mtu), "master", "plain0", "up",
                "type", "veth", "peer", "name", "eth0", "mtu", str(cluster.mtu), "netns", pod.name)  # fmt: skip
        pod.ip("address", "add", f"10.7.0.{number}/24", "dev", "eth0")
        pod.ip("link", "set", "eth0", "up")
        pods.append(pod)
    return Pair(pods[0], pods[1], "10.7.0.2")


def _in_network(cluster: Cluster) -> Pair:
    first, second = (cluster.add_pod(node, _VNI, number) for number, node in enumerate(cluster.nodes, start=2))
    return Pair(first.namespace, second.namespace, second.ipv4)


def _routed(cluster: Cluster) -> Pair:
    first, second = (
        cluster.add_routed_pod(node, (f"10.9.0.{number}", f"fd09::{number:x}"))
        for node, number in zip(cluster.nodes, (5, 69), strict=True)
    )
    return Pair(first.namespace, second.namespace, second.ipv4)


def _program(cluster: Cluster) -> None:
    """Brings both nodes to their state: the network and index 0."""
    blocks = dict(zip(cluster.nodes, (("10.9.0.0/26", "fd09::/122"), ("10.9.0.64/26", "fd09::40/122")), strict=True))
    for node in cluster.nodes:
        _program_node(cluster, node, blocks)


def _program_node(cluster: Cluster, node: FabricNode, blocks: dict[FabricNode, tuple[str, str]]) -> None:
    remotes = tuple(
        RemoteBlock(cidr, each.tunnel) for each in cluster.nodes if each is not node for cidr in blocks[each]
    )
    own = tuple(cidr.partition("/")[0] for cidr in blocks[node])
    index_0 = RoutedNetwork(_VNI + 1, cluster.mtu, own, blocks[node], remotes)
    underlay = cluster.underlay(node)._replace(routed=index_0)
    outcome = node.reconcile([cluster.network(node, _VNI)], underlay, cluster.routed(node))
    assert not outcome.problems, outcome.problems


def _namespace(stack: ExitStack, kind: str) -> Netns:
    namespace = Netns(kind)
    stack.callback(namespace.delete)
    return namespace

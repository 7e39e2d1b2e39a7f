"""TCP between two pods of a node: by a plain bridge, by a network with its filter, and by routes at index 0."""

import random
from contextlib import ExitStack
from statistics import median
from typing import Any, NamedTuple

from tests.bench.datapath.tcp_stream import gigabits_per_second
from tests.cni_contrail.datapath.conftest import MTU, VirtualNetwork
from tests.cni_contrail.datapath.routed.conftest import RoutedNode
from tests.support.netns import Netns

PLAIN = "plain bridge"
BOUNDS = (0.85, 0.95)
"""Minimum and target of the ratio to a plain bridge."""

_VNI = 9_000_001


class Pair(NamedTuple):
    """Two pods that reach each other; `address` is the second one's."""

    first: Netns
    second: Netns
    address: str


def measure_throughput(*, rounds: int, seconds: float) -> dict[str, Any]:
    """Measures each kind once per round, in random order; ratios are medians of those of the rounds."""
    with ExitStack() as stack:
        pairs = {PLAIN: _bridged(stack), "network": _in_network(stack), "routed, index 0": _routed(stack)}
        rates: dict[str, list[float]] = {name: [] for name in pairs}
        for _ in range(rounds):
            for name in random.sample(list(pairs), len(pairs)):
                rates[name].append(gigabits_per_second(*pairs[name], seconds))
    return {name: _summary(measured, rates[PLAIN]) for name, measured in rates.items()}


def _summary(measured: list[float], plain: list[float]) -> dict[str, float]:
    rates = {"Gbit/s": round(median(measured), 1)}
    if measured is plain:
        return rates
    ratio = median(rate / peer for rate, peer in zip(measured, plain, strict=True))
    must, aim = BOUNDS
    return {**rates, "of a plain bridge": round(ratio, 3), "must": must, "aim": aim}


def _bridged(stack: ExitStack) -> Pair:
    node = _namespace(stack, "node")
    node.ip("link", "add", "plain0", "mtu", str(MTU), "type", "bridge")
    node.ip("link", "set", "plain0", "up")
    pods = [_namespace(stack, "pod") for _ in range(2)]
    for number, pod in enumerate(pods, start=2):
        port = f"port{number}"
        node.ip("link", "add", port, "mtu", str(MTU), "master", "plain0", "up",
                "type", "veth", "peer", "name", "eth0", "mtu", str(MTU), "netns", pod.name)  # fmt: skip
        pod.ip("address", "add", f"10.7.0.{number}/24", "dev", "eth0")
        pod.ip("link", "set", "eth0", "up")
    return Pair(pods[0], pods[1], "10.7.0.3")


def _in_network(stack: ExitStack) -> Pair:
    network = VirtualNetwork(_VNI, stack)
    pods = [network.add_pod(number) for number in (2, 3)]
    network.reconcile()
    return Pair(pods[0].namespace, pods[1].namespace, pods[1].ipv4)


def _routed(stack: ExitStack) -> Pair:
    node = RoutedNode(stack)
    pods = [node.add_pod(number) for number in (2, 3)]
    for pod in pods:
        node.connect(pod)
    return Pair(pods[0].namespace, pods[1].namespace, pods[1].ipv4)


def _namespace(stack: ExitStack, kind: str) -> Netns:
    namespace = Netns(kind)
    stack.callback(namespace.delete)
    return namespace

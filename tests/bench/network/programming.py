"""Time from the binding of a pod until the kernels of all other nodes have the entries that lead to it.

Server, manager, and agents and daemons of three nodes are real; no pod but one per node is attached. Pods are bound at
a fixed rate, in turn to all nodes, and deleted after each round. The time begins with the response to the binding, and
ends when the kernel notifies of the last entry: forwarding entries of bridge and tunnel, and a neighbour per family.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any, NamedTuple

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from tests.bench.built_apiserver import build_apiserver
from tests.bench.process_timing import summary
from tests.e2e.across_nodes.attached_pods import NETWORK, attached
from tests.e2e.across_nodes.cluster import NAMESPACE, Cluster, cluster_of
from tests.e2e.across_nodes.node import Node
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.neighbour_notices import NeighbourNotices

RATE = 100  # pods per second
MUST_MS, AIM_MS = 500, 300

_SUBNETS = "10.64.0.0/14,fd07::/64"
_ENTRIES = 4  # of a pod on another node
_DEADLINE = 30.0
_POLL = 0.05


Notices = dict[Node, NeighbourNotices]


class BoundPod(NamedTuple):
    """A pod that is bound by the benchmark."""

    name: str
    mac: str
    node: Node


def measure_programming(*, rounds: int, pods: int) -> dict[str, Any]:
    """Measures rounds of so many pods."""
    build_apiserver()
    with cluster_of(3) as cluster, ExitStack() as stack:
        cluster.add_nad(NETWORK, cidr=_SUBNETS)
        for node in cluster.nodes:
            stack.enter_context(attached(cluster, f"on-{node.name}", node))
        (vni,) = cluster.nodes[0].networks.namespaces.existing()
        paths = {node: node.networks.namespaces.path(vni) for node in cluster.nodes}
        notices = {node: stack.enter_context(NeighbourNotices(path).running()) for node, path in paths.items()}
        measured = asyncio.run(_measure(cluster, notices, rounds, pods))
    return _report(measured, pods)


async def _measure(cluster: Cluster, notices: Notices, rounds: int, pods: int) -> list[list[float]]:
    """Seconds of each pod of each round, after a first round that is not measured."""
    configuration = await load_client_config(kubeconfig=str(cluster.server.kubeconfig()))
    async with connect(configuration) as client:
        users = NamespaceObjects(client, NAMESPACE)
        return [await _round(cluster, users, notices, number, pods) for number in range(rounds + 1)][1:]


async def _round(cluster: Cluster, users: NamespaceObjects, notices: Notices, number: int, count: int) -> list[float]:
    nodes = cluster.nodes
    pods = [
        BoundPod(f"round-{number}-{at}", f"02:00:00:{number:02x}:{at >> 8:02x}:{at & 255:02x}", nodes[at % len(nodes)])
        for at in range(count)
    ]
    for pod in pods:
        await users.add_pod(pod.name, networks=json.dumps([{"name": NETWORK, "mac": pod.mac}]))
    begin = time.perf_counter() + 0.1

    async def bind(at: int) -> float:
        await asyncio.sleep(begin + at / RATE - time.perf_counter())
        await users.bind(pods[at].name, pods[at].node.name)
        return time.perf_counter()

    bound = await asyncio.gather(*map(bind, range(count)))
    await _until_programmed(notices, pods)
    seconds = [_programmed(notices, pod) - since for pod, since in zip(pods, bound, strict=True)]
    for pod in pods:
        await users.end_pod(pod.name)
    return seconds


async def _until_programmed(notices: Notices, pods: Sequence[BoundPod]) -> None:
    async with asyncio.timeout(_DEADLINE):
        while not all(_is_programmed(notices, pod) for pod in pods):  # noqa: ASYNC110 - other threads receive
            await asyncio.sleep(_POLL)


def _is_programmed(notices: Notices, pod: BoundPod) -> bool:
    return all(len(each.times[pod.mac]) >= _ENTRIES for node, each in notices.items() if node is not pod.node)


def _programmed(notices: Notices, pod: BoundPod) -> float:
    """When the last one of the other nodes had all entries of the pod."""
    return max(each.times[pod.mac][_ENTRIES - 1] for node, each in notices.items() if node is not pod.node)


def _report(rounds: list[list[float]], pods: int) -> dict[str, Any]:
    found = [summary(seconds) for seconds in rounds]
    p99 = [each["p99_ms"] for each in found]
    return {
        f"bound to programmed on all other nodes, {RATE} pods/s": {
            "median_ms": median(each["median_ms"] for each in found),
            "p99_ms": median(p99),
            "must": MUST_MS,
            "aim": AIM_MS,
            "best_p99_ms": min(p99),
            "worst_p99_ms": max(p99),
            "pods of a round": pods,
        }
    }

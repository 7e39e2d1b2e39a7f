"""Writes to the API server that pods cost which have index 0 alone, while pods come and go on three nodes.

Index 0 is routed by blocks of addresses, which belong to nodes, so a pod whose address is in a block of its node is
known to other nodes already. Not counted is a time before, in which nodes get the blocks that they need: released
addresses are held for a while.
"""

import asyncio
import time
from collections import Counter
from typing import Any

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from tests.bench.built_apiserver import build_apiserver
from tests.bench.kubernetes.server_writes import counted_writes
from tests.e2e.across_nodes.cluster import NAMESPACE, Cluster, registered_cluster
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects

RATE = 100  # pods per second that are created and bound, and that are deleted
WARM_UP = 18.0  # seconds after which the number of held addresses, each for 10 s, is constant
_LIFETIME = 2.0  # seconds
_QUIET_TIME = 1.0
_OF_MACHINES = ("virtualmachines", "pods", "addressblocks")


def measure_churn(*, warm_up: float, seconds: float) -> dict[str, Any]:
    """Counts the writes in so many seconds."""
    build_apiserver()
    with registered_cluster(3) as cluster:
        return asyncio.run(_measure(cluster, warm_up, seconds))


async def _measure(cluster: Cluster, warm_up: float, seconds: float) -> dict[str, Any]:
    configuration = await load_client_config(kubeconfig=str(cluster.server.kubeconfig()))
    async with connect(configuration) as client:
        users = NamespaceObjects(client, NAMESPACE)
        nodes = [node.name for node in cluster.nodes]
        await _churn(users, nodes, "warm", warm_up)
        before = await asyncio.to_thread(counted_writes, cluster.server)
        await _churn(users, nodes, "pod", seconds)
        writes = await asyncio.to_thread(counted_writes, cluster.server) - before
    return _report(writes, int(RATE * seconds))


async def _churn(users: NamespaceObjects, nodes: list[str], name: str, seconds: float) -> None:
    """Lets pods come and go at the fixed rate, and waits until all are gone and written."""
    begin = time.perf_counter()

    async def live(number: int) -> None:
        await asyncio.sleep(begin + number / RATE - time.perf_counter())
        await users.add_pod(f"{name}-{number}", node=nodes[number % len(nodes)])
        await asyncio.sleep(_LIFETIME)
        await users.end_pod(f"{name}-{number}")

    await asyncio.gather(*map(live, range(int(RATE * seconds))))
    await asyncio.sleep(_QUIET_TIME)


def _report(writes: Counter[str], pods: int) -> dict[str, Any]:
    writes["PATCH pods/status"] -= pods  # by the benchmark, as kubelet does
    others = {what: count for what, count in writes.items() if what.split()[1].split("/")[0] not in _OF_MACHINES}
    each = {what: round(count / pods, 2) for what, count in sorted(writes.items()) if what not in others}
    return {
        f"{pods} pods, {RATE}/s, writes of each": each,
        "other writes of all": {**others, "all": sum(others.values()), "must": 0},
    }

"""One reading of a cluster: managers and their lease, nodes and their agents, and pending pods."""

import asyncio
from typing import NamedTuple

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeNotFoundError
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import ContrailNodeObject
from contrail_config.kubernetes.pods import PODS, Pod
from contrail_config.kubernetes.validated import VALIDATED_REPORTS
from contrailctl.cluster.objects import (
    DAEMON_SETS,
    LEASE_NAME,
    LEASES,
    MANAGER_PODS,
    NODE_PODS,
    NODES,
    DaemonSet,
    Lease,
    Node,
)
from contrailctl.cluster.pending_pods import PendingPods, read_pending_pods
from contrailctl.progress import Progress

_RENEWAL_SECONDS = 5.0  # a leader renews its lease every 2 s
_RENEWAL_PAUSE = 0.25  # seconds between two looks


class ClusterObjects(NamedTuple):
    """What was read. `is_renewed`: its holder renewed the lease meanwhile. `agents` are contrail-node pods by node.

    `reports` are by node, None if the cluster has no definition of them.
    """

    lease: Lease | None
    is_renewed: bool
    managers: tuple[Pod, ...]
    daemon_set: DaemonSet | None
    nodes: tuple[Node, ...]
    agents: dict[str, Pod]
    reports: dict[str, ContrailNodeObject] | None
    pending: PendingPods


async def read_cluster(client: KubeClient, namespace: str, progress: Progress) -> ClusterObjects:
    """Reads the cluster; `namespace` is that of managers and contrail-node pods. Raises KubeError."""
    progress.stage("reading managers")
    lease, read_at = await _find_lease(client, namespace), asyncio.get_running_loop().time()
    managers = await client.list_all(PODS, Selector(namespace=namespace, labels=MANAGER_PODS))
    progress.stage("reading nodes")
    daemon_sets = await client.list_all(DAEMON_SETS, Selector(namespace=namespace, labels=NODE_PODS))
    nodes = await client.list_all(NODES)
    agents = await client.list_all(PODS, Selector(namespace=namespace, labels=NODE_PODS))
    reports = await _read_reports(client)
    progress.stage("reading pending pods")
    pending = await read_pending_pods(client) if reports is not None else PendingPods((), 0)
    progress.stage("waiting for the leader to renew its lease")
    return ClusterObjects(
        lease,
        await _is_renewed(client, namespace, lease, until=read_at + _RENEWAL_SECONDS),
        tuple(managers),
        daemon_sets[0] if daemon_sets else None,
        tuple(nodes),
        {pod.spec.node_name: pod for pod in agents if pod.spec.node_name},
        reports,
        pending,
    )


async def _is_renewed(client: KubeClient, namespace: str, lease: Lease | None, *, until: float) -> bool:
    """Waits until the holder renews its lease, which tells more than a time: clocks differ."""
    clock = asyncio.get_running_loop().time
    while lease is not None and lease.spec.holder_identity:
        again = await _find_lease(client, namespace)
        if again is not None and again.metadata.resource_version != lease.metadata.resource_version:
            return bool(again.spec.holder_identity)
        if clock() >= until:
            break
        await asyncio.sleep(_RENEWAL_PAUSE)
    return False


async def _find_lease(client: KubeClient, namespace: str) -> Lease | None:
    try:
        return await client.get(LEASES, LEASE_NAME, namespace=namespace)
    except KubeNotFoundError:
        return None


async def _read_reports(client: KubeClient) -> dict[str, ContrailNodeObject] | None:
    try:
        found = await client.list_each(VALIDATED_REPORTS)
    except KubeNotFoundError:
        return None
    return {each.metadata.name: each for each in found if not isinstance(each, UndecodableObject)}

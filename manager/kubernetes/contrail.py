"""The manager of a cluster whose store is a Contrail API server.

Pods, NADs, events and the lease are in the Kubernetes API server; networks, virtual machines and addresses are in the
Contrail API server, which a standby neither reads nor writes. The cluster needs none of our custom resources.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from contrail_config.kube.errors import KubeLeadershipLostError
from contrail_config.store import UNPLUGGED_HOLD
from contrail_config.vnc.errors import VncError
from contrail_config.vnc.follower import Intervals
from contrail_config.vnc.store import VncStore
from manager.configuration import ContrailStoreSettings, ManagerConfiguration
from manager.contrail_client import connect_to_contrail
from manager.kubernetes.cluster import ClusterMember
from manager.kubernetes.node_address_reader import NodeAddressReader
from manager.kubernetes.node_report_watch import may_be_plugged
from manager.kubernetes.static_pod_reader import StaticPodReader
from manager.kubernetes.store_deletions import StoreDeletions
from manager.manager import Manager, run_until_first_ends


@asynccontextmanager
async def join_contrail(
    configuration: ManagerConfiguration,
    settings: ContrailStoreSettings,
    cluster: ClusterMember,
    registry: CollectorRegistry,
) -> AsyncIterator[VncStore]:
    """Yields a store that is not started: only a leader reads it. Raises ConfigurationError."""
    async with connect_to_contrail(settings, registry, before_write=_fenced(cluster)) as client:
        intervals = Intervals(poll=settings.poll_interval)
        yield VncStore(
            client,
            cluster=configuration.cluster_name,
            intervals=intervals,
            node_addresses=NodeAddressReader(cluster.client),
            take_over=settings.take_over,
            projects=settings.named_projects,
            static_pods=StaticPodReader(cluster.client),
        )


def _fenced(cluster: ClusterMember) -> Callable[[], float]:
    def before_write() -> float:
        try:
            return cluster.before_write()
        except KubeLeadershipLostError as error:
            raise VncError(str(error)) from error

    return before_write


def make_contrail_manager(
    configuration: ManagerConfiguration, cluster: ClusterMember, store: VncStore, registry: CollectorRegistry
) -> Manager:
    """Returns the manager of a cluster. No node reports to it: reports need our custom resources."""
    store.use_namespaces(cluster.source.namespace_exists)
    deletions = StoreDeletions(store, is_gone=cluster.source.is_gone, on_appeared=cluster.orphans.appeared)
    manager = Manager(
        configuration,
        source=cluster.source,
        store=store,
        event_log=cluster.event_log,
        registry=registry,
        is_plugged=may_be_plugged,
        orphan_hold=UNPLUGGED_HOLD,  # somebody may have deleted virtual machines of running pods
        on_assigned=cluster.on_assigned,
        watch_deletions=deletions.watch,
        find_network=store.find_network,
    )
    cluster.orphans.on_orphaned(manager.orphaned)
    return manager


async def lead_on_contrail(store: VncStore, manager: Manager) -> None:
    """Runs the manager while this process leads. Raises StoreError if another program writes the cluster's pods."""
    try:
        await store.start()
        await run_until_first_ends(manager.run(), store.maintain(), store.watch_other_writers())
    finally:
        await store.close()

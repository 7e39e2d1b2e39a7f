"""The manager as a process in a cluster: watches the API server, and leads or stands by.

It keeps its store in the same API server, or in that of a Contrail controller.

A standby is healthy and ready, so that a rolling update proceeds, but has no data: its API names the leader. A leader
that cannot continue (the lease is lost, permissions are missing, the CRDs of the store or a block of addresses in use
were deleted, or etcd was emptied) ends the process, since its caches are outdated. Its supervisor restarts it as a
standby, and the next leader recreates what is missing.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from contrail_config.errors import StoreError
from contrail_config.kube.custom_resource_definitions import monitor_crds
from contrail_config.kube.errors import KubeConfigurationError, KubeError
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import UNPLUGGED_HOLD
from contrail_config.vnc.store import VncStore
from contrail_service.client_metrics import ClientMetrics
from contrail_service.errors import ConfigurationError, RestartError
from contrail_service.listen import parse_listen, parse_optional_listen
from contrail_service.pages import status_routes
from contrail_service.serving import pages_runner, serve_api, serve_metrics
from manager.api.network_slices import SliceFinder
from manager.api.queries import FindPorts
from manager.api.routes import api_routes
from manager.configuration import ContrailStoreSettings, KubernetesSourceSettings, ManagerConfiguration
from manager.kubernetes.cluster import ClusterMember, join_cluster
from manager.kubernetes.contrail import join_contrail, lead_on_contrail, make_contrail_manager
from manager.kubernetes.node_block_keeper import NodeBlockKeeper
from manager.kubernetes.node_report_watch import may_be_plugged
from manager.kubernetes.pod_trace import PodTraces
from manager.kubernetes.requested_ports import RequestedPorts
from manager.manager import Manager, run_until_first_ends
from manager.web.access import access_of
from manager.web.serving import served_routes

_CRD_CHECK_INTERVAL = 5.0
"""Seconds between checks that the CRDs of the store exist."""


async def run_in_cluster(configuration: ManagerConfiguration, settings: KubernetesSourceSettings) -> None:
    """Runs until it is cancelled. Raises ServiceError: the configuration is wrong, or a restart is needed."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    with _as_service_error():
        async with AsyncExitStack() as stack:
            observer = ClientMetrics(
                registry,
                requests="contrail_manager_api_requests",
                request_seconds="contrail_manager_api_request_seconds",
                watch_age="contrail_manager_watch_age_seconds",
            )
            cluster = await stack.enter_async_context(join_cluster(configuration, settings, observer=observer))
            leads = Gauge("contrail_manager_leads", "1 if this manager is the one that writes", registry=registry)
            leads.set_function(lambda: float(cluster.is_leader))
            if isinstance(configuration.store, ContrailStoreSettings):
                contrail = join_contrail(configuration, configuration.store, cluster, registry)
                await _run_on_contrail(
                    stack, configuration, cluster, await stack.enter_async_context(contrail), registry
                )
            else:
                await _run_on_kubernetes(stack, configuration, cluster, registry)


async def _run_on_kubernetes(
    stack: AsyncExitStack, configuration: ManagerConfiguration, cluster: ClusterMember, registry: CollectorRegistry
) -> None:
    store = KubernetesStore(cluster.client, slices=configuration.network_slices)
    manager = make_manager(configuration, cluster, store, registry)
    ports = RequestedPorts(cluster.client.low_priority(), manager.nodes.reports)
    cluster.node_reports.on_report(ports.reported)
    await _serve(stack, configuration, cluster, manager, registry, slices=store.slices, ports=ports.find)
    await run_until_first_ends(
        cluster.run(partial(lead, cluster, store, manager)),
        cluster.definitions.run(),
    )


async def _run_on_contrail(
    stack: AsyncExitStack,
    configuration: ManagerConfiguration,
    cluster: ClusterMember,
    store: VncStore,
    registry: CollectorRegistry,
) -> None:
    manager = make_contrail_manager(configuration, cluster, store, registry)
    await _serve(stack, configuration, cluster, manager, registry, problems=store.problems)
    await cluster.run(partial(lead_on_contrail, store, manager))


@contextmanager
def _as_service_error() -> Iterator[None]:
    try:
        yield
    except KubeConfigurationError as error:
        raise ConfigurationError(f"source.kubeconfig: {error}") from error
    except (KubeError, StoreError) as error:
        raise RestartError(str(error)) from error


def make_manager(
    configuration: ManagerConfiguration, cluster: ClusterMember, store: KubernetesStore, registry: CollectorRegistry
) -> Manager:
    """Returns the manager of a cluster, connected to the node reports."""
    manager = Manager(
        configuration,
        source=cluster.source,
        store=store,
        event_log=cluster.event_log,
        registry=registry,
        is_plugged=may_be_plugged,
        orphan_hold=UNPLUGGED_HOLD,  # somebody may have deleted virtual machines of running pods
        on_assigned=cluster.on_assigned,
        watch_deletions=cluster.deletions.watch,
    )
    cluster.node_reports.on_unplugged(manager.unplugged)
    cluster.node_reports.on_refused(manager.refused)
    cluster.node_reports.on_report(lambda node, report: manager.default_mtu.reported(node, report.tunnel_mtu))
    cluster.node_reports.on_removed(manager.default_mtu.removed)
    cluster.node_reports.on_report(lambda node, report: manager.missing_modules.reported(node, report.missing_modules))
    cluster.node_reports.on_removed(manager.missing_modules.removed)
    cluster.node_reports.on_report(lambda node, report: manager.node_conflicts.reported(node, report.conflicts))
    cluster.node_reports.on_removed(manager.node_conflicts.removed)
    cluster.node_reports.on_report(manager.nodes.reported)
    cluster.node_reports.on_removed(manager.nodes.removed)
    cluster.orphans.on_orphaned(manager.orphaned)
    if configuration.l3_beyond_nodes:
        store.slices.on_spread(configuration.l3_beyond_nodes, manager.network_spread)
    cluster.invalid_objects.add(store.invalid_objects)
    cluster.invalid_objects.register(registry)
    slices = Gauge("contrail_manager_network_slices", "Network slices on the server", registry=registry)
    slices.set_function(lambda: len(store.slices.writer))
    manager.metrics.watch_queue("network-slices", store.slices.writer.queue)
    return manager


async def _serve(
    stack: AsyncExitStack,
    configuration: ManagerConfiguration,
    cluster: ClusterMember,
    manager: Manager,
    registry: CollectorRegistry,
    *,
    problems: Callable[[], list[str]] = list,
    slices: SliceFinder | None = None,
    ports: FindPorts | None = None,
) -> None:
    """Serves the API and the status pages until the stack is closed. `problems`: those of a leader's store."""

    def readiness() -> list[str]:
        return [*cluster.readiness(manager.readiness()), *(problems() if cluster.is_leader else ())]

    status = status_routes(readiness, registry)
    api = api_routes(
        manager.queries,
        manager.change_log,
        unavailable=cluster.unavailable_reason,
        trace=PodTraces(cluster.client).read,
        requested_ports=ports,
        slices=slices,
    )
    pages = served_routes(configuration, access_of(configuration), api=api, status=status)
    await serve_api(stack, pages_runner(pages), parse_listen(configuration.listen, key="listen"))
    await serve_metrics(stack, status, parse_optional_listen(configuration.metrics_listen, key="metrics-listen"))


async def lead(cluster: ClusterMember, store: KubernetesStore, manager: Manager) -> None:
    """Runs the manager while this process leads; work in progress is written before another process may lead."""
    keeper = _node_block_keeper(cluster, store, manager)
    try:
        # Only a leader writes CRDs; a standby must not touch the cluster.
        uids = await ensure_crds(cluster.client)
        # First: outdated reports on static pods are recognized only if they are delivered before the manager starts.
        async with cluster.node_reports.running():
            await run_until_first_ends(
                manager.run(),
                monitor_crds(cluster.client, uids, interval=_CRD_CHECK_INTERVAL),
                store.watch_lost_addresses(),
                store.maintain_slices(),
                _keep_node_blocks(keeper, manager),
                cluster.invalid_objects.run(store, manager.recorder),
            )
    finally:
        await store.close()


def _node_block_keeper(cluster: ClusterMember, store: KubernetesStore, manager: Manager) -> NodeBlockKeeper:
    """Returns what gives nodes blocks of the pod network, connected to nodes and their reports."""
    keeper = NodeBlockKeeper(store.node_blocks, store.slices, manager.pod_network_uuid)
    cluster.node_reports.on_report(lambda node, _report: keeper.reported(node))
    cluster.node_reports.on_removed(keeper.report_removed)
    store.slices.on_node(keeper.changed)
    manager.metrics.watch_queue("node-blocks", keeper.queue)
    return keeper


async def _keep_node_blocks(keeper: NodeBlockKeeper, manager: Manager) -> None:
    """Keeps blocks of nodes until it is cancelled, if networks span nodes."""
    if manager.spans_nodes:
        await keeper.run(manager.loaded.wait)
    await asyncio.Event().wait()

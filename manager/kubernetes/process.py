"""The manager as a process of a cluster: follows its API server, keeps its store there, and leads or stands by.

A standby is healthy and ready, so that an update of all managers goes on, but it knows nothing: its API says who leads.
What a leader cannot go on with (its lease was lost, the server refuses what it needs, the definitions of our kinds were
deleted or the whole of etcd emptied) ends the process, since what it knows is of before; its supervisor starts it anew,
as a standby, and whatever leads next makes what is missing.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from contrail_config.errors import StoreError
from contrail_config.kube.custom_resource_definitions import monitor_crds
from contrail_config.kube.errors import KubeConfigurationError, KubeError
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.store import UNPLUGGED_HOLD
from contrail_service.errors import ConfigurationError, RestartError
from contrail_service.listen import parse_listen, parse_optional_listen
from contrail_service.pages import status_routes
from contrail_service.serving import plain_runner, serve_api, serve_metrics
from manager.api.routes import api_routes
from manager.configuration import KubernetesSourceSettings, ManagerConfiguration
from manager.kubernetes.cluster import Cluster, join_cluster
from manager.kubernetes.node_report_watch import may_be_plugged
from manager.manager import Manager
from manager.side_by_side import until_first_ends

_DEFINITIONS_SEEN = 5.0
"""Seconds between looks at the definitions of our kinds."""


async def run_in_cluster(configuration: ManagerConfiguration, settings: KubernetesSourceSettings) -> None:
    """Runs until it is cancelled. Raises ServiceError if it cannot start as it was told, or has to be started anew."""
    registry = CollectorRegistry()
    with _as_service_error():
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(join_cluster(configuration, settings))
            store = KubernetesStore(cluster.client)
            manager = _manager(configuration, cluster, store, registry)
            await _serve(stack, configuration, cluster, manager, registry)
            await cluster.run(partial(_lead, cluster, store, manager))


@contextmanager
def _as_service_error() -> Iterator[None]:
    try:
        yield
    except KubeConfigurationError as error:
        raise ConfigurationError(f"source.kubeconfig: {error}") from error
    except (KubeError, StoreError) as error:
        raise RestartError(str(error)) from error


def _manager(
    configuration: ManagerConfiguration, cluster: Cluster, store: KubernetesStore, registry: CollectorRegistry
) -> Manager:
    leads = Gauge("contrail_manager_leads", "1 if this manager is the one that writes", registry=registry)
    leads.set_function(lambda: float(cluster.leads))
    manager = Manager(
        configuration,
        source=cluster.source,
        store=store,
        event_log=cluster.event_log,
        registry=registry,
        plugged=may_be_plugged,
        stray_hold=UNPLUGGED_HOLD,  # the garbage collector removes machines after their pods
        assigned=cluster.assigned,
        losses=cluster.losses.events,
    )
    cluster.nodes.on_unplugged(manager.unplugged)
    return manager


async def _serve(
    stack: AsyncExitStack,
    configuration: ManagerConfiguration,
    cluster: Cluster,
    manager: Manager,
    registry: CollectorRegistry,
) -> None:
    status = status_routes(lambda: cluster.readiness(manager.readiness()), registry)
    pages = [*status, *api_routes(manager.views, refusal=cluster.refusal)]
    await serve_api(stack, plain_runner(pages), parse_listen(configuration.listen, key="listen"))
    await serve_metrics(stack, status, parse_optional_listen(configuration.metrics_listen, key="metrics-listen"))


async def _lead(cluster: Cluster, store: KubernetesStore, manager: Manager) -> None:
    """Works as long as this process leads; what was begun is written before another one may lead."""
    try:
        uids = await ensure_crds(cluster.client)
        async with cluster.nodes.followed():
            await until_first_ends(manager.run(), monitor_crds(cluster.client, uids, interval=_DEFINITIONS_SEEN))
    finally:
        await store.close()

"""Runs manager, store and agent in one process, for a single host without a cluster.

Manager and agent know nothing of each other: they share the store, and this module passes the state of the agent's
ports to the manager, so that the addresses of a deleted pod stay allocated as long as its sandbox lives.

With a Contrail API server as store neither of them begins before it has been read: the agent would serve an empty list.
"""

import asyncio
import logging
from asyncio import TaskGroup
from contextlib import AsyncExitStack
from functools import partial

from prometheus_client import CollectorRegistry, ProcessCollector

from agent_api.application import agent_application, agent_runner
from agent_api.datapath.kind import Datapath
from agent_api.node_agent import NodeAgent
from agent_api.process import load_ports, serve_socket
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.kernel_support import check_kernel_support
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.link.errors import LinkError
from contrail_embedded.disk_space import retry_while_disk_is_full
from contrail_embedded.node_report import node_reporter
from contrail_embedded.port_views import port_finder
from contrail_embedded.settings import AgentSettings, NodeSettings
from contrail_embedded.stores import NodeStores, open_stores, run_manager, start_contrail
from contrail_service.errors import ConfigurationError, DataError
from contrail_service.pages import Routes, status_routes
from contrail_service.serving import pages_runner, serve_api, serve_metrics
from manager.api.routes import api_routes
from manager.manager import Manager
from manager.manifests.errors import FolderError
from manager.manifests.source import ManifestSource
from manager.web.access import access_of
from manager.web.serving import served_routes

log = logging.getLogger(__name__)

_STOP_TIMEOUT = 1.0  # seconds; a round that programs the kernel is far shorter


async def run_node(settings: NodeSettings) -> None:
    """Runs until cancelled. Raises ServiceError if the process cannot start as configured."""
    programmed = _programmed_by_this_process(settings)
    if programmed:
        await _check_kernel()
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with AsyncExitStack() as stack:
        stores = await stack.enter_async_context(open_stores(settings, registry))
        # The agent loads its ports first: the manager asks for plugged ports as soon as it runs.
        agent = await _agent(settings, stores, registry)
        manager = _manager(settings, stores, agent, registry)
        follower = _follower(stack, programmed) if programmed else None
        await _serve(stack, settings, stores, manager, agent, registry)
        if follower:
            follower.start()
            stack.callback(follower.request_stop)  # before the agent answers its waiting request
        await start_contrail(stores, settings.configuration)
        await _run(settings, stores, manager, agent)


def _programmed_by_this_process(settings: NodeSettings) -> AgentSettings | None:
    """Returns the settings of the agent if its node's kernel connects the interfaces."""
    return settings.agent if settings.agent and settings.agent.datapath is Datapath.LINUX else None


async def _check_kernel() -> None:
    """Raises ConfigurationError: a node whose pods could not communicate is not to look like one that works."""
    try:
        await asyncio.to_thread(check_kernel_support)
    except LinkError as error:
        raise ConfigurationError(f"--datapath linux: {error}; --datapath none starts without traffic") from error


def _follower(stack: AsyncExitStack, settings: AgentSettings) -> Follower:
    """Returns what programs the kernel in a thread of this process; its end is awaited when the stack is closed."""
    # Through the socket, as the node daemon: one way for both, and the agent lets only one of them program.
    endpoint = Endpoint(settings.socket, "", 0)
    reconciler = NodeReconciler(Namespaces(settings.netns_dir))
    follower = Follower(endpoint, reconciler, log, program="contrail-manager")
    stack.push_async_callback(asyncio.to_thread, follower.stop, _STOP_TIMEOUT)
    return follower


async def _agent(settings: NodeSettings, stores: NodeStores, registry: CollectorRegistry) -> NodeAgent | None:
    if settings.agent is None:
        return None
    node = settings.configuration.node
    agent = NodeAgent(
        store=stores.objects,
        node=node,
        ports_dir=settings.agent.ports_dir,
        registry=registry,
        datapath=settings.agent.datapath,
        options=settings.agent.options,
    )
    await retry_while_disk_is_full(partial(load_ports, agent))
    return agent


def _manager(
    settings: NodeSettings, stores: NodeStores, agent: NodeAgent | None, registry: CollectorRegistry
) -> Manager:
    manager = Manager(
        settings.configuration,
        source=ManifestSource(settings.manifests, node=settings.configuration.node, identities=stores.file),
        store=stores.objects,
        event_log=stores.file,
        registry=registry,
        is_plugged=agent.is_plugged if agent else _never_plugged,
        orphan_hold=stores.orphan_hold,
        watch_deletions=stores.watch_deletions,
        find_network=stores.find_network,
    )
    if stores.contrail is not None:
        stores.contrail.use_namespaces(partial(_has_objects, manager))
    if agent:
        agent.on_unplugged(partial(manager.unplugged, settings.configuration.node))
        agent.on_refused(partial(manager.refused, settings.configuration.node))
    return manager


async def _has_objects(manager: Manager, namespace: str) -> bool:
    """Whether there are manifests of pods or NADs of a namespace, which need no manifest of the namespace itself."""
    keys = (*manager.pods.records, *manager.nads.records)
    return any(key.startswith(f"{namespace}/") for key in keys)


def _never_plugged(_vm_uuid: str) -> bool:
    return False


async def _run(settings: NodeSettings, stores: NodeStores, manager: Manager, agent: NodeAgent | None) -> None:
    try:
        async with TaskGroup() as tasks:
            tasks.create_task(run_manager(manager, stores))
            if agent:
                tasks.create_task(agent.run())
                tasks.create_task(node_reporter(agent, manager.nodes, settings.configuration.node).run())
    # Only an error of the manifest directory is the user's; any other is a bug and keeps its traceback.
    except* FolderError as group:
        raise DataError(str(group.exceptions[0])) from group


async def _serve(
    stack: AsyncExitStack,
    settings: NodeSettings,
    stores: NodeStores,
    manager: Manager,
    agent: NodeAgent | None,
    registry: CollectorRegistry,
) -> None:
    """Serves all endpoints until the stack is closed."""
    status = status_routes(
        lambda: [*stores.problems(), *manager.readiness(), *(agent.readiness() if agent else [])],
        registry,
        single_faults=lambda: agent.unconnected_ports() if agent else [],
        details=agent.details if agent else None,
    )
    access = access_of(settings.configuration)
    api = api_routes(manager.queries, manager.change_log, ports=port_finder(agent) if agent else None)
    routes = served_routes(settings.configuration, access, api=api, status=status)
    # With an agent, its application also serves the manager's routes: both APIs share one address.
    if agent and settings.agent:
        await retry_while_disk_is_full(partial(_serve_socket, stack, agent, settings.agent.socket, status))
        runner = agent_runner(
            agent_application(
                agent,
                accept_writes=settings.agent.tcp_writes,
                root_peers_only=True,
                routes=routes,
                guard=access.by_host,
            )
        )
    else:
        runner = pages_runner(routes)
    await serve_api(stack, runner, settings.listen)
    await serve_metrics(stack, status, settings.metrics_listen)


async def _serve_socket(stack: AsyncExitStack, agent: NodeAgent, path: str, status: Routes) -> None:
    async with AsyncExitStack() as attempt:  # closed if this fails
        await serve_socket(attempt, agent, path, routes=status)
        await stack.enter_async_context(attempt.pop_all())

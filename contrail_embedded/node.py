"""Runs manager, embedded store and agent in one process, for a single host without a cluster.

Manager and agent know nothing of each other: they share the store, and this module passes the state of the agent's
ports to the manager, so that the addresses of a deleted pod stay allocated as long as its sandbox lives.
"""

import asyncio
import logging
from asyncio import TaskGroup
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from prometheus_client import CollectorRegistry, ProcessCollector

from agent_api.application import agent_application, agent_runner
from agent_api.datapath.desired_state import DatapathOptions
from agent_api.datapath.kind import Datapath
from agent_api.node_agent import NodeAgent
from agent_api.process import load_ports, serve_socket
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.kernel_support import check_kernel_support
from cni_contrail.datapath.namespaces import Namespaces
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.link.errors import LinkError
from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreUnavailableError
from contrail_embedded.disk_space import retry_while_disk_is_full
from contrail_embedded.settings import AgentSettings, NodeSettings
from contrail_service.errors import ConfigurationError, DataError
from contrail_service.pages import Routes, status_routes
from contrail_service.serving import pages_runner, serve_api, serve_metrics
from manager.api.routes import api_routes
from manager.manager import Manager
from manager.manifests.errors import FolderError
from manager.manifests.source import ManifestSource
from manager.store_space import once_there_is_space

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
        store = await stack.enter_async_context(_open_store(settings.store))
        # The agent loads its ports first: the manager asks for plugged ports as soon as it runs.
        agent = await _agent(settings, store, registry)
        manager = _manager(settings, store, agent, registry)
        follower = _follower(stack, programmed) if programmed else None
        await _serve(stack, settings, store, manager, agent, registry)
        if follower:
            follower.start()
            stack.callback(follower.request_stop)  # before the agent answers its waiting request
        await _run(manager, agent)


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


@asynccontextmanager
async def _open_store(path: str) -> AsyncIterator[SqliteStore]:
    try:
        store = await once_there_is_space(partial(SqliteStore.open, path))
    except StoreUnavailableError as error:
        raise DataError(str(error)) from error
    try:
        yield store
    finally:
        await store.close()


async def _agent(settings: NodeSettings, store: SqliteStore, registry: CollectorRegistry) -> NodeAgent | None:
    if settings.agent is None:
        return None
    node = settings.configuration.node
    agent = NodeAgent(
        store=store,
        node=node,
        ports_dir=settings.agent.ports_dir,
        registry=registry,
        datapath=settings.agent.datapath,
        options=DatapathOptions(fabric_subnets=settings.agent.fabric_subnets),
    )
    await retry_while_disk_is_full(partial(load_ports, agent))
    return agent


def _manager(
    settings: NodeSettings, store: SqliteStore, agent: NodeAgent | None, registry: CollectorRegistry
) -> Manager:
    manager = Manager(
        settings.configuration,
        source=ManifestSource(settings.manifests, node=settings.configuration.node, identities=store),
        store=store,
        event_log=store,
        registry=registry,
        is_plugged=agent.is_plugged if agent else _never_plugged,
    )
    if agent:
        agent.on_unplugged(partial(manager.unplugged, settings.configuration.node))
        agent.on_refused(partial(manager.refused, settings.configuration.node))
    return manager


def _never_plugged(_vm_uuid: str) -> bool:
    return False


async def _run(manager: Manager, agent: NodeAgent | None) -> None:
    try:
        async with TaskGroup() as tasks:
            tasks.create_task(manager.run())
            if agent:
                tasks.create_task(agent.run())
    # Only an error of the manifest directory is the user's; any other is a bug and keeps its traceback.
    except* FolderError as group:
        raise DataError(str(group.exceptions[0])) from group


async def _serve(
    stack: AsyncExitStack,
    settings: NodeSettings,
    store: SqliteStore,
    manager: Manager,
    agent: NodeAgent | None,
    registry: CollectorRegistry,
) -> None:
    """Serves all endpoints until the stack is closed."""
    status = status_routes(
        lambda: [*store.problems(), *manager.readiness(), *(agent.readiness() if agent else [])],
        registry,
        details=agent.details if agent else None,
    )
    routes = [*status, *api_routes(manager.queries, manager.change_log)]
    # With an agent, its application also serves the manager's routes: both APIs share one address.
    if agent and settings.agent:
        await retry_while_disk_is_full(partial(_serve_socket, stack, agent, settings.agent.socket, status))
        runner = agent_runner(
            agent_application(agent, accept_writes=settings.agent.tcp_writes, root_peers_only=True, routes=routes)
        )
    else:
        runner = pages_runner(routes)
    await serve_api(stack, runner, settings.listen)
    await serve_metrics(stack, status, settings.metrics_listen)


async def _serve_socket(stack: AsyncExitStack, agent: NodeAgent, path: str, status: Routes) -> None:
    async with AsyncExitStack() as attempt:  # closed if this fails
        await serve_socket(attempt, agent, path, routes=status)
        await stack.enter_async_context(attempt.pop_all())

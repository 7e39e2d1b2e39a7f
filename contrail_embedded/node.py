"""Runs the manager on the embedded store, and the agent with it: one process for one machine without a cluster.

The parts know nothing of each other: they meet in the store, and this module tells the manager which ports the agent
has plugged, so that the address of a pod that was deleted while its sandbox lives is held back.
"""

import logging
from asyncio import TaskGroup
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry

from agent_api.agent import Agent
from agent_api.application import agent_application, agent_runner
from agent_api.errors import PortsError
from agent_api.unix_socket import serve_unix
from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreUnavailableError
from contrail_embedded.settings import AgentPlaces, NodeSettings
from contrail_service.errors import DataError
from contrail_service.listen import ListenAddress, serve_tcp
from contrail_service.pages import errors_as_json, status_routes
from manager.api.routes import api_routes
from manager.manager import Manager
from manager.manifests.errors import FolderError
from manager.manifests.source import ManifestSource

log = logging.getLogger(__name__)

_MANAGER_SHUTDOWN = 2.0  # seconds for answers that are under way when a listener closes


async def run_node(settings: NodeSettings) -> None:
    """Runs until it is cancelled. Raises ServiceError if it cannot start as it was told."""
    registry = CollectorRegistry()
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(_opened_store(settings.store))
        agent = await _agent(settings, store, registry)
        manager = _manager(settings, store, agent, registry)
        await _serve(stack, settings, manager, agent, registry)
        await _run(manager, agent)


@asynccontextmanager
async def _opened_store(path: str) -> AsyncIterator[SqliteStore]:
    try:
        store = await SqliteStore.open(path)
    except StoreUnavailableError as error:
        raise DataError(str(error)) from error
    try:
        yield store
    finally:
        await store.close()


async def _agent(settings: NodeSettings, store: SqliteStore, registry: CollectorRegistry) -> Agent | None:
    if settings.agent is None:
        return None
    node = settings.configuration.node
    agent = Agent(store=store, node=node, ports_dir=settings.agent.ports_dir, registry=registry)
    try:
        await agent.load_ports()
    except PortsError as error:
        raise DataError(str(error)) from error
    return agent


def _manager(settings: NodeSettings, store: SqliteStore, agent: Agent | None, registry: CollectorRegistry) -> Manager:
    manager = Manager(
        settings.configuration,
        source=ManifestSource(settings.manifests, node=settings.configuration.node, identities=store),
        store=store,
        event_log=store,
        registry=registry,
        plugged=agent.plugged if agent else _never_plugged,
    )
    if agent:
        agent.on_unplugged(manager.unplugged)
    return manager


def _never_plugged(_vm_uuid: str) -> bool:
    return False


async def _run(manager: Manager, agent: Agent | None) -> None:
    try:
        async with TaskGroup() as tasks:
            tasks.create_task(manager.run())
            if agent:
                tasks.create_task(agent.run())
    except* FolderError as group:
        raise DataError(str(group.exceptions[0])) from group


async def _serve(
    stack: AsyncExitStack, settings: NodeSettings, manager: Manager, agent: Agent | None, registry: CollectorRegistry
) -> None:
    """Serves all pages until the stack is left: each listener has an application of its own."""
    status = status_routes(lambda: manager.readiness() + (agent.readiness() if agent else []), registry)
    pages = [*status, *api_routes(manager.views)]
    if agent and settings.agent:
        await _serve_agent_socket(stack, agent, settings.agent, status)
        application = agent_application(agent, take_writes=True, pages=pages)
        runner = agent_runner(application)
    else:
        runner = _plain_runner(pages)
    address = await _listen(stack, runner, settings.listen)
    log.info("serving the API on http://%s", address)
    if settings.metrics_listen is not None:
        metrics = await _listen(stack, _plain_runner(status), settings.metrics_listen)
        log.info("serving health and metrics on http://%s", metrics)


async def _serve_agent_socket(
    stack: AsyncExitStack, agent: Agent, places: AgentPlaces, status: list[web.RouteDef]
) -> None:
    runner = agent_runner(agent_application(agent, take_writes=True, pages=status))
    await _set_up(stack, runner)
    await stack.enter_async_context(serve_unix(runner, places.socket))


def _plain_runner(pages: list[web.RouteDef]) -> web.AppRunner:
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(pages)
    return web.AppRunner(application, access_log=None, shutdown_timeout=_MANAGER_SHUTDOWN)


async def _listen(stack: AsyncExitStack, runner: web.AppRunner, address: ListenAddress) -> ListenAddress:
    await _set_up(stack, runner)
    return await serve_tcp(runner, address)


async def _set_up(stack: AsyncExitStack, runner: web.AppRunner) -> None:
    await runner.setup()
    stack.push_async_callback(runner.cleanup)

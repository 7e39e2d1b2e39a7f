"""The agent as a process: reaches the store, keeps the ports, serves the API, and follows the store until it is ended.

It starts whatever the cluster is like: while the API server is away, or does not know the kind of our objects yet since
no manager ran before, `/readyz` says so and the agent tries again. What was listed once is served all the time.
Beside that it reports of its node there; whether it can is not its readiness.
"""

import importlib.metadata
from asyncio import TaskGroup
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from agent_api.application import agent_application, agent_runner
from agent_api.configuration import AgentConfiguration, KubernetesStoreSettings
from agent_api.errors import PortsError
from agent_api.node.reporter import NodeReporter
from agent_api.node_agent import NodeAgent
from agent_api.unix_socket import serve_unix
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.kubernetes.store import KubernetesStore
from contrail_service.errors import ConfigurationError, DataError
from contrail_service.listen import parse_listen, parse_optional_listen
from contrail_service.pages import Routes, status_routes
from contrail_service.serving import serve_api, serve_metrics, set_up


async def run_agent(configuration: AgentConfiguration, store_settings: KubernetesStoreSettings) -> None:
    """Runs until it is cancelled. Raises ServiceError if it cannot start as it was told."""
    registry = CollectorRegistry()
    async with AsyncExitStack() as stack:
        client = await _connect(stack, store_settings)
        store = KubernetesStore(client)
        stack.push_async_callback(store.close)
        agent = NodeAgent(store=store, node=configuration.node, ports_dir=configuration.ports_dir, registry=registry)
        await load_ports(agent, key="ports-dir")
        status = status_routes(lambda: agent.readiness() + store.problems(), registry)
        await _serve(stack, configuration, agent, status)
        await _run(agent, NodeReports(client, configuration.node))


async def load_ports(agent: NodeAgent, *, key: str | None = None) -> None:
    """Has the agent take the ports that an earlier process kept; `key` is the setting that says where, if one does.

    Raises DataError.
    """
    try:
        await agent.load_ports()
    except PortsError as error:
        raise DataError(f"{key}: {error}" if key else str(error)) from error


async def serve_socket(stack: AsyncExitStack, agent: NodeAgent, path: str, *, pages: Routes) -> None:
    """Serves the agent and further pages on a Unix socket, for our own plugin, until the stack is left.

    Raises ListenError.
    """
    runner = agent_runner(agent_application(agent, take_writes=True, pages=pages))
    await set_up(stack, runner)
    await stack.enter_async_context(serve_unix(runner, path))


async def _connect(stack: AsyncExitStack, settings: KubernetesStoreSettings) -> KubeClient:
    try:
        access = await load_client_config(kubeconfig=settings.kubeconfig or "")
    except KubeConfigurationError as error:
        raise ConfigurationError(f"store.kubeconfig: {error}") from error
    return await stack.enter_async_context(connect(access))


async def _serve(stack: AsyncExitStack, configuration: AgentConfiguration, agent: NodeAgent, status: Routes) -> None:
    await serve_socket(stack, agent, configuration.socket, pages=status)
    application = agent_application(agent, take_writes=configuration.tcp_writes, pages=status)
    await serve_api(stack, agent_runner(application), parse_listen(configuration.listen, key="listen"))
    await serve_metrics(stack, status, parse_optional_listen(configuration.metrics_listen, key="metrics-listen"))


async def _run(agent: NodeAgent, reports: NodeReports) -> None:
    reporter = NodeReporter(agent, reports, versions={"agent": importlib.metadata.version("contrail-multinet")})
    async with TaskGroup() as tasks:
        tasks.create_task(agent.run())
        tasks.create_task(reporter.run())

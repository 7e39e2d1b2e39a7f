"""The agent as a process: reaches the store, keeps the ports, serves the API, and follows the store until it is ended.

It starts whatever the cluster is like: while the API server is away, or does not know the kind of our objects yet since
no manager ran before, `/readyz` says so and the agent tries again. What was listed once is served all the time.
"""

from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry

from agent_api.agent import Agent
from agent_api.application import agent_application, agent_runner
from agent_api.configuration import AgentConfiguration, KubernetesStore
from agent_api.errors import PortsError
from agent_api.unix_socket import serve_unix
from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_access
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kubernetes.store import KubernetesStore as ClusterStore
from contrail_service.errors import ConfigurationError, DataError
from contrail_service.listen import parse_listen, parse_optional_listen
from contrail_service.pages import Routes, status_routes
from contrail_service.serving import serve_api, serve_metrics, set_up


async def run_agent(configuration: AgentConfiguration, store_settings: KubernetesStore) -> None:
    """Runs until it is cancelled. Raises ServiceError if it cannot start as it was told."""
    registry = CollectorRegistry()
    async with AsyncExitStack() as stack:
        store = await _open_store(stack, store_settings)
        agent = Agent(store=store, node=configuration.node, ports_dir=configuration.ports_dir, registry=registry)
        await load_ports(agent)
        status = status_routes(lambda: agent.readiness() + store.problems(), registry)
        await _serve(stack, configuration, agent, status)
        await agent.run()


async def load_ports(agent: Agent) -> None:
    """Has the agent take the ports that an earlier process kept. Raises DataError."""
    try:
        await agent.load_ports()
    except PortsError as error:
        raise DataError(str(error)) from error


async def serve_socket(stack: AsyncExitStack, agent: Agent, path: str, *, pages: Routes) -> None:
    """Serves the agent and further pages on a Unix socket, for our own plugin, until the stack is left.

    Raises ListenError.
    """
    runner = agent_runner(agent_application(agent, take_writes=True, pages=pages))
    await set_up(stack, runner)
    await stack.enter_async_context(serve_unix(runner, path))


async def _open_store(stack: AsyncExitStack, settings: KubernetesStore) -> ClusterStore:
    try:
        access = await load_access(kubeconfig=settings.kubeconfig or "")
    except KubeConfigurationError as error:
        raise ConfigurationError(f"store.kubeconfig: {error}") from error
    store = ClusterStore(await stack.enter_async_context(connect(access)))
    stack.push_async_callback(store.close)
    return store


async def _serve(stack: AsyncExitStack, configuration: AgentConfiguration, agent: Agent, status: Routes) -> None:
    await serve_socket(stack, agent, configuration.socket, pages=status)
    application = agent_application(agent, take_writes=configuration.tcp_writes, pages=status)
    await serve_api(stack, agent_runner(application), parse_listen(configuration.listen, key="listen"))
    await serve_metrics(stack, status, parse_optional_listen(configuration.metrics_listen, key="metrics-listen"))

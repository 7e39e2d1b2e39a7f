"""The agent as a process: connects to the store, loads the ports, serves the API and watches the store.

It starts regardless of the state of the cluster: while the API server is unreachable, or our custom resources are not
defined because no manager has run yet, `/readyz` says so and the agent retries. VirtualMachines listed once stay served
meanwhile. The agent also reports its node's state to the cluster; a failed report does not affect readiness.
"""

import importlib.metadata
from asyncio import TaskGroup
from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector

from agent_api.application import agent_application, agent_runner
from agent_api.configuration import AgentConfiguration, KubernetesStoreSettings
from agent_api.datapath.desired_state import DatapathOptions, Masquerade
from agent_api.datapath.linux_datapath import Spanning
from agent_api.errors import StorageError
from agent_api.node.reporter import NodeReporter
from agent_api.node_agent import NodeAgent
from agent_api.unix_socket import serve_unix
from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.errors import KubeConfigurationError
from contrail_config.kubernetes.node_reports import NodeReports
from contrail_config.kubernetes.port_requests import PortRequests
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import network_uuid, pod_network_name
from contrail_service.client_metrics import ClientMetrics
from contrail_service.errors import ConfigurationError, DataError
from contrail_service.listen import parse_listen, parse_optional_listen
from contrail_service.pages import Routes, status_routes
from contrail_service.serving import serve_api, serve_metrics, set_up


async def run_agent(configuration: AgentConfiguration, store_settings: KubernetesStoreSettings) -> None:
    """Runs until cancelled. Raises ServiceError if the process cannot start as configured."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with AsyncExitStack() as stack:
        client = await _connect(stack, store_settings, registry)
        requests = PortRequests()
        store = KubernetesStore(client, port_requests=requests)
        stack.push_async_callback(store.close)
        invalid = Gauge(
            "contrail_agent_invalid_objects", "Invalid objects that this node reads, skipped.", registry=registry
        )
        invalid.set_function(lambda: float(len(store.invalid_objects())))
        agent = NodeAgent(
            store=store,
            node=configuration.node,
            ports_dir=configuration.ports_dir,
            registry=registry,
            datapath=configuration.datapath,
            options=datapath_options(configuration),
            spanning=Spanning(
                store,
                configuration.node,
                configuration.vxlan_port,
                network_uuid(pod_network_name(configuration.cluster_name)),
            ),
        )
        # Before any listener opens: no client is to see an agent that does not know its ports.
        await load_ports(agent, key="ports-dir")
        status = status_routes(
            lambda: agent.readiness() + store.problems(),
            registry,
            single_faults=agent.unconnected_ports,
            details=agent.details,
        )
        await serve_agent(stack, configuration, agent, status)
        await _run(agent, NodeReports(client, configuration.node), requests, configuration.installer_report)


def datapath_options(configuration: AgentConfiguration) -> DatapathOptions:
    """Returns what the configuration says of packets that leave the node."""
    masquerade = Masquerade(tuple(configuration.masquerade_excluded)) if configuration.masquerade else None
    return DatapathOptions(masquerade, configuration.fabric_subnets)


async def load_ports(agent: NodeAgent, *, key: str | None = None) -> None:
    """Loads the ports that an earlier process persisted. Raises DataError.

    `key` is the configuration key of the directory, for the error message, if there is one.
    """
    try:
        await agent.load_ports()
    except StorageError as error:
        raise DataError(f"{key}: {error}" if key else str(error)) from error


async def serve_socket(stack: AsyncExitStack, agent: NodeAgent, path: str, *, routes: Routes) -> None:
    """Serves the agent and further routes on a Unix socket, for our own plugin, until the stack is closed.

    Raises ListenError.
    """
    runner = agent_runner(agent_application(agent, accept_writes=True, is_local=True, routes=routes))
    await set_up(stack, runner)
    await stack.enter_async_context(serve_unix(runner, path))


async def _connect(stack: AsyncExitStack, settings: KubernetesStoreSettings, registry: CollectorRegistry) -> KubeClient:
    try:
        client_config = await load_client_config(kubeconfig=settings.kubeconfig or "")
    except KubeConfigurationError as error:
        raise ConfigurationError(f"store.kubeconfig: {error}") from error
    observer = ClientMetrics(
        registry,
        requests="contrail_agent_api_requests",
        request_seconds="contrail_agent_api_request_seconds",
        watch_age="contrail_agent_watch_age_seconds",
    )
    return await stack.enter_async_context(connect(client_config, observer=observer))


async def serve_agent(
    stack: AsyncExitStack, configuration: AgentConfiguration, agent: NodeAgent, status: Routes
) -> None:
    """Serves the agent at all addresses of its configuration, until the stack is closed. Raises ListenError."""
    # Two applications, because only the Unix socket accepts writes regardless of the configuration.
    await serve_socket(stack, agent, configuration.socket, routes=status)
    application = agent_application(agent, accept_writes=configuration.tcp_writes, root_peers_only=True, routes=status)
    await serve_api(stack, agent_runner(application), parse_listen(configuration.listen, key="listen"))
    await serve_metrics(stack, status, parse_optional_listen(configuration.metrics_listen, key="metrics-listen"))


async def _run(agent: NodeAgent, reports: NodeReports, requests: PortRequests, installer_report: str) -> None:
    versions = {"agent": importlib.metadata.version("contrail-multinet")}
    reporter = NodeReporter(
        agent, reports, versions=versions, installer_report=installer_report, port_requests=requests
    )
    async with TaskGroup() as tasks:
        tasks.create_task(agent.run())
        tasks.create_task(reporter.run())

"""The agent as a process whose store is a Contrail API server, beside a Contrail vrouter or alone.

It reads the virtual machines there and writes nothing, neither there nor to the cluster, which it does not know. It
starts whatever the state of the server: `/readyz` says what it waits for, and virtual machines listed once stay served
while the server is away.

With the datapath `linux` it reads virtual routers, too: their addresses are those of the nodes to which networks span.
"""

from contextlib import AsyncExitStack

from prometheus_client import CollectorRegistry, ProcessCollector

from agent_api.configuration import AgentConfiguration
from agent_api.datapath.kind import Datapath
from agent_api.datapath.linux_datapath import Spanning
from agent_api.node_agent import NodeAgent
from agent_api.process import datapath_options, load_ports, serve_agent
from contrail_config.vnc.access import load_access
from contrail_config.vnc.client import connect
from contrail_config.vnc.errors import VncConfigurationError
from contrail_config.vnc.follower import Intervals
from contrail_config.vnc.reader import VncReader
from contrail_config.vnc.settings import VncSettings
from contrail_config.vnc.spanning_reader import SpanningReader
from contrail_service.client_metrics import ClientMetrics
from contrail_service.errors import ConfigurationError
from contrail_service.pages import status_routes


async def run_agent_beside_contrail(configuration: AgentConfiguration, settings: VncSettings) -> None:
    """Runs until cancelled. Raises ServiceError if the process cannot start as configured."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    async with AsyncExitStack() as stack:
        reader = await _open_reader(stack, configuration, settings, registry)
        agent = NodeAgent(
            store=reader,
            node=configuration.node,
            ports_dir=configuration.ports_dir,
            registry=registry,
            datapath=configuration.datapath,
            options=datapath_options(configuration),
            spanning=_spanning(configuration, reader),
        )
        # Before any listener opens: no client is to see an agent that does not know its ports.
        await load_ports(agent, key="ports-dir")
        status = status_routes(
            lambda: agent.readiness() + reader.problems(),
            registry,
            single_faults=agent.unconnected_ports,
            details=agent.details,
        )
        await serve_agent(stack, configuration, agent, status)
        await agent.run()


def _spanning(configuration: AgentConfiguration, reader: VncReader) -> Spanning | None:
    if not isinstance(reader, SpanningReader):
        return None
    return Spanning(reader, configuration.node, configuration.vxlan_port)


async def _open_reader(
    stack: AsyncExitStack, configuration: AgentConfiguration, settings: VncSettings, registry: CollectorRegistry
) -> VncReader:
    try:
        access = await load_access(settings)
    except VncConfigurationError as error:
        raise ConfigurationError(f"store.{error}") from error
    observer = ClientMetrics(
        registry,
        requests="contrail_agent_contrail_api_requests",
        request_seconds="contrail_agent_contrail_api_request_seconds",
        watch_age="contrail_agent_contrail_watch_age_seconds",
    )
    client = await stack.enter_async_context(connect(access, observer=observer))
    kind = SpanningReader if configuration.datapath is Datapath.LINUX else VncReader
    reader = kind(client, cluster=configuration.cluster_name, intervals=Intervals(poll=settings.poll_interval))
    stack.push_async_callback(reader.close)
    return reader

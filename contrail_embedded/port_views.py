"""Ports of a pod for the manager's API, from the agent in the same process."""

from collections.abc import Sequence

from agent_api.node_agent import NodeAgent
from contrail_config.objects import VirtualMachine
from manager.api.queries import FindPorts
from manager.api.types import PortView
from manager.api.views import port_views


def port_finder(agent: NodeAgent) -> FindPorts:
    """Returns what finds the ports of a virtual machine."""

    async def find(virtual_machine: VirtualMachine, names: Sequence[str]) -> list[PortView]:
        return port_views(virtual_machine, names, agent.port_readings(virtual_machine), agent.counted_at())

    return find

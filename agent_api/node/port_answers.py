"""Answers to requests for the ports of pods, for the report of the node. Bounded: see `NodeReport.ports`."""

import msgspec

from agent_api.node_agent import NodeAgent
from contrail_config.kubernetes.port_requests import PortRequests
from contrail_config.port_readings import PodPorts, PortReading

MAX_PORTS = 64
"""Ports of a pod in a report, the first ones."""

_MAX_REASON_LENGTH = 256  # characters


def port_answers(agent: NodeAgent, requests: PortRequests) -> tuple[PodPorts, ...]:
    """Returns the ports of the virtual machines that are requested now, as far as the node has them."""
    counted_at = agent.counted_at()
    machines = ((agent.virtual_machines.by_uuid(uuid), request) for uuid, request in requests.open().items())
    return tuple(
        PodPorts(machine.uuid, request, counted_at, tuple(map(_cut, agent.port_readings(machine)[:MAX_PORTS])))
        for machine, request in machines
        if machine is not None
    )


def _cut(reading: PortReading) -> PortReading:
    if reading.reason is None or len(reading.reason) <= _MAX_REASON_LENGTH:
        return reading
    return msgspec.structs.replace(reading, reason=reading.reason[:_MAX_REASON_LENGTH])

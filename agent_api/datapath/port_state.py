"""State of the port of an interface: whether it is plugged and connected, what it counts and its network dropped."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from agent_api.datapath.desired_state import INDEX_0
from agent_api.datapath.linux_datapath import LinuxDatapath
from agent_api.datapath.report import Counters, Drops
from agent_api.datapath.reports import MAX_AGE
from agent_api.ports.container import ContainerPort
from contrail_config.objects import Refusal, VirtualMachineInterface

_NO_DATAPATH = "the agent runs without a datapath"


class PortCondition(StrEnum):
    """Whether a port is connected."""

    CONNECTED = "Connected"
    MISSING = "Missing"
    PROBLEM = "Problem"
    UNKNOWN = "Unknown"
    NOT_PLUGGED = "NotPlugged"


class PortState(NamedTuple):
    """State of an interface's port. `drops` are those of the whole network.

    `drops` and `counters` are None where they are not known.
    """

    condition: PortCondition
    reason: str
    port: ContainerPort | None
    drops: Drops | None = None
    counters: Counters | None = None


def port_states(
    interfaces: Sequence[VirtualMachineInterface],
    ports: Mapping[str, ContainerPort],
    datapath: LinuxDatapath | None,
) -> list[PortState]:
    """Returns the states of a pod's interfaces in their order; `ports` are those that are plugged, by interface."""
    found = [ports.get(interface.uuid) for interface in interfaces]
    if datapath is None:
        return [_without_datapath(port) for port in found]
    refusals = datapath.refusals()
    return [
        _port_state(interface, index, port, datapath, refusals)
        for index, (interface, port) in enumerate(zip(interfaces, found, strict=True))
    ]


def _port_state(
    interface: VirtualMachineInterface,
    index: int,
    port: ContainerPort | None,
    datapath: LinuxDatapath,
    refusals: Sequence[Refusal],
) -> PortState:
    number = interface.vni if index else INDEX_0
    latest = datapath.reports.latest
    drops = None if latest is None else latest.drops.get(str(number))
    counters = None if port is None else datapath.reports.counters.get(str(number), {}).get(port.host_ifname)
    refusal = next((each for each in refusals if _concerns(each, index, interface)), None)
    if refusal is not None:
        return PortState(PortCondition.PROBLEM, refusal.message, port, drops, counters)
    if index and not number:
        return PortState(PortCondition.PROBLEM, "its network has no VNI", port)
    if port is None:
        return PortState(PortCondition.NOT_PLUGGED, "", None, drops)
    return PortState(*_reported(datapath, number, port.host_ifname), port, drops, counters)


def _without_datapath(port: ContainerPort | None) -> PortState:
    if port is None:
        return PortState(PortCondition.NOT_PLUGGED, "", None)
    return PortState(PortCondition.UNKNOWN, _NO_DATAPATH, port)


def _reported(datapath: LinuxDatapath, number: int, link: str) -> tuple[PortCondition, str]:
    reports = datapath.reports
    if reports.latest is None or not reports.is_current:
        return PortCondition.UNKNOWN, f"nothing has been reported of the datapath for {MAX_AGE:g} s"
    if reports.is_missing(number, link):
        return PortCondition.MISSING, "the host end does not exist"
    problem = reports.latest.problems.get(str(number))
    return (PortCondition.PROBLEM, problem) if problem else (PortCondition.CONNECTED, "")


def _concerns(refusal: Refusal, index: int, interface: VirtualMachineInterface) -> bool:
    """Whether a refusal keeps an interface from being connected: one about a subnet does so at index 0 only."""
    is_refused = refusal.network == interface.network and not refusal.connected
    return is_refused and (index == 0 or refusal.subnet is None)

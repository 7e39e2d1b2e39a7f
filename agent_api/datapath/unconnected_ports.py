"""Unconnected ports: plugged ones that have no traffic while others of the node do, and why.

The host end is missing, since somebody deleted it or the node was rebooted; or the network is refused. Either is the
fault of one pod, or of what a tenant configured, so these are reasons with which the node stays ready.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from agent_api.datapath.desired_state import INDEX_0
from agent_api.datapath.feed import DesiredStateFeed
from agent_api.datapath.known_virtual_machines import KnownVirtualMachines
from agent_api.datapath.refusals import RefusalReason, with_reserved_mac
from agent_api.datapath.reports import DatapathReports
from agent_api.ports.container import ContainerPort
from contrail_config.objects import FqName, VirtualMachine, VirtualMachineInterface

GRACE = 10.0
"""Seconds for which a host end must be missing: DEL removes it before the agent learns that its port is gone."""

_MAX_NAMED = 5
"""Ports in the reasons; the rest is counted."""

PortOf = Callable[[VirtualMachine, VirtualMachineInterface], ContainerPort | None]
"""Returns the plugged port of an interface, None if there is none."""

_Refused = Mapping[tuple[FqName, int], str]  # why networks are not connected, by name and VNI


class Cause(StrEnum):
    """Why a port is not connected."""

    MISSING = "missing"
    REFUSED = "refused"


class UnconnectedPort(NamedTuple):
    """A port that is not connected; `reason` names pod, interface, network and what is wrong."""

    cause: Cause
    reason: str


class UnconnectedPorts:
    """Knows of none unless the process that programs the kernel reports: without it nothing is known of any port."""

    def __init__(
        self,
        virtual_machines: KnownVirtualMachines,
        feed: DesiredStateFeed,
        reports: DatapathReports,
        *,
        port_of: PortOf,
    ) -> None:
        self._virtual_machines = virtual_machines
        self._feed = feed
        self._reports = reports
        self._port_of = port_of

    def reasons(self) -> list[str]:
        """Returns a reason for each port; the first few are named."""
        ports = list(self._all())
        reasons = [port.reason for port in ports[:_MAX_NAMED]]
        if len(ports) > _MAX_NAMED:
            reasons.append(f"datapath: {len(ports) - _MAX_NAMED} more interfaces are not connected")
        return reasons

    def counts(self) -> Counter[Cause]:
        """Returns the number of ports by cause."""
        counts = Counter(dict.fromkeys(Cause, 0))
        counts.update(port.cause for port in self._all())
        return counts

    def _all(self) -> Iterator[UnconnectedPort]:
        if not self._reports.is_current:
            return
        programmed, refused = _programmed(self._feed), _refused(self._feed)
        for virtual_machine in self._virtual_machines.all():
            for index, interface in enumerate(virtual_machine.interfaces):
                port = self._port_of(virtual_machine, interface)
                if port is None:
                    continue
                cause = Cause.MISSING if port.host_ifname in programmed else Cause.REFUSED
                if cause is Cause.MISSING:
                    why = self._missing(interface, index, port.host_ifname)
                else:  # None: it is programmed from the next computation on
                    why = _refusal(interface, index, refused)
                if why is not None:
                    pod = f"{virtual_machine.namespace}/{virtual_machine.pod}"
                    name = port.vm_ifname or f"interface {index}"
                    yield UnconnectedPort(cause, f"datapath: pod {pod}: {name}: {why}")

    def _missing(self, interface: VirtualMachineInterface, index: int, link: str) -> str | None:
        seconds = self._reports.missing_seconds(interface.vni if index else INDEX_0, link)
        if seconds is None or seconds < GRACE:
            return None
        network = ":".join(interface.network)
        return f"network {network}: not connected: no host end {link} for {seconds:.0f} s: delete the pod"


def _programmed(feed: DesiredStateFeed) -> set[str]:
    """Returns the host ends that the kernel is to connect."""
    state = feed.state
    return {port.link for port in state.routed} | {port.link for network in state.networks for port in network.ports}


def _refused(feed: DesiredStateFeed) -> _Refused:
    return {
        (each.network, each.vni): each.message
        for each in feed.refused
        if each.reason != RefusalReason.RESERVED_MAC  # which concerns single interfaces of the network
    }


def _refusal(interface: VirtualMachineInterface, index: int, refused: _Refused) -> str | None:
    reserved = with_reserved_mac(interface) if index else None
    return reserved.message if reserved else refused.get((interface.network, interface.vni))

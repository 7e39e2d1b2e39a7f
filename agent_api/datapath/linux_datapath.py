"""Linux datapath of the node: connects the feed of its desired state to the virtual machines and the port table."""

import logging
from collections.abc import Callable, Iterator
from typing import Protocol

from agent_api.datapath.desired_state import Computation, desired_state
from agent_api.datapath.feed import DesiredStateFeed
from agent_api.ports.container import ContainerPort
from agent_api.ports.table import PortTable
from contrail_config.objects import VirtualMachine, VirtualMachineInterface

log = logging.getLogger(__name__)

_MAX_NAMED = 3
"""Reasons of one kind in the readiness; the rest is counted."""


class KnownVirtualMachines(Protocol):
    """The part of `VirtualMachineIndex` that is used here."""

    synced: bool

    def all(self) -> list[VirtualMachine]:
        """Returns all VirtualMachines."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Calls back after each change."""


class LinuxDatapath:
    """What the kernel of this node should have, for the process that programs it."""

    def __init__(self, virtual_machines: KnownVirtualMachines, ports: PortTable) -> None:
        self._virtual_machines = virtual_machines
        self._ports = ports
        self._logged: dict[int, tuple[str, ...]] = {}
        self.feed = DesiredStateFeed(self._compute, not_ready_reason=self._not_ready_reason)
        virtual_machines.on_change(self.feed.changed)
        ports.on_change(self.feed.changed)

    def readiness(self) -> list[str]:
        """Returns what prevents traffic, by network; the first few are named."""
        # The plugin's STATUS recognizes a reason of the port table by the word "ports".
        return named([_refusal(vni, names) for vni, names in sorted(self.feed.refused.items())])

    def _not_ready_reason(self) -> str | None:
        # On half a list the reader would remove what is in use.
        if not self._ports.loaded:
            return "ports: not loaded yet"
        if not self._virtual_machines.synced:
            return "virtual machines: not listed yet"
        return None

    def _compute(self) -> Computation:
        computation = desired_state(self._virtual_machines.all(), self._link_of)
        for vni, names in computation.refused.items():
            if self._logged.get(vni) != names:
                log.error("%s", _refusal(vni, names))
        self._logged = computation.refused
        return computation

    def _link_of(self, virtual_machine: VirtualMachine, interface: VirtualMachineInterface) -> str | None:
        port = self._ports.by_interface(interface.uuid)
        if not isinstance(port, ContainerPort) or port.vm_uuid != virtual_machine.uuid:
            return None
        return port.host_ifname


def named(reasons: list[str]) -> list[str]:
    """Returns the first few reasons, and the number of the others."""
    return list(_named(reasons))


def _named(reasons: list[str]) -> Iterator[str]:
    yield from reasons[:_MAX_NAMED]
    if len(reasons) > _MAX_NAMED:
        yield f"datapath: {len(reasons) - _MAX_NAMED} more problems"


def _refusal(vni: int, names: tuple[str, ...]) -> str:
    return f"datapath: VNI {vni}: not connected, several networks have it: {', '.join(names)}"

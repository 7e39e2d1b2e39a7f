"""Which ports were unplugged after their machines had gone, and which have still to be.

A machine goes before its ports where its pod was deleted by force: its sandbox lives on, and its addresses are not
given to others until its node says that the ports are unplugged. In an orderly deletion the ports go first, and nobody
waits for word of them; so nodes have little to tell, however many pods come and go. Only of static pods it is told in
any case: when kubelet removes one, the cluster sees no more than that its mirror goes, which may mean nothing.

What is noted is forgotten when this process ends: whoever waits for it waits for as long as addresses are held at most.
"""

from collections.abc import Callable, Sequence

from agent_api.node.notes import Notes
from agent_api.ports.container import ContainerPort
from agent_api.ports.port import Port
from agent_api.ports.table import PortTable
from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.store import UNPLUGGED_HOLD

_MOST = 1024
"""Interfaces: a report stays far below what an object may have."""


class UnpluggedPorts:
    """Follows the table of ports from now on. Ports of instances have no machine here, and do not count."""

    def __init__(self, machines: VirtualMachineIndex, ports: PortTable, *, clock: Callable[[], float]) -> None:
        self._machines = machines
        self._ports = ports
        self._notes = Notes(most=_MOST, seconds=UNPLUGGED_HOLD, clock=clock)
        ports.on_unplugged(self._unplugged)

    def interfaces(self) -> tuple[str, ...]:
        """Uuids of interfaces whose ports were unplugged, and are not plugged again, the newest first."""
        return tuple(uuid for uuid in self._notes.all() if self._ports.of_interface(uuid) is None)

    def pending(self) -> int:
        """The number of ports that have still to be unplugged."""
        return sum(map(self._outlives_its_machine, self._ports.all()))

    def _unplugged(self, ports: Sequence[Port]) -> None:
        for port in ports:
            if self._outlives_its_machine(port) or self._is_of_static_pod(port):
                self._notes.add(port.vmi_uuid)

    def _is_of_static_pod(self, port: Port) -> bool:
        machine = self._machines.with_uuid(port.vm_uuid)
        return machine is not None and machine.has_mirror_pod

    def _outlives_its_machine(self, port: Port) -> bool:
        is_known = self._machines.listed and isinstance(port, ContainerPort)
        return is_known and self._machines.with_uuid(port.vm_uuid) is None

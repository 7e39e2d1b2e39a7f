"""Ports that outlived their VirtualMachine: those unplugged since, and the number of those still plugged.

A VirtualMachine disappears before its ports if its pod was force-deleted. Its sandbox lives on, and its addresses are
not allocated to others until the node reports the ports as unplugged. In an orderly deletion the ports go first and
nothing waits for a report, so nodes have little to report however many pods come and go. Ports of static pods are
always reported: when kubelet removes a static pod, the cluster only sees the deletion of its mirror pod, which alone
proves nothing.

The reported state is lost when this process ends. Addresses are then released when their hold time expires.
"""

from collections.abc import Callable, Sequence

from agent_api.node.expiring_set import ExpiringSet
from agent_api.ports.container import ContainerPort
from agent_api.ports.port import Port
from agent_api.ports.table import PortTable
from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.store import UNPLUGGED_HOLD

_MAX_INTERFACES = 1024
"""Keeps the report far below the size limit of an object in the cluster."""


class UnpluggedPorts:
    """Observes the port table from now on. Instance ports are ignored: they have no VirtualMachine here."""

    def __init__(self, virtual_machines: VirtualMachineIndex, ports: PortTable, *, clock: Callable[[], float]) -> None:
        self._virtual_machines = virtual_machines
        self._ports = ports
        self._interfaces = ExpiringSet(max_size=_MAX_INTERFACES, ttl=UNPLUGGED_HOLD, clock=clock)
        ports.on_unplugged(self._on_unplugged)

    def interfaces(self) -> tuple[str, ...]:
        """Returns uuids of interfaces that were unplugged and not plugged again, the newest first."""
        return tuple(uuid for uuid in self._interfaces.newest_first() if self._ports.by_interface(uuid) is None)

    def pending(self) -> int:
        """Returns the number of ports that outlived their VirtualMachine and are still plugged."""
        return sum(map(self._is_orphaned, self._ports.all()))

    def _on_unplugged(self, ports: Sequence[Port]) -> None:
        for port in ports:
            if self._is_orphaned(port) or self._is_of_static_pod(port):
                self._interfaces.add(port.vmi_uuid)

    def _is_of_static_pod(self, port: Port) -> bool:
        virtual_machine = self._virtual_machines.by_uuid(port.vm_uuid)
        return virtual_machine is not None and virtual_machine.has_mirror_pod

    def _is_orphaned(self, port: Port) -> bool:
        # Before the first complete list a missing VirtualMachine proves nothing.
        is_known = self._virtual_machines.synced and isinstance(port, ContainerPort)
        return is_known and self._virtual_machines.by_uuid(port.vm_uuid) is None

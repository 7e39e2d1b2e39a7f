"""VNI users: the networks of this node by VNI, kept up to date. An ADD must know at once that two of them share one."""

from collections import Counter

from agent_api.datapath.index_0 import isolated_network
from contrail_config.objects import VirtualMachine


class VniUsers:
    """Networks of virtual machines by VNI, as far as the VNI keeps them apart on the node."""

    def __init__(self) -> None:
        self._networks: dict[int, Counter[str]] = {}  # interfaces by uuid of their network

    def add(self, virtual_machine: VirtualMachine) -> None:
        """Adds the networks of a virtual machine."""
        for vni, uuid in _used(virtual_machine):
            self._networks.setdefault(vni, Counter())[uuid] += 1

    def remove(self, virtual_machine: VirtualMachine) -> None:
        """Removes the networks of a virtual machine that was added."""
        for vni, uuid in _used(virtual_machine):
            users = self._networks[vni]
            users[uuid] -= 1
            if not users[uuid]:
                del users[uuid]
            if not users:
                del self._networks[vni]

    def are_several(self, vni: int) -> bool:
        """Returns whether more than one network has the VNI."""
        return len(self._networks.get(vni, ())) > 1


def _used(virtual_machine: VirtualMachine) -> list[tuple[int, str]]:
    numbers = (
        (interface.vni if index else isolated_network(interface), interface.network_uuid)
        for index, interface in enumerate(virtual_machine.interfaces)
    )
    return [(vni, uuid) for vni, uuid in numbers if vni]

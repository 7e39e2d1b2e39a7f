"""VNIs that several networks of this node have: these networks must not be connected, since their packets would meet.

The store gives each network a VNI of its own; objects that somebody edited or restored may break that.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator

from contrail_config.objects import VirtualMachine


def shared_vni_text(vni: int, names: tuple[str, ...]) -> str:
    """Returns the sentence for operators."""
    return f"VNI {vni}: not connected, several networks have it: {', '.join(names)}"


class SharedVnis:
    """Networks of the virtual machines that were added; `names` are those that share a VNI, by VNI.

    Index 0 has no part in this: the node routes it.
    """

    def __init__(self) -> None:
        self._interfaces = defaultdict[int, Counter[tuple[str, str]]](Counter)  # number by uuid and name of the network
        self.names: dict[int, tuple[str, ...]] = {}

    def add(self, virtual_machine: VirtualMachine) -> bool:
        """Returns whether `names` has changed."""
        changed = False
        for vni, network in _networks(virtual_machine):
            self._interfaces[vni][network] += 1
            changed |= self._update(vni)
        return changed

    def remove(self, virtual_machine: VirtualMachine) -> bool:
        """Removes a virtual machine that was added; returns whether `names` has changed."""
        changed = False
        for vni, network in _networks(virtual_machine):
            self._interfaces[vni][network] -= 1
            self._interfaces[vni] += Counter()  # without those of which there is none left
            changed |= self._update(vni)
            if not self._interfaces[vni]:
                del self._interfaces[vni]
        return changed

    def _update(self, vni: int) -> bool:
        networks = dict(self._interfaces[vni].keys())  # one network keeps its uuid, whatever its name
        names = tuple(sorted(networks.values())) if len(networks) > 1 else ()
        if self.names.get(vni, ()) == names:
            return False
        self.names.pop(vni, None)
        if names:
            self.names[vni] = names
        return True


def _networks(virtual_machine: VirtualMachine) -> Iterator[tuple[int, tuple[str, str]]]:
    for interface in virtual_machine.interfaces[1:]:
        if interface.vni:
            yield interface.vni, (interface.network_uuid, ":".join(interface.network))

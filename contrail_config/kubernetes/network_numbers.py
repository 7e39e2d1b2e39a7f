"""Numbers (vni) of networks that are in use beside those in the network objects.

Virtual machines keep the number with which they were made, and nodes tell networks apart by it alone. So the number of
a network that somebody else deleted is not free: its virtual machines still have it, or are being written with it. It
is reserved for that network, which takes it again when it is put back. Pure, without requests.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from contrail_config.objects import VirtualMachineInterface, VirtualNetwork


class NetworkNumber(NamedTuple):
    """A network, and a number that it has in a virtual machine."""

    network_uuid: str
    vni: int


class NetworkNumbers:
    """Numbers that virtual machines have, and those of networks that somebody else deleted."""

    def __init__(self) -> None:
        self._interfaces = Counter[NetworkNumber]()
        self._shared: dict[NetworkNumber, NetworkNumber] = {}  # one object for all interfaces of a network
        self._deleted: dict[str, int] = {}  # by network uuid

    def add(self, interfaces: Iterable[VirtualMachineInterface]) -> tuple[NetworkNumber, ...]:
        """Counts the numbers of a virtual machine, and returns them for `remove`."""
        found = (NetworkNumber(each.network_uuid, each.vni) for each in interfaces if each.vni)
        numbers = tuple(self._shared.setdefault(number, number) for number in found)
        self._interfaces.update(numbers)
        return numbers

    def remove(self, numbers: Iterable[NetworkNumber]) -> None:
        """Removes the numbers of a virtual machine."""
        for number in numbers:
            self._interfaces[number] -= 1
            if not self._interfaces[number]:
                del self._interfaces[number], self._shared[number]

    def reserve(self, network: VirtualNetwork) -> None:
        """Reserves the number of a network that somebody else deleted."""
        self._deleted[network.uuid] = network.vni

    def end_reservation(self, network_uuid: str) -> None:
        """Ends the reservation: the network exists again, or nobody needs it. Idempotent."""
        self._deleted.pop(network_uuid, None)

    def of(self, network_uuid: str) -> list[int]:
        """Returns the numbers of a network: that of most of its interfaces first."""
        own = [(count, number.vni) for number, count in self._interfaces.items() if number.network_uuid == network_uuid]
        reserved = [self._deleted[network_uuid]] if network_uuid in self._deleted else []
        return [vni for _, vni in sorted(own, key=lambda each: (-each[0], each[1]))] + reserved

    def of_others(self, network_uuid: str) -> set[int]:
        """Returns the numbers of all other networks."""
        living = {number.vni for number in self._interfaces if number.network_uuid != network_uuid}
        return living.union(vni for uuid, vni in self._deleted.items() if uuid != network_uuid)

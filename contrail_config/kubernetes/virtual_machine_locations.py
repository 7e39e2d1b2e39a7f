"""Locations of virtual machines: the buckets that have their objects, their names, and their interfaces.

Kept for all virtual machines that this process wrote or read. So addresses can still be released after somebody else
deleted the object, and an object whose write got no response is found. A location stays until the virtual machine is
deleted, or, if it could not be written, until its addresses are released.
"""

import sys
from typing import Final

import msgspec

from contrail_config.kubernetes.network_numbers import NetworkNumber, NetworkNumbers
from contrail_config.kubernetes.node_buckets import NODE_BUCKETS
from contrail_config.objects import VirtualMachine

_SHARED: Final[dict[tuple[str, ...], tuple[str, ...]]] = {(bucket,): (bucket,) for bucket in NODE_BUCKETS}
"""One tuple for each bucket: there may be hundreds of thousands of locations."""


class Location(msgspec.Struct, frozen=True, gc=False):
    """Buckets that may have the object, name, node, interfaces and network numbers of the virtual machine.

    More than one bucket while it moves, the new one first. `confirmed`: it was read, or its write got a response.
    """

    buckets: tuple[str, ...]
    name: str
    node: str
    interfaces: tuple[str, ...]
    numbers: tuple[NetworkNumber, ...]
    confirmed: bool


class VirtualMachineLocations:
    """Locations by uuid. Keeps `numbers` up to date."""

    def __init__(self, numbers: NetworkNumbers) -> None:
        self._numbers = numbers
        self._locations: dict[str, Location] = {}
        self._uuids: dict[str, str] = {}  # by name
        self._owner_of: dict[str, str] = {}  # interface to virtual machine

    def get(self, uuid: str) -> Location | None:
        """Returns the location of this virtual machine."""
        return self._locations.get(uuid)

    def holder(self, name: str) -> str | None:
        """Returns the uuid of the virtual machine that has the name, of several the one that was set last."""
        return self._uuids.get(name)

    def owner(self, interface: str) -> str | None:
        """Returns the uuid of the virtual machine that has the interface."""
        return self._owner_of.get(interface)

    def set(self, virtual_machine: VirtualMachine, *buckets: str, confirmed: bool = True) -> None:
        """Sets the location of a virtual machine, in place of an earlier one."""
        buckets = _SHARED.get(buckets, buckets)
        interfaces = tuple(sys.intern(interface.uuid) for interface in virtual_machine.interfaces)  # as in blocks
        numbers = self._numbers.add(virtual_machine.interfaces)
        if (before := self._locations.get(virtual_machine.uuid)) is not None:
            self._numbers.remove(before.numbers)
        self._locations[virtual_machine.uuid] = Location(
            buckets, virtual_machine.name, sys.intern(virtual_machine.node), interfaces, numbers, confirmed
        )
        self._uuids[virtual_machine.name] = virtual_machine.uuid
        for interface in interfaces:
            self._owner_of[interface] = virtual_machine.uuid

    def expect(self, virtual_machine: VirtualMachine, bucket: str) -> None:
        """Adds a bucket to which the virtual machine will be written."""
        location = self._locations.get(virtual_machine.uuid)
        if location is None:
            self.set(virtual_machine, bucket, confirmed=False)
        elif bucket not in location.buckets:
            self._locations[virtual_machine.uuid] = msgspec.structs.replace(
                location, buckets=(bucket, *location.buckets)
            )

    def forget(self, uuid: str) -> None:
        """Removes the location. Idempotent."""
        location = self._locations.pop(uuid, None)
        if location is None:
            return
        self._numbers.remove(location.numbers)
        if self._uuids.get(location.name) == uuid:
            del self._uuids[location.name]
        for interface in location.interfaces:
            self._owner_of.pop(interface, None)

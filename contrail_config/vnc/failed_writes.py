"""Failed writes of virtual machines, which may have left a part of it on the server.

The next write of the same uuid continues. If there is none, as the pod is gone or waits for something, the manager
releases the addresses: what is left is deleted then. Until then it has the pod's name, and keeps networks from being
deleted.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from contrail_config.objects import VirtualMachine


class FailedWrites:
    """Uuids of these virtual machines, each with those of its interfaces."""

    def __init__(self) -> None:
        self._owners: dict[str, set[str]] = {}

    @contextmanager
    def noted(self, machine: VirtualMachine) -> Iterator[None]:
        """Notes the virtual machine if its write inside the context fails, and forgets it if it succeeds."""
        try:
            yield
        except BaseException:  # also if it is cancelled
            owners = self._owners.setdefault(machine.uuid, set())
            owners.update(interface.uuid for interface in machine.interfaces)
            raise
        self.forget(machine.uuid)

    def of_owners(self, owners: Collection[str]) -> set[str]:
        """Returns the uuids of those of which one of these interfaces is a part."""
        return {uuid for uuid, owned in self._owners.items() if not owned.isdisjoint(owners)}

    def forget(self, uuid: str) -> None:
        """Notes that a virtual machine is written, or that nothing is left of it."""
        self._owners.pop(uuid, None)

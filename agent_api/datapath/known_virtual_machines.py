"""Virtual machines of this node, as the datapath knows them."""

from collections.abc import Callable
from typing import Protocol

from agent_api.datapath.vni_users import VniUsers
from contrail_config.objects import VirtualMachine


class KnownVirtualMachines(Protocol):
    """The part of `VirtualMachineIndex` that is used here."""

    synced: bool
    vnis: VniUsers

    def all(self) -> list[VirtualMachine]:
        """Returns all VirtualMachines."""

    def by_uuid(self, uuid: str) -> VirtualMachine | None:
        """Returns the VirtualMachine of this uuid, None if it does not exist."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """Calls back after each change."""

    def recheck(self) -> None:
        """Wakes the requests that wait for a VirtualMachine which is no longer held back."""

"""The store protocol: what every engine (embedded, Kubernetes, a Contrail controller) does for manager and agent.

Identity is the uuid, never the name. Every operation is atomic: after a kill -9 it happened or it did not. Address
uniqueness is kept by the engine (constraint, compare-and-swap), not by trust in a lock, so two managers alive at the
same moment never give one address twice.

Not promised: an order between the changes of different objects that were written by different processes.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

import msgspec

from contrail_config.objects import Event, InterfaceAddress, VirtualMachine, VirtualNetwork

DEFAULT_HOLD = 10.0
"""Seconds for which a freed address is not given again."""

UNPLUGGED_HOLD = 300.0
"""The same for a machine that was deleted while its ports were still plugged."""

T_co = TypeVar("T_co", VirtualMachine, VirtualNetwork, covariant=True)


class AddressRequest(msgspec.Struct, frozen=True):
    """Asks for one address. `owner` is the VMI's uuid, `family` 4 or 6, `wish` an address without prefix or None."""

    network_uuid: str
    family: int
    owner: str
    address: str | None = None


class ChangeType(StrEnum):
    """As in Kubernetes watches. SYNCED, without an object, ends the list that a watcher starts with."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"


class Change(msgspec.Struct, Generic[T_co], frozen=True):
    """One change that a watcher sees; a DELETED one carries the object's last state."""

    type: ChangeType
    object: T_co | None


class WatchStart(StrEnum):
    """Where a watcher begins: with everything that is there (then SYNCED), or with what changes from now on."""

    LIST = "list"
    NOW = "now"


class Store(Protocol):
    """Keeps networks, machines and addresses. All methods raise `StoreError` and its kinds, nothing else."""

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network of this uuid and returns it as kept (with its vni).

        Raises ConflictError if another network has the fq_name.
        """

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network; one that is not there is no error. Raises InUseError while an address is given."""

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, by name."""

    async def put_virtual_machine(self, machine: VirtualMachine) -> None:
        """Creates or replaces the machine of this uuid, as one piece.

        Raises ConflictError if another machine has the name (a recreated pod: delete the old one first).
        """

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a machine and frees its interfaces' addresses, in one piece; one that is not there is no error.

        `hold`: seconds for which its addresses are not given again.
        """

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The machine of this uuid. Raises NotFoundError."""

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All machines, of one node if it is given, by name."""

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Gives an address for each request, in the same order: all or none.

        An owner that has an address in the family and network keeps it (a repeated call answers the same), unless it
        now wishes another one. The prefix length, gateway and dns are those of subnet and network. Raises
        NotFoundError (network), AddressUnavailableError (wish), ExhaustedError.
        """

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Frees all addresses of these owners; of those freed already it shortens the hold, never lengthens it."""

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """The same for what these owners had: what they have now they keep."""

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses now; one without a machine was left by a kill."""

    async def held_owners(self) -> dict[str, str]:
        """Interfaces that have no address any more, but had one that is still held back, with their networks' uuids."""

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of machines (of one node if it is given), once and in order, until the context is left.

        The iteration ends when the store is closed. It raises StoreUnavailableError when it cannot go on without
        leaving changes out, for one because its reader fell too far behind: a new watch then starts with a list.
        """

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """The same for networks."""

    async def close(self) -> None:
        """Finishes what was begun, ends all watchers, and gives the store free. Repeatable."""


class EventLog(Protocol):
    """Where events are recorded: the embedded store keeps them itself, in a cluster they are Kubernetes events."""

    async def record_event(self, event: Event) -> None:
        """Adds an event; one that equals an earlier one in object, type, reason and message adds to its count."""

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Those events, oldest `last_seen` first."""

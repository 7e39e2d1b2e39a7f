"""Store protocol: the interface of manager and agent to any engine (embedded, Kubernetes, a Contrail controller).

The uuid identifies an object, never its name. Every operation is atomic, also under kill -9. The engine enforces
address uniqueness by itself (constraint, compare-and-swap) and trusts no lock, so two managers that run at the same
time never allocate one address twice.

Not guaranteed: an order between changes of different objects written by different processes.
"""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from contrail_config.objects import Event, InterfaceAddress, NetworkSlice, VirtualMachine, VirtualNetwork

DEFAULT_HOLD = 10.0
"""Seconds for which a released address is not allocated again (its hold)."""

UNPLUGGED_HOLD = 300.0
"""Hold in seconds for the addresses of a virtual machine that was deleted while its ports were still plugged."""

T_co = TypeVar("T_co", VirtualMachine, VirtualNetwork, NetworkSlice, covariant=True)


class AddressRequest(msgspec.Struct, frozen=True):
    """Request for one address. `owner` is the VMI's uuid, `family` 4 or 6; `address` requests a specific address.

    `address` has no prefix length. None takes the next free address. `node` is the one on which the owner runs: an
    engine that routes by block prefers addresses that belong to it.

    `reserved_in` is the uuid of a network with the same subnets in which the owner gets the address too, so that no
    interface there has it: the next free address is then one of that network.
    """

    network_uuid: str
    family: int
    owner: str
    address: str | None = None
    node: str | None = None
    reserved_in: str | None = None


class HeldAddress(NamedTuple):
    """Network of a held address, and the node where it may still be in use; None in a store of one node."""

    network_uuid: str
    node: str | None


class StoredAddress(NamedTuple):
    """An address that is allocated to `owner`, or that it had until it was released, if `held_until` is set.

    Owners are uuids of interfaces; an engine that routes by block has nodes among them. Seconds since the epoch.
    """

    address: str
    owner: str
    held_until: float | None = None


class AddressPage(NamedTuple):
    """Addresses, and after which one the page that follows begins; None if this is the last."""

    addresses: list[StoredAddress]
    following: str | None


class ChangeType(StrEnum):
    """Types of Kubernetes watch events, and SYNCED, which has no object and ends the initial list of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"


class Change(msgspec.Struct, Generic[T_co], frozen=True):
    """One change in a watch; DELETED carries the object's last state."""

    type: ChangeType
    object: T_co | None


class WatchStart(StrEnum):
    """Start of a watch: LIST begins with all existing objects and SYNCED, NOW with the next change."""

    LIST = "list"
    NOW = "now"


class Store(Protocol):
    """Store of networks, virtual machines and addresses. All methods raise only `StoreError` and its subclasses."""

    async def put_network(self, network: VirtualNetwork) -> VirtualNetwork:
        """Creates or replaces the network of this uuid and returns it as stored, with its vni.

        Raises ConflictError if another network has the fq_name.
        """

    async def delete_network(self, uuid: str) -> None:
        """Deletes a network. Idempotent. Raises InUseError while an address is allocated."""

    async def networks(self) -> list[VirtualNetwork]:
        """All networks, sorted by name."""

    async def put_virtual_machine(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the virtual machine of this uuid, pending or not, atomically.

        Raises ConflictError, with its holder, if another one has the name (a recreated pod: delete the old one first).
        A pending one that has the name never prevents the write.
        """

    async def delete_virtual_machine(self, uuid: str, *, hold: float = DEFAULT_HOLD) -> None:
        """Deletes a virtual machine and releases its interfaces' addresses, atomically. Idempotent.

        `hold`: seconds for which its addresses are not allocated again.
        """

    async def put_pending(self, virtual_machine: VirtualMachine) -> None:
        """Creates or replaces the pending virtual machine of this uuid, at low priority.

        No effect if one with interfaces has the uuid: the pod is not pending any more.
        """

    async def delete_pending(self, virtual_machine: VirtualMachine) -> None:
        """Deletes the virtual machine of this uuid if it is pending, at low priority. Idempotent."""

    async def virtual_machine(self, uuid: str) -> VirtualMachine:
        """The virtual machine of this uuid. Raises NotFoundError, also if it is pending."""

    async def virtual_machines(self, *, node: str | None = None) -> list[VirtualMachine]:
        """All virtual machines (of one node) that are not pending, sorted by name."""

    async def recover_virtual_machines(self) -> Iterable[VirtualMachine]:
        """All, also pending ones, after finishing what a killed writer left unfinished: for a writer that starts.

        They may be iterated any number of times, and need not all be in memory decoded.
        """

    async def allocate(self, requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
        """Allocates one address for each request and returns them in the same order: all or none.

        Idempotent: an owner that has an address in the family and network keeps it, unless it now requests another one.
        Prefix length, gateway and dns are those of the subnet and the network. Raises NotFoundError (network),
        AddressUnavailableError (requested address), ExhaustedError.
        """

    async def release(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Releases all addresses of these owners. Shortens the holds of those released before, never extends them."""

    async def shorten_holds(self, owners: Sequence[str], *, hold: float = DEFAULT_HOLD) -> None:
        """Shortens the holds of addresses that these owners released. Allocated addresses stay."""

    async def address_owners(self) -> set[str]:
        """Uuids of all interfaces that have addresses. One without a virtual machine is a leftover of a kill."""

    async def held_owners(self) -> dict[str, HeldAddress]:
        """By interface uuid, for interfaces that have no address but still a held one, if its node is known."""

    async def address_page(self, network_uuid: str, *, limit: int, after: str | None = None) -> AddressPage:
        """At most `limit` allocated and held addresses of a network, whether or not it exists, after one of them.

        In an order of the engine's choice, which does not change: an address that stays is in exactly one page.
        """

    async def recover_addresses(self, virtual_machines: Iterable[VirtualMachine]) -> list[str]:
        """Allocates the addresses of these virtual machines to their interfaces where the record of that is lost.

        They are iterated more than once. Other addresses of which the record may be lost are held. Returns conflicts,
        for people: addresses of two virtual machines. To be called before anything else is allocated.
        """

    async def has_addresses(self, network_uuid: str) -> bool:
        """Whether an address of the network is allocated, whether or not the network exists."""

    def watch_virtual_machines(
        self, *, start: WatchStart = WatchStart.LIST, node: str | None = None, include_pending: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualMachine]]]:
        """Every change of virtual machines (of one node), once and in order, until the context is left.

        Without `include_pending`, a virtual machine that is pending does not exist for the watch.

        The iteration ends when the store is closed. It raises StoreUnavailableError when it would have to skip changes,
        for example because its reader fell too far behind: start a new watch then, which begins with a list.
        """

    def watch_networks(
        self, *, start: WatchStart = WatchStart.LIST
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[VirtualNetwork]]]:
        """Like `watch_virtual_machines`, for networks."""

    async def close(self) -> None:
        """Finishes pending operations, ends all watches and releases the store. Idempotent."""


class SliceStore(Protocol):
    """What an agent reads of networks that span nodes."""

    def slice_group(self, network_uuid: str) -> str:
        """The group of a network: slices of networks of one group are watched together.

        There are few groups, so a node has few watches, however many networks it has.
        """

    def watch_slices(
        self, networks: Collection[str]
    ) -> AbstractAsyncContextManager[AsyncIterator[Change[NetworkSlice]]]:
        """Every change of the slices of these networks, by uuid and of one group, until the context is left.

        Begins with all slices that exist, and SYNCED, as `Store.watch_virtual_machines`.
        """

    def problems(self) -> list[str]:
        """Why what its watches have delivered may be out of date; empty if it is not."""


class EventPage(NamedTuple):
    """Events, and the token of the page that follows; None after the last."""

    events: list[Event]
    following: str | None


class EventLog(Protocol):
    """Event log. The embedded store keeps the events itself; in a cluster they are Kubernetes events."""

    async def record_event(self, event: Event) -> Event:
        """Adds an event, or increases the count of the one with the same object, type, reason and message.

        Returns the event as it is then.
        """

    async def events(
        self, *, kind: str | None = None, namespace: str | None = None, name: str | None = None
    ) -> list[Event]:
        """Matching events, oldest `last_seen` first."""

    async def event_page(self, *, namespace: str | None, limit: int, token: str | None) -> EventPage:
        """About `limit` events, from the beginning or from a token on, in an order of the engine's choice.

        Raises StoreError, also if the token is malformed or has expired.
        """

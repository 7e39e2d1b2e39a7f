"""Operations on addresses, applied to a change set of the allocation cache: allocate, release, shorten holds, list."""

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from contrail_config.addressing.notation import family_of, parse_address
from contrail_config.addressing.pool import ALLOCATED, HELD
from contrail_config.errors import AddressUnavailableError, ExhaustedError
from contrail_config.kubernetes.block_pool import BlockPool
from contrail_config.kubernetes.blocks import AddressEntry, AddressKey, PoolKey
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.objects import InterfaceAddress, VirtualNetwork
from contrail_config.store import DEFAULT_HOLD, AddressPage, AddressRequest, HeldAddress

FindNetwork = Callable[[str], VirtualNetwork]
"""Returns the network of a uuid. Raises NotFoundError."""

_NODE_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""DNS subdomain, as the API server requires it of nodes."""

T_co = TypeVar("T_co", covariant=True)


class AddressOperation(Protocol[T_co]):
    """An operation that the committer plans and writes. It may be applied several times, after write conflicts."""

    def apply(self, changes: ChangeSet) -> T_co:
        """Edits the change set and returns the result for the caller. Raises StoreError to reject the operation."""


class Allocate(msgspec.Struct, frozen=True):
    """Allocates one address for each request, in the same order.

    Raises NotFoundError, AddressUnavailableError or ExhaustedError.
    """

    requests: Sequence[AddressRequest]
    find_network: FindNetwork

    def apply(self, changes: ChangeSet) -> list[InterfaceAddress]:
        """As `AddressOperation`."""
        return [self._allocate(changes, request) for request in self.requests]

    def _allocate(self, changes: ChangeSet, request: AddressRequest) -> InterfaceAddress:
        network = self.find_network(request.network_uuid)
        if request.reserved_in is None:
            return _allocate(changes, request, network)
        try:
            reserved = _allocate(changes, _reservation(request), self.find_network(request.reserved_in))
        except (AddressUnavailableError, ExhaustedError) as error:
            raise error.of_network(network.name) from error
        return _allocate(changes, msgspec.structs.replace(request, address=reserved.address), network)


class Release(msgspec.Struct, frozen=True):
    """Releases the owners' addresses, except those listed for each, and shortens the holds of those released before.

    The result is the uuids of the networks. `node`: where the addresses may still be in use, None if it is unknown.
    """

    owners: Mapping[str, Collection[str]]
    hold: float
    node: str | None = None

    def apply(self, changes: ChangeSet) -> set[str]:
        """As `AddressOperation`."""
        keys = [
            key for owner, kept in self.owners.items() for key in changes.cache.keys_of(owner) if key.text not in kept
        ]
        node = self.node if self.node is not None and _NODE_NAME.fullmatch(self.node) else None
        for key in keys:
            changes.release(key, hold=self.hold, node=node)
        return {key.pool.network_uuid for key in keys}


class ShortenHolds(msgspec.Struct, frozen=True):
    """Shortens the holds of addresses that the owners released. Allocated addresses stay."""

    owners: Collection[str]
    hold: float

    def apply(self, changes: ChangeSet) -> None:
        """As `AddressOperation`."""
        for owner in self.owners:
            for key in changes.cache.keys_of(owner):
                if not changes.cache.is_allocated(key):
                    changes.release(key, hold=self.hold)


class ListOwners(msgspec.Struct, frozen=True):
    """Lists the owners of allocated addresses, after all earlier operations."""

    def apply(self, changes: ChangeSet) -> set[str]:
        """As `AddressOperation`."""
        return changes.cache.owners()


class ListHeldOwners(msgspec.Struct, frozen=True):
    """Maps owners that have only held addresses left to network and node, after all earlier operations."""

    def apply(self, changes: ChangeSet) -> dict[str, HeldAddress]:
        """As `AddressOperation`."""
        return changes.cache.held_owners(changes.now)


class ListAddresses(msgspec.Struct, frozen=True):
    """Lists allocated and held addresses of a network after one of them, after all earlier operations."""

    network_uuid: str
    limit: int
    after: str

    def apply(self, changes: ChangeSet) -> AddressPage:
        """As `AddressOperation`."""
        addresses = changes.cache.addresses(self.network_uuid, changes.now, after=self.after)
        found = list(itertools.islice(addresses, self.limit + 1))
        if len(found) <= self.limit:
            return AddressPage(found, None)
        return AddressPage(found[: self.limit], found[self.limit - 1].address)


def node_of_blocks(network: VirtualNetwork, node: str | None) -> str | None:
    """Returns the node whose blocks are preferred; None in a network that is not routed by block.

    None also for what is no name of a node: blocks store it in lines of text.
    """
    return node if network.has_node_blocks and node is not None and _NODE_NAME.fullmatch(node) else None


def _allocate(changes: ChangeSet, request: AddressRequest, network: VirtualNetwork) -> InterfaceAddress:
    pool = changes.cache.block_pool(network, request.family)
    owned = changes.cache.allocated(request.owner, PoolKey(network.uuid, request.family))
    if request.address is not None:
        key = _requested(changes, request, request.address, network, owned)
    else:
        key = owned[0] if owned else _next_free(changes, request, network)
    if key not in owned:
        changes.allocate(key, request.owner, node=node_of_blocks(network, request.node))
    if request.address is not None:
        for other in owned:  # the owner moves to the requested address
            if other != key:
                changes.release(other, hold=DEFAULT_HOLD)
    # Required even if nothing changed: another request of this round may have edited the entry, not yet written.
    changes.require(key)
    return _interface_address(key, network, pool)


def _reservation(request: AddressRequest) -> AddressRequest:
    return msgspec.structs.replace(request, network_uuid=request.reserved_in, reserved_in=None)


def _next_free(changes: ChangeSet, request: AddressRequest, network: VirtualNetwork) -> AddressKey:
    pool = PoolKey(network.uuid, request.family)
    address = changes.cache.block_pool(network, request.family).next_free(node_of_blocks(network, request.node))
    if address is None:
        expiry = changes.cache.next_expiry(pool)
        wait = None if expiry is None else max(0.0, expiry - changes.now)
        raise ExhaustedError(network.name, request.family, next_free_in=wait)
    return AddressKey(pool, address)


def _requested(
    changes: ChangeSet, request: AddressRequest, requested: str, network: VirtualNetwork, owned: Sequence[AddressKey]
) -> AddressKey:
    try:
        key = AddressKey(PoolKey(network.uuid, request.family), parse_address(requested, family=request.family))
    except ValueError as error:
        problem = f"it is not an IPv{request.family} address"
        raise AddressUnavailableError(requested, network.name, problem) from error
    pool, entry = changes.cache.block_pool(network, request.family), changes.cache.entry(key)
    reason = None if key in owned else pool.unusable_reason(key.address) or _entry_reason(entry)
    if reason is not None:
        hold = None if entry is None else entry.hold
        wait = None if hold is None else max(0.0, hold.until - changes.now)
        raise AddressUnavailableError(requested, network.name, reason, free_in=wait)
    return key


def _entry_reason(entry: AddressEntry | None) -> str | None:
    if entry is None:
        return None
    return ALLOCATED if entry.hold is None else HELD


def _interface_address(key: AddressKey, network: VirtualNetwork, pool: BlockPool) -> InterfaceAddress:
    bounds = pool.bounds(key.address)
    return InterfaceAddress(
        address=key.text,
        prefix_length=bounds.prefix_length,
        gateway=bounds.gateway,
        dns=tuple(server for server in network.dns if family_of(server) == key.pool.family),
    )

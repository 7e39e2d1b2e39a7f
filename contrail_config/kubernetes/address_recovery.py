"""Address recovery: allocates what virtual machines have, where the address blocks do not say so.

Address blocks and virtual machines are separate objects, and somebody may delete or replace a block. Virtual machines
show which addresses are in use, and those are allocated again, also where a block of unknown origin gives them to an
owner without a virtual machine. Nothing shows which addresses were held for former owners, so the other addresses of
such a block are held for as long as any hold lasts.

Not covered: a block that has only held addresses, deleted while no manager runs.
"""

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import parse_address
from contrail_config.errors import NotFoundError
from contrail_config.kubernetes.address_operations import FindNetwork, node_of_blocks
from contrail_config.kubernetes.allocation_cache import AllocationCache
from contrail_config.kubernetes.blocks import AddressKey, BlockKey, PoolKey
from contrail_config.kubernetes.change_set import ChangeSet
from contrail_config.objects import VirtualMachine
from contrail_config.store import UNPLUGGED_HOLD

_FORMER_OWNERS: Final = uuid.UUID("e0d6f1c2-5a0b-4c55-9d0e-6b8f0f5b1c37")
"""Namespace of the uuids that stand for the unknown former owners of the addresses in a block."""

_SLICE: Final = 2048
"""Virtual machines that are compared without a pause for other tasks."""

_BATCH: Final = 32
"""Blocks in one operation, which is planned without a pause."""


class InUse(NamedTuple):
    """An address, the interface that has it according to its virtual machine, and the node of both."""

    key: AddressKey
    owner: str
    node: str


class Recover(msgspec.Struct, frozen=True):
    """Allocates these addresses to their owners, whatever their blocks say, and holds the others of their blocks."""

    in_use: Sequence[InUse]
    find_network: FindNetwork

    def apply(self, changes: ChangeSet) -> None:
        """As `AddressOperation`."""
        for key, owner, node in self.in_use:
            entry = changes.cache.entry(key)
            if entry is None or entry.owner != owner or entry.hold is not None:
                changes.allocate(key, owner, node=self._home(key, node))
        for block in dict.fromkeys(each.key.block for each in self.in_use):
            self._hold_others(changes, block)

    def _home(self, key: AddressKey, node: str) -> str | None:
        with contextlib.suppress(NotFoundError):
            return node_of_blocks(self.find_network(key.pool.network_uuid), node)
        return None

    def _hold_others(self, changes: ChangeSet, block: BlockKey) -> None:
        try:
            pool = changes.cache.block_pool(self.find_network(block.pool.network_uuid), block.pool.family)
        except NotFoundError:
            return  # nothing can be allocated in a network that does not exist
        former_owner = str(uuid.uuid5(_FORMER_OWNERS, block.name))
        for key in block.addresses:
            if pool.unusable_reason(key.address) is None and changes.cache.entry(key) is None:
                changes.hold(key, former_owner, seconds=UNPLUGGED_HOLD)


async def unrecorded_addresses(
    cache: AllocationCache, virtual_machines: Iterable[VirtualMachine]
) -> tuple[list[InUse], list[str]]:
    """Returns the addresses that are not allocated to their interfaces in the cache, and conflicts as text.

    Of two virtual machines with one address, the one to which it is allocated keeps it, else the first. They are
    iterated twice.
    """
    found: dict[AddressKey, InUse] = {}
    conflicts = []
    for number, virtual_machine in enumerate(virtual_machines):
        for each in _unrecorded(cache, virtual_machine):
            other = found.setdefault(each.key, each)
            if other is not each:
                conflicts.append(_conflict(each, other.owner))
        if number % _SLICE == 0:
            await asyncio.sleep(0)
    rightful = set[tuple[AddressKey, str]]()
    for virtual_machine in virtual_machines if found else ():
        rightful.update((each.key, each.owner) for each in _addresses(virtual_machine) if each.key in found)
    for key, each in list(found.items()):
        entry = cache.entry(key)
        if entry is not None and entry.hold is None and (key, entry.owner) in rightful:
            conflicts.append(_conflict(each, entry.owner))
            del found[key]
    return list(found.values()), conflicts


def recovery_operations(missing: Iterable[InUse], find_network: FindNetwork) -> list[Recover]:
    """Returns the operations that allocate these addresses; each changes a bounded number of blocks."""
    by_block = itertools.groupby(sorted(missing), key=lambda each: each.key.block)
    blocks = [list(group) for _, group in by_block]
    return [
        Recover([each for block in blocks[first : first + _BATCH] for each in block], find_network)
        for first in range(0, len(blocks), _BATCH)
    ]


def _unrecorded(cache: AllocationCache, virtual_machine: VirtualMachine) -> Iterable[InUse]:
    for each in _addresses(virtual_machine):
        entry = cache.entry(each.key)
        if cache.is_sealed(each.key.block):
            continue  # nothing is allocated there; recovered once the invalid block is deleted
        if entry is None or entry.owner != each.owner or entry.hold is not None:
            yield each


def _addresses(virtual_machine: VirtualMachine) -> Iterable[InUse]:
    for interface in virtual_machine.interfaces:
        for address in interface.addresses:
            pool = PoolKey(interface.network_uuid, address.family)
            # what is no address needs no protection: an agent cannot configure it
            with contextlib.suppress(ValueError):
                key = AddressKey(pool, parse_address(address.address, family=address.family))
                yield InUse(key, interface.uuid, virtual_machine.node)


def _conflict(each: InUse, owner: str) -> str:
    network, address = each.key.pool.network_uuid, each.key.text
    return f"network {network}: address {address} of interface {each.owner} belongs to interface {owner}"

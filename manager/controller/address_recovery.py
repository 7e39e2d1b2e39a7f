"""Address recovery: repairs at start where allocated addresses and virtual machines in the store disagree.

Addresses and virtual machines may be separate objects, and either kind may be deleted while the other stays; a manager
may also be killed between allocating addresses and writing the virtual machine.

- An interface without an allocation gets its addresses again before any pod is reconciled: a running pod uses them.
- An allocation without a virtual machine is orphaned and can be released.

Not noticed: an interface that lost the address of one family and still has that of the other.
"""

import asyncio
import logging
from collections.abc import Collection, Sequence

from contrail_config.errors import AddressUnavailableError, NotFoundError
from contrail_config.objects import VirtualMachine
from contrail_config.store import AddressRequest, Store
from manager.controller.pod_record import PodRecord

log = logging.getLogger(__name__)

_CONCURRENCY = 1024
"""Virtual machines: at least as many as share an address block, so that its updates are batched."""


async def recover_addresses(store: Store, vms: Sequence[VirtualMachine]) -> None:
    """Reallocates addresses of these virtual machines that nobody has, where their networks still exist.

    Raises StoreError.
    """
    owners = await store.address_owners()
    deprived = [vm for vm in vms if _missing(vm, owners)]
    if deprived:
        log.warning("addresses of %d virtual machines are not allocated: reallocating them", len(deprived))
    for first in range(0, len(deprived), _CONCURRENCY):
        await asyncio.gather(*(_reallocate(store, vm, owners) for vm in deprived[first : first + _CONCURRENCY]))


async def orphaned_interfaces(store: Store, records: Collection[PodRecord]) -> list[str]:
    """Returns uuids of interfaces that have addresses, but neither a virtual machine nor a pod that will get one.

    Call it while no pod is reconciled. After an orderly shutdown there are none: the number of owners alone proves it,
    so all virtual machines, which may be many, are read only if the numbers differ.
    """
    owners = await store.address_owners()
    if len(owners) == sum(record.interface_count for record in records):
        return []
    vms = {vm.uuid: vm for vm in await store.virtual_machines()}
    for vm in vms.values():
        owners.difference_update(interface.uuid for interface in vm.interfaces)
    for record in records:
        owners.difference_update(record.unconfirmed.owners if record.unconfirmed else ())
        if record.assignment is not None and record.assignment.uuid not in vms:  # will be recreated
            owners.difference_update(record.assignment.interfaces)
    return list(owners)


async def _reallocate(store: Store, vm: VirtualMachine, owners: set[str]) -> None:
    try:
        await store.allocate(_missing(vm, owners))
    except (AddressUnavailableError, NotFoundError) as error:
        log.warning("virtual machine %s: addresses not reallocated: %s", vm.name, error)


def _missing(vm: VirtualMachine, owners: set[str]) -> list[AddressRequest]:
    return [
        AddressRequest(interface.network_uuid, address.family, interface.uuid, address=address.address)
        for interface in vm.interfaces
        if interface.uuid not in owners
        for address in interface.addresses
    ]

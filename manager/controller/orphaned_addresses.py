"""Orphaned addresses: allocated, but without a virtual machine.

Addresses and virtual machines may be separate objects, and either kind may be deleted while the other stays; a manager
may also be killed between allocating addresses and writing the virtual machine.
"""

from collections.abc import Collection

from contrail_config.store import Store
from manager.controller.pod_record import PodRecord


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

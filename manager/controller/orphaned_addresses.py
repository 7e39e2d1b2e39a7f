"""Addresses of nobody: left where a manager was killed between allocating them and writing the machine."""

from collections.abc import Collection

from contrail_config.store import Store
from manager.controller.pod_record import PodRecord


async def orphaned_interfaces(store: Store, records: Collection[PodRecord]) -> list[str]:
    """Uuids of interfaces that have addresses, but neither a machine nor a pod that is about to have one.

    To be asked while no pod is worked on. After an orderly end there are none, which shows in their number alone; only
    else are all machines read, which may be many.
    """
    owners = await store.address_owners()
    if len(owners) == sum(len(record.held.networks) for record in records if record.held is not None):
        return []
    machines = {machine.uuid: machine for machine in await store.virtual_machines()}
    for machine in machines.values():
        owners.difference_update(interface.uuid for interface in machine.interfaces)
    for record in records:
        owners.difference_update(record.unfinished.owners if record.unfinished else ())
        if record.held is not None and record.held.uuid not in machines:  # it is to be made again
            owners.difference_update(record.held.interfaces)
    return list(owners)

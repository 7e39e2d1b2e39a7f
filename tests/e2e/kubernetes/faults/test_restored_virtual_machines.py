"""Virtual machines of former pods, restored from a backup, are deleted beside those of the pods of their names."""

import asyncio

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINES, VirtualMachineObject
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad

PODS = [f"web-{number}" for number in range(10)]
DEADLINE = 60.0


async def stored(client: KubeClient) -> dict[str, VirtualMachineObject]:
    return {item.spec.uuid: item for item in await client.list_all(VIRTUAL_MACHINES)}


async def test_former_virtual_machines_restored_while_no_manager_runs_are_deleted(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(PODS)
    await pod_load.wait_until_reconciled()
    backup = await stored(system)
    await pod_load.recreate(PODS)
    await pod_load.wait_until_reconciled()
    current = await stored(system)
    assert not backup.keys() & current.keys()
    managers.kill_all()
    for item in backup.values():
        metadata = msgspec.structs.replace(item.metadata, uid="", resource_version="")
        restored = msgspec.structs.replace(item, metadata=metadata)
        await system.create(VIRTUAL_MACHINES, restored, namespace=item.metadata.namespace)
    await asyncio.to_thread(managers.launch)
    async with asyncio.timeout(DEADLINE):
        while (await stored(system)).keys() != current.keys():  # noqa: ASYNC110 - another process is polled
            await asyncio.sleep(0.05)
    await pod_load.wait_until_reconciled()

"""Address blocks deleted by hand: no address is given twice, and every pod gets its addresses."""

import asyncio

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeExistsError
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS, AddressBlockObject
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad

BEFORE = [f"before-{number}" for number in range(80)]
AFTER = [f"after-{number}" for number in range(80)]


async def served(managers: Managers, pod_load: PodLoad) -> None:
    """Starts a manager and waits until the first pods are served."""
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(BEFORE)
    await pod_load.wait_until_reconciled()


async def blocks_in_use(client: KubeClient) -> list[AddressBlockObject]:
    return [block for block in await client.list_all(ADDRESS_BLOCKS) if block.status and block.status.given]


async def delete_blocks(client: KubeClient) -> None:
    """As `kubectl delete addressblocks --all`."""
    found = await client.list_all(ADDRESS_BLOCKS)
    await asyncio.gather(*(client.delete(ADDRESS_BLOCKS, block.metadata.name) for block in found))


async def replace(client: KubeClient, block: AddressBlockObject) -> bool:
    """Deletes a block and creates it as it was then; returns whether no manager was quicker to create it."""
    await client.delete(ADDRESS_BLOCKS, block.metadata.name)
    metadata = msgspec.structs.replace(block.metadata, uid="", resource_version="")
    try:
        await client.create(ADDRESS_BLOCKS, msgspec.structs.replace(block, metadata=metadata))
    except KubeExistsError:
        return False
    return True


async def test_addresses_stay_unique_when_a_block_is_deleted_while_pods_are_created(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await served(managers, pod_load)
    writes = asyncio.create_task(pod_load.add(AFTER))
    await system.delete(ADDRESS_BLOCKS, (await blocks_in_use(system))[0].metadata.name)
    await writes
    await pod_load.wait_until_reconciled(managers.supervise)
    assert "deleted by somebody else while its addresses are in use" in managers.last_log_lines[0]


async def test_addresses_stay_unique_when_all_blocks_are_deleted_while_pods_are_created(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await served(managers, pod_load)
    writes = asyncio.create_task(pod_load.add(AFTER))
    await delete_blocks(system)
    await writes
    await pod_load.wait_until_reconciled(managers.supervise)


async def test_a_standby_recovers_deleted_blocks(system: KubeClient, managers: Managers, pod_load: PodLoad) -> None:
    await served(managers, pod_load)
    standby = await asyncio.to_thread(managers.launch)
    await asyncio.to_thread(standby.wait_until_ready)
    writes = asyncio.create_task(pod_load.add(AFTER))
    await delete_blocks(system)
    await writes
    await pod_load.wait_until_reconciled()
    await asyncio.to_thread(standby.wait_until_it_leads)


async def test_addresses_stay_unique_when_a_block_is_replaced_by_an_older_one(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    """As `kubectl replace --force` with a backup."""
    await served(managers, pod_load)
    backup = await blocks_in_use(system)
    await pod_load.add(AFTER[:40])
    await pod_load.wait_until_reconciled()
    writes = asyncio.create_task(pod_load.add(AFTER[40:]))
    assert any([await replace(system, block) for block in backup])  # the manager may put back the first ones
    await writes
    await pod_load.wait_until_reconciled(managers.supervise)


async def test_blocks_deleted_while_no_manager_runs_are_recovered(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await served(managers, pod_load)
    managers.kill_all()
    await delete_blocks(system)
    await pod_load.add(AFTER)
    await asyncio.to_thread(managers.lead)
    await pod_load.wait_until_reconciled()

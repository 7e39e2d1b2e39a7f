"""Address blocks made invalid by hand: pods get addresses of other blocks, and deleting the blocks recovers them."""

import asyncio

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad


async def test_pods_are_served_beside_invalid_blocks_and_after_these_are_deleted(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(f"before-{number}" for number in range(20))
    await pod_load.wait_until_reconciled()
    invalid = await system.list_all(ADDRESS_BLOCKS)
    for block in invalid:
        spec = msgspec.structs.replace(block.spec, addresses="nonsense\n")
        await system.replace(ADDRESS_BLOCKS, block.metadata.name, msgspec.structs.replace(block, spec=spec))
    await pod_load.add(f"beside-{number}" for number in range(20))
    await pod_load.served(40)
    managers.kill_all()
    await asyncio.to_thread(managers.launch)
    await pod_load.add(f"restarted-{number}" for number in range(20))
    await pod_load.served(60)
    for block in invalid:
        await system.delete(ADDRESS_BLOCKS, block.metadata.name)
    await pod_load.wait_until_reconciled(managers.supervise)

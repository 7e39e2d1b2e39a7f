"""Virtual networks deleted by hand are put back with their uuid and vni, without a restart of the manager."""

import asyncio

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import VIRTUAL_NETWORKS
from contrail_config.objects import VirtualNetwork
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad

DEADLINE = 60.0


async def networks(client: KubeClient) -> dict[str, VirtualNetwork]:
    """The confirmed networks by uuid."""
    return {item.spec.uuid: item.spec for item in await client.list_all(VIRTUAL_NETWORKS) if item.is_confirmed}


async def test_all_networks_are_put_back_while_pods_are_created(
    system: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(f"before-{number}" for number in range(40))
    await pod_load.wait_until_reconciled()
    before = await networks(system)
    writes = asyncio.create_task(pod_load.add(f"after-{number}" for number in range(40)))
    await asyncio.gather(*(system.delete(VIRTUAL_NETWORKS, uuid) for uuid in before))
    async with asyncio.timeout(DEADLINE):
        while await networks(system) != before:  # noqa: ASYNC110 - another process is polled
            await asyncio.sleep(0.05)
    await writes
    await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == []

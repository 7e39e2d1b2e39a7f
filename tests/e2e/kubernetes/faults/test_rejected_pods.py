"""Pods that their node rejected release their addresses although nobody deletes them."""

import asyncio

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS
from manager.kubernetes.wire import PODS
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad
from tests.support.address_blocks import block_entries

DEADLINE = 60.0


async def held_owners(client: KubeClient) -> set[str]:
    """Owners of held addresses."""
    blocks = msgspec.to_builtins(await client.list_all(ADDRESS_BLOCKS))
    return {one.owner for one in block_entries(blocks) if one.held is not None}


async def test_a_rejected_pod_releases_its_addresses(
    client: KubeClient, managers: Managers, pod_load: PodLoad, namespace: str
) -> None:
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(["stays", "rejected"])
    await pod_load.wait_until_reconciled()
    vms = await pod_load.virtual_machines()
    # as kubelet's rejectPod
    status = {"status": {"phase": "Failed", "reason": "NodeAffinity", "message": "Pod was rejected: no match"}}
    await client.patch(PODS, "rejected", status, namespace=namespace, subresource="status")
    released = {interface.uuid for interface in vms["rejected"].interfaces}
    async with asyncio.timeout(DEADLINE):
        while not released <= await held_owners(client):  # noqa: ASYNC110 - another process is polled
            await asyncio.sleep(0.05)
    assert "rejected" not in await pod_load.virtual_machines()
    assert (await pod_load.virtual_machines())["stays"] == vms["stays"]

"""API server failures: it is killed or loses CRDs or all objects; the manager or its successor recovers."""

import asyncio
from pathlib import Path

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS
from contrail_config.kube.errors import KubeNotFoundError
from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad

DEADLINE = 60.0


async def restart(cluster: Cluster) -> None:
    """Kills the server and starts it again with the same etcd."""
    cluster.server.kill()
    cluster.server.launch()
    await asyncio.to_thread(cluster.server.wait_until_ready)


async def delete_definition(client: KubeClient, name: str) -> None:
    """Deletes a CRD and waits until it is gone or recreated."""
    before = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    async with asyncio.timeout(DEADLINE):
        while await uid_of(client, name) == before.metadata.uid:  # noqa: ASYNC110 - other processes are polled
            await asyncio.sleep(0.05)


async def uid_of(client: KubeClient, definition: str) -> str:
    try:
        return (await client.get(CUSTOM_RESOURCE_DEFINITIONS, definition)).metadata.uid
    except KubeNotFoundError:
        return ""


async def test_nothing_is_lost_when_the_server_is_killed_under_load(
    cluster: Cluster, managers: Managers, pod_load: PodLoad
) -> None:
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    names = [f"pod-{number}" for number in range(200)]
    writes = asyncio.create_task(pod_load.add(names))
    await pod_load.served(40)
    await restart(cluster)
    await writes
    gone = asyncio.create_task(pod_load.remove(names[:40]))
    await pod_load.wait_until_reconciled(managers.supervise)
    await gone
    await pod_load.wait_until_reconciled(managers.supervise)


async def test_a_deleted_nad_crd_is_recreated(client: KubeClient, managers: Managers, pod_load: PodLoad) -> None:
    """Pods keep their interfaces; new pods wait for the networks."""
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(["before"])
    await pod_load.wait_until_reconciled()
    await delete_definition(client, "network-attachment-definitions.k8s.cni.cncf.io")
    await pod_load.add(["after"])
    assert await pod_load.look() == 1
    await pod_load.add_networks()
    await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == []


async def test_virtual_machines_are_restored_unchanged_after_their_crd_was_deleted(
    client: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    """The manager exits, since its caches are stale; the next one finds the addresses allocated."""
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(f"pod-{number}" for number in range(10))
    await pod_load.wait_until_reconciled()
    await delete_definition(client, "virtualmachines.opencontrail.org")
    await pod_load.wait_until_reconciled(managers.supervise)
    assert "virtualmachines.opencontrail.org: deleted, and all its objects with it" in managers.last_log_lines[0]


async def test_the_next_manager_starts_from_scratch_after_etcd_was_emptied(
    cluster: Cluster, managers: Managers, tmp_path: Path
) -> None:
    """The manifests are applied again, since the service account is gone, too."""
    manager = await asyncio.to_thread(managers.lead)
    await asyncio.to_thread(cluster.server.etcd.empty)
    await restart(cluster)
    assert await asyncio.to_thread(manager.ended) == 1
    assert "Traceback" not in manager.log.read_text()
    again = Managers(Cluster(cluster.server), tmp_path / "again")
    await asyncio.to_thread(again.lead)
    assert len(cluster.definitions()) == 6
    again.kill_all()

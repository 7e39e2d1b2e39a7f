"""Virtual machines deleted while their pods live are restored unchanged, without a restart of the manager."""

import asyncio

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import crds
from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad
from tests.e2e.kubernetes.faults.test_apiserver_failures import delete_definition, restart

NAMES = [f"pod-{number}" for number in range(100)]


async def served(managers: Managers, pod_load: PodLoad) -> None:
    """Starts a manager and waits until all pods are served."""
    await asyncio.to_thread(managers.lead)
    await pod_load.add_networks()
    await pod_load.add(NAMES)
    await pod_load.wait_until_reconciled()


async def test_deleted_virtual_machines_are_restored_unchanged(managers: Managers, pod_load: PodLoad) -> None:
    await served(managers, pod_load)
    for _ in range(2):
        await pod_load.delete_virtual_machines()
        await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == []


async def test_they_are_restored_while_pods_are_recreated(managers: Managers, pod_load: PodLoad) -> None:
    await served(managers, pod_load)
    writes = asyncio.create_task(pod_load.recreate(NAMES[:50]))
    await pod_load.delete_virtual_machines()
    await writes
    await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == []


async def test_they_are_restored_after_a_server_restart(
    cluster: Cluster, managers: Managers, pod_load: PodLoad
) -> None:
    """The restarted server has no history, and the manager reconnects."""
    await served(managers, pod_load)
    await restart(cluster)
    await pod_load.delete_virtual_machines()
    await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == []


async def test_pods_keep_their_addresses_when_the_address_block_crd_is_deleted(
    client: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    """Also while further pods request addresses."""
    await served(managers, pod_load)
    writes = asyncio.create_task(pod_load.add(f"more-{number}" for number in range(50)))
    await delete_definition(client, "addressblocks.opencontrail.org")
    await writes
    await pod_load.wait_until_reconciled(managers.supervise)


async def test_addresses_are_unique_after_all_crds_were_deleted(
    client: KubeClient, managers: Managers, pod_load: PodLoad
) -> None:
    """No record of the earlier addresses is left, so pods may get others."""
    await served(managers, pod_load)
    pod_load.forget()
    await asyncio.gather(*(delete_definition(client, name) for name in crds()))
    await pod_load.wait_until_reconciled(managers.supervise)

"""The API server is killed, loses kinds, or all that it kept: the manager goes on, or ends and the next one does."""

import asyncio
from pathlib import Path

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS
from contrail_config.kube.errors import KubeNotFoundError
from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.crowd import Crowd
from tests.e2e.kubernetes.faults.managers import Managers

DEADLINE = 60.0


async def restart(cluster: Cluster) -> None:
    """Kills the server, as a power cut would, and starts it again with the same etcd."""
    cluster.server.kill()
    cluster.server.launch()
    await asyncio.to_thread(cluster.server.wait_until_ready)


async def lost(client: KubeClient, name: str) -> None:
    """Deletes a definition and returns when it is not there any more, or is there again."""
    before = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
    async with asyncio.timeout(DEADLINE):
        while await uid_of(client, name) == before.metadata.uid:  # noqa: ASYNC110 - other processes tell no event
            await asyncio.sleep(0.05)


async def uid_of(client: KubeClient, definition: str) -> str:
    try:
        return (await client.get(CUSTOM_RESOURCE_DEFINITIONS, definition)).metadata.uid
    except KubeNotFoundError:
        return ""


async def test_a_server_that_is_killed_under_load_costs_nothing(
    cluster: Cluster, managers: Managers, crowd: Crowd
) -> None:
    await asyncio.to_thread(managers.lead)
    await crowd.add_networks()
    names = [f"pod-{number}" for number in range(200)]
    load = asyncio.create_task(crowd.add(names))
    await crowd.served(40)
    await restart(cluster)
    await load
    gone = asyncio.create_task(crowd.remove(names[:40]))
    await crowd.comes_to_rest(managers.supervise)
    await gone
    await crowd.comes_to_rest(managers.supervise)


async def test_definitions_of_networks_that_were_deleted_are_made_again(
    client: KubeClient, managers: Managers, crowd: Crowd
) -> None:
    """Pods keep what they have; new ones wait for the networks."""
    await asyncio.to_thread(managers.lead)
    await crowd.add_networks()
    await crowd.add(["before"])
    await crowd.comes_to_rest()
    await lost(client, "network-attachment-definitions.k8s.cni.cncf.io")
    await crowd.add(["after"])
    assert await crowd.look() == 1
    await crowd.add_networks()
    await crowd.comes_to_rest()
    assert managers.last_words == []


async def test_machines_whose_definition_was_deleted_are_made_again_as_they_were(
    client: KubeClient, managers: Managers, crowd: Crowd
) -> None:
    """The manager ends, for what it knows is of before; the next one finds the addresses given."""
    await asyncio.to_thread(managers.lead)
    await crowd.add_networks()
    await crowd.add(f"pod-{number}" for number in range(10))
    await crowd.comes_to_rest()
    await lost(client, "virtualmachines.opencontrail.org")
    await crowd.comes_to_rest(managers.supervise)
    assert "virtualmachines.opencontrail.org: deleted, and all its objects with it" in managers.last_words[0]


async def test_after_etcd_was_emptied_the_next_manager_begins_anew(
    cluster: Cluster, managers: Managers, tmp_path: Path
) -> None:
    """It is deployed anew, for its account went too."""
    manager = await asyncio.to_thread(managers.lead)
    await asyncio.to_thread(cluster.server.etcd.empty)
    await restart(cluster)
    assert await asyncio.to_thread(manager.ended) == 1
    assert "Traceback" not in manager.log.read_text()
    again = Managers(Cluster(cluster.server), tmp_path / "again")
    await asyncio.to_thread(again.lead)
    assert len(cluster.definitions()) == 5
    again.kill_all()

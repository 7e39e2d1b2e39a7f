"""Machines are deleted by hand while their pods live: they come back as they were, and no manager has to begin anew."""

import asyncio

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import crds
from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.crowd import Crowd
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.test_the_server_fails import lost, restart

NAMES = [f"pod-{number}" for number in range(100)]


async def served(managers: Managers, crowd: Crowd) -> None:
    """A manager leads, and all pods are served by it."""
    await asyncio.to_thread(managers.lead)
    await crowd.add_networks()
    await crowd.add(NAMES)
    await crowd.comes_to_rest()


async def test_they_are_put_back_as_they_were(managers: Managers, crowd: Crowd) -> None:
    await served(managers, crowd)
    for _ in range(2):
        await crowd.delete_machines()
        await crowd.comes_to_rest()
    assert managers.last_words == []


async def test_so_they_are_if_pods_come_and_go_meanwhile(managers: Managers, crowd: Crowd) -> None:
    await served(managers, crowd)
    load = asyncio.create_task(crowd.recreate(NAMES[:50]))
    await crowd.delete_machines()
    await load
    await crowd.comes_to_rest()
    assert managers.last_words == []


async def test_so_they_are_if_the_server_was_started_again(cluster: Cluster, managers: Managers, crowd: Crowd) -> None:
    """It does not know what happened before, and the manager comes back to it when it can."""
    await served(managers, crowd)
    await restart(cluster)
    await crowd.delete_machines()
    await crowd.comes_to_rest()
    assert managers.last_words == []


async def test_addresses_whose_kind_was_deleted_stay_with_their_pods(
    client: KubeClient, managers: Managers, crowd: Crowd
) -> None:
    """Also while more pods come, which want some too."""
    await served(managers, crowd)
    load = asyncio.create_task(crowd.add(f"more-{number}" for number in range(50)))
    await lost(client, "addressblocks.opencontrail.org")
    await load
    await crowd.comes_to_rest(managers.supervise)


async def test_what_every_pod_is_given_after_all_kinds_were_deleted_is_given_once(
    client: KubeClient, managers: Managers, crowd: Crowd
) -> None:
    """Nothing tells what they had before."""
    await served(managers, crowd)
    crowd.forget()
    await asyncio.gather(*(lost(client, name) for name in crds()))
    await crowd.comes_to_rest(managers.supervise)

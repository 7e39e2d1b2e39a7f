"""Failover: a manager is killed during its work, and the next one completes it without changing running pods."""

import asyncio
import random
import time

import pytest

from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.e2e.kubernetes.faults.managers import Managers
from tests.e2e.kubernetes.faults.pod_load import PodLoad
from tests.support.cluster_processes import ManagerProcess

LEASE = 15.0
RETRY = 2.0
PODS = [f"pod-{number}" for number in range(500)]
LIVES = 5


@pytest.fixture(scope="module", autouse=True)
def _the_crds_exist(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Has a manager lead once, since some tests begin without one."""
    managers = Managers(cluster, tmp_path_factory.mktemp("managers"))
    managers.lead()
    managers.kill_all()


async def test_a_standby_takes_over_while_500_pods_are_created(managers: Managers, pod_load: PodLoad) -> None:
    first = await asyncio.to_thread(managers.lead)
    second = await asyncio.to_thread(managers.launch)
    await pod_load.add_networks()
    coming = asyncio.create_task(pod_load.add(PODS))
    await pod_load.served(150)
    await asyncio.to_thread(first.kill)
    takes_over = asyncio.create_task(seconds_until_it_leads(second))
    await pod_load.look()
    await coming
    await pod_load.remove(PODS[:60] + PODS[-20:])
    await pod_load.recreate(PODS[60:80] + PODS[-60:-40])
    assert LEASE - 2 * RETRY < await takes_over < 2 * LEASE
    await pod_load.wait_until_reconciled()


async def seconds_until_it_leads(manager: ManagerProcess) -> float:
    begun = time.monotonic()
    await asyncio.to_thread(manager.wait_until, lambda: manager.leads, what="leading")
    return time.monotonic() - begun


async def test_two_simultaneous_leaders_allocate_no_address_twice(managers: Managers, pod_load: PodLoad) -> None:
    """The lease is deleted; the first leader notices only after the second one has taken it, and exits."""
    first = await asyncio.to_thread(managers.lead)
    second = await asyncio.to_thread(managers.launch)
    await asyncio.to_thread(second.wait_until_ready)
    await pod_load.add_networks()
    names = [f"pod-{number}" for number in range(200)]
    coming = asyncio.create_task(pod_load.add(names))
    await pod_load.served(30)
    leader = managers.holder()
    while managers.holder() in (leader, ""):  # the same manager may take the lease again
        managers.drop_lease()
        await asyncio.sleep(2 * RETRY)
    assert await asyncio.to_thread(first.ended) == 1
    await coming
    await asyncio.to_thread(second.wait_until_it_leads)
    await pod_load.remove(names[:20])
    await pod_load.wait_until_reconciled()
    assert managers.last_log_lines == ["contrail-manager: lease contrail-manager: lost"]


async def test_the_next_manager_continues_after_kills_at_random_moments(managers: Managers, pod_load: PodLoad) -> None:
    randomness = random.Random(1)
    await pod_load.add_networks()
    manager = await asyncio.to_thread(managers.lead)
    for life in range(LIVES):
        names = [f"pod-{life}-{number}" for number in range(40)]
        churn = asyncio.create_task(pod_load.add(names))
        await asyncio.sleep(randomness.uniform(0.0, 0.5))  # kill at a random moment
        await asyncio.to_thread(manager.kill)
        await churn
        await pod_load.look()
        await pod_load.remove(names[:10])
        manager = await asyncio.to_thread(managers.succeed, manager)
        await asyncio.to_thread(manager.wait_until_it_leads)
    await pod_load.wait_until_reconciled()


async def test_pods_recreated_while_no_manager_runs_are_new_pods(managers: Managers, pod_load: PodLoad) -> None:
    names = [f"set-{number}" for number in range(20)]
    await pod_load.add_networks()
    await pod_load.add(names)
    manager = await asyncio.to_thread(managers.lead)
    await pod_load.wait_until_reconciled()
    before = await pod_load.virtual_machines()
    await asyncio.to_thread(manager.kill)
    await pod_load.recreate(names[:10])
    await asyncio.to_thread(managers.succeed, manager)
    await pod_load.wait_until_reconciled()
    after = await pod_load.virtual_machines()
    assert all(after[name].uuid != before[name].uuid for name in names[:10])
    assert all(after[name] == before[name] for name in names[10:])

"""A manager that ended at any moment is followed by one that finds the same state and continues."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contrail_config.objects import VirtualMachine
from contrail_service.errors import ConfigurationError
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration, PodNetworkSettings
from manager.source import Applied, Listed
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import DEADLINE, RunningManager, running_manager
from tests.support.stores_with_events import StoreWithEvents

NET_A = make_nad("net-a")
NET_A_NETWORK = "k8s-net-a-pod-network"
NET_B = make_nad("net-b", cidr="10.2.0.0/16")
PODS = [make_pod(f"web-{number}", networks="net-a,net-b") for number in range(5)]


@pytest.fixture
async def vms(store: StoreWithEvents) -> list[VirtualMachine]:
    """Five assigned pods; their manager has ended."""
    async with running_manager(store) as before:
        await before.send_list(NET_A, NET_B, *PODS)
        return await store.virtual_machines()


async def test_existing_pods_keep_exactly_their_assignment(vms: list[VirtualMachine], running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, *reversed(PODS))
    assert await running.store.virtual_machines() == vms
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]
    assert (await running.view(PODS[0])).state is PodState.READY


async def test_pods_deleted_in_the_meantime_are_released(vms: list[VirtualMachine], running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, *PODS[:2])
    assert await running.store.virtual_machines() == vms[:2]
    assert await running.allocated_count() == 2 * 3


async def test_an_incomplete_list_releases_nothing(vms: list[VirtualMachine], running: RunningManager) -> None:
    await running.send_list(NET_A, complete=False)
    assert await running.store.virtual_machines() == vms
    assert len(await running.store.networks()) == 3
    assert running.manager.readiness() == []
    await running.send_list(NET_A, PODS[0])
    assert await running.store.virtual_machines() == vms[:1]
    assert [network.nad for network in await running.store.networks()] == ["blue/net-a", "blue/net-b", None]


async def test_pods_of_a_renamed_node_are_moved_to_it_unchanged(
    vms: list[VirtualMachine], running: RunningManager
) -> None:
    """In a folder of manifests, a pod that names no node runs on the host, whose name may change."""
    await running.send_list(NET_A, NET_B, *(msgspec.structs.replace(pod, node="renamed") for pod in PODS))
    assert await running.store.virtual_machines() == [msgspec.structs.replace(each, node="renamed") for each in vms]


@pytest.mark.usefixtures("vms")
@pytest.mark.parametrize("network", ["nonsense", reference("k8s-blue", "typo"), reference("k8s-blue", NET_A_NETWORK)])
async def test_a_later_selection_by_the_namespace_is_not_reported(running: RunningManager, network: str) -> None:
    await running.send_list(make_namespace(network=network), NET_A, NET_B, *PODS)
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]


async def test_a_pod_with_a_virtual_machine_of_another_cluster_name_gets_no_other(
    vms: list[VirtualMachine], store: StoreWithEvents
) -> None:
    running = RunningManager(store, ManagerConfiguration(cluster_name="other"))
    running.scripted.send(Applied(PODS[0]))
    with pytest.raises(
        ConfigurationError, match=r"cannot be 'other': the .* of pod blue/web-0 belongs to cluster 'k8s'"
    ):
        await asyncio.wait_for(running.manager.run(), DEADLINE)
    assert await store.virtual_machines() == vms


@pytest.mark.usefixtures("vms")
async def test_a_pod_recreated_in_the_meantime_gets_a_list_of_its_own(running: RunningManager) -> None:
    again = make_pod("web-0", networks="net-a", generation=2)
    await running.send_list(NET_A, NET_B, again, *PODS[1:])
    assert len((await running.vm(again)).interfaces) == 2
    assert len(await running.store.virtual_machines()) == 5
    assert await running.allocated_count() == 2 + 4 * 3


@pytest.mark.usefixtures("vms")
async def test_a_pod_that_ended_in_the_meantime_is_released(running: RunningManager) -> None:
    await running.send_list(NET_A, NET_B, make_pod("web-0", gone=True), *PODS[1:])
    assert len(await running.store.virtual_machines()) == 4


async def test_a_change_of_networks_in_the_meantime_is_reported(
    vms: list[VirtualMachine], running: RunningManager
) -> None:
    changed = make_pod("web-0", networks="net-b")
    await running.send_list(NET_A, NET_B, changed, *PODS[1:])
    assert await running.store.virtual_machines() == vms
    assert await running.reasons(changed) == ["InterfacesAssigned", "NetworksChanged"]


@pytest.mark.usefixtures("vms")
async def test_networks_whose_nad_was_deleted_in_the_meantime_go_with_their_last_pod(running: RunningManager) -> None:
    await running.send_list(NET_A, *PODS[:2])
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]
    late = make_pod("late", networks="net-b")
    await running.apply(late)
    assert await running.reasons(late) == ["NetworkNotFound"]
    await running.remove(*PODS[:2])
    await running.wait_until_network_deleted("k8s-net-b-pod-network")


async def test_one_uid_under_another_name_is_another_pod(vms: list[VirtualMachine], running: RunningManager) -> None:
    renamed = make_pod("renamed", uid=PODS[0].uid)
    await running.send_list(NET_A, NET_B, renamed, *PODS[1:])
    vm = await running.wait_for(lambda vm: vm.pod == "renamed")
    assert vm.uuid == vms[0].uuid
    await running.idle()
    assert len(await running.store.virtual_machines()) == 5


async def test_virtual_machines_of_another_cluster_are_left_alone(store: StoreWithEvents, start: Start) -> None:
    async with running_manager(store, ManagerConfiguration(cluster_name="other")) as other:
        await other.send_list(make_pod("theirs"))
    running = await start()
    await running.send_list(make_pod("ours"))
    assert [vm.name for vm in await store.virtual_machines()] == ["k8s__blue__ours", "other__blue__theirs"]
    assert await running.allocated_count() == 2


async def test_a_requested_mac_stays_claimed_after_a_restart(
    vms: list[VirtualMachine], running: RunningManager
) -> None:
    """A requested MAC stays claimed although the manager that assigned it has ended."""
    await running.send_list(NET_A, NET_B, *PODS)
    asked = make_pod("asks", networks='[{"name": "net-a", "mac": "02:00:00:00:00:07"}]')
    again = make_pod("again", networks='[{"name": "net-a", "mac": "02:00:00:00:00:07"}]')
    await running.apply(asked)
    async with running_manager(running.store) as after:
        await after.send_list(NET_A, NET_B, *PODS, asked, again)
        assert (await after.view(again)).reason == "MacAddressTaken"
    assert vms


class TestPodNetwork:
    """The pod network follows the configuration, as far as existing pods allow."""

    async def test_a_family_can_be_added_and_other_settings_changed(
        self, vms: list[VirtualMachine], start: Start
    ) -> None:
        settings = PodNetworkSettings(subnets=("10.32.0.0/12", "fd00:32::/64"), mtu=1400)
        running = await start(ManagerConfiguration(pod_network=settings))
        new = make_pod("new")
        await running.send_list(NET_A, NET_B, *PODS, new)
        assert [address.family for address in (await running.vm(new)).interfaces[0].addresses] == [4, 6]
        assert (await running.vm(PODS[0])) == vms[0]

    @pytest.mark.usefixtures("vms")
    @pytest.mark.parametrize(
        ("settings", "key"),
        [
            (PodNetworkSettings(subnets=("10.40.0.0/16",)), "subnets"),
            (PodNetworkSettings(subnets=("10.32.0.0/16",)), "subnets"),
            (PodNetworkSettings(gateway=("10.32.0.99",)), "gateway"),
        ],
    )
    async def test_a_subnet_in_use_cannot_be_changed(
        self, store: StoreWithEvents, settings: PodNetworkSettings, key: str
    ) -> None:
        running = RunningManager(store, ManagerConfiguration(pod_network=settings))
        with pytest.raises(ConfigurationError, match=rf"pod-network\.{key}: .* from 10\.32\.0\.0/12 \(gateway"):
            await asyncio.wait_for(running.manager.run(), DEADLINE)

    async def test_a_pod_network_without_pods_can_be_changed(self, store: StoreWithEvents, start: Start) -> None:
        async with running_manager(store) as before:
            await before.send_list()
        running = await start(ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("10.40.0.0/16",))))
        pod = make_pod()
        await running.send_list(pod)
        assert (await running.vm(pod)).interfaces[0].addresses[0].address == "10.40.0.2"


class Interrupted:
    """A store that stops answering after so many calls, as if the process were killed there."""

    def __init__(self, store: StoreWithEvents, *, after: int) -> None:
        self._store = store
        self._left = after
        self.reached = asyncio.Event()

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if self._left <= 0:
            self.reached.set()
            await asyncio.Event().wait()
        self._left -= 1
        return await getattr(self._store, method)(*args, **kwargs)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("watch_"):
            found: Callable[..., Any] = getattr(self._store, method)
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._call(method, *args, **kwargs)

        return call


@pytest.mark.parametrize("calls", range(1, 24, 2))
async def test_a_manager_killed_between_any_two_store_calls_is_followed_by_a_correct_one(
    store: StoreWithEvents, calls: int, start: Start
) -> None:
    interrupted: Any = Interrupted(store, after=calls)
    before = RunningManager(interrupted, ManagerConfiguration())
    task = asyncio.create_task(before.manager.run())
    before.scripted.send(Applied(NET_A), Applied(NET_B), *(Applied(pod) for pod in PODS), Listed())
    async with asyncio.timeout(DEADLINE):
        await interrupted.reached.wait()
    running = await start()
    await running.send_list(NET_A, NET_B, *PODS[1:])
    vms = await store.virtual_machines()
    assert [vm.uuid for vm in vms] == [pod.uid for pod in PODS[1:]]
    assert all(len(vm.interfaces) == 3 for vm in vms)
    assert await running.allocated_count() == 4 * 3
    _abandon(task)


def _abandon(task: asyncio.Task[None]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())

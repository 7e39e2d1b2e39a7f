"""A manager that ended at any moment is followed by one that finds the same and goes on."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from contrail_service.errors import ConfigurationError
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration, PodNetworkSettings
from manager.source import Applied, Listed
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import DEADLINE, RunningManager, running_manager

NET_A = make_nad("net-a")
NET_A_NETWORK = "k8s-net-a-pod-network"
NET_B = make_nad("net-b", cidr="10.2.0.0/16")
PODS = [make_pod(f"web-{number}", networks="net-a,net-b") for number in range(5)]


@pytest.fixture
async def machines(store: SqliteStore) -> list[VirtualMachine]:
    """Five pods, written by a manager that has ended since."""
    async with running_manager(store) as before:
        await before.tell_all(NET_A, NET_B, *PODS)
        return await store.virtual_machines()


async def test_pods_that_are_still_there_keep_exactly_what_they_have(
    machines: list[VirtualMachine], running: RunningManager
) -> None:
    await running.tell_all(NET_A, NET_B, *reversed(PODS))
    assert await running.store.virtual_machines() == machines
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]
    assert (await running.view(PODS[0])).state is PodState.READY


async def test_pods_that_went_meanwhile_are_freed(machines: list[VirtualMachine], running: RunningManager) -> None:
    await running.tell_all(NET_A, NET_B, *PODS[:2])
    assert await running.store.virtual_machines() == machines[:2]
    assert await running.given() == 2 * 3


async def test_a_list_that_is_not_whole_frees_nothing(machines: list[VirtualMachine], running: RunningManager) -> None:
    await running.tell_all(NET_A, complete=False)
    assert await running.store.virtual_machines() == machines
    assert len(await running.store.networks()) == 3
    assert running.manager.readiness() == []
    await running.tell_all(NET_A, PODS[0])
    assert await running.store.virtual_machines() == machines[:1]
    assert [network.nad for network in await running.store.networks()] == ["blue/net-a", "blue/net-b", None]


async def test_pods_of_a_node_that_was_renamed_are_served_on_it_as_they_were(
    machines: list[VirtualMachine], running: RunningManager
) -> None:
    """In a folder of manifests: the node of a pod that names none is this machine, whatever that is called."""
    await running.tell_all(NET_A, NET_B, *(msgspec.structs.replace(pod, node="renamed") for pod in PODS))
    assert await running.store.virtual_machines() == [
        msgspec.structs.replace(each, node="renamed") for each in machines
    ]


@pytest.mark.usefixtures("machines")
@pytest.mark.parametrize("network", ["nonsense", reference("k8s-blue", "typo"), reference("k8s-blue", NET_A_NETWORK)])
async def test_pods_are_not_told_of_what_their_namespace_chose_since(running: RunningManager, network: str) -> None:
    await running.tell_all(make_namespace(network=network), NET_A, NET_B, *PODS)
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]


async def test_a_pod_that_has_a_machine_of_another_cluster_name_is_not_given_another(
    machines: list[VirtualMachine], store: SqliteStore
) -> None:
    running = RunningManager(store, ManagerConfiguration(cluster_name="other"))
    running.played.send(Applied(PODS[0]))
    with pytest.raises(
        ConfigurationError, match=r"cannot be 'other': the .* of pod blue/web-0 belongs to cluster 'k8s'"
    ):
        await asyncio.wait_for(running.manager.run(), DEADLINE)
    assert await store.virtual_machines() == machines


@pytest.mark.usefixtures("machines")
async def test_a_pod_that_was_made_anew_meanwhile_gets_a_list_of_its_own(running: RunningManager) -> None:
    again = make_pod("web-0", networks="net-a", generation=2)
    await running.tell_all(NET_A, NET_B, again, *PODS[1:])
    assert len((await running.machine(again)).interfaces) == 2
    assert len(await running.store.virtual_machines()) == 5
    assert await running.given() == 2 + 4 * 3


@pytest.mark.usefixtures("machines")
async def test_a_pod_that_ended_meanwhile_is_freed(running: RunningManager) -> None:
    await running.tell_all(NET_A, NET_B, make_pod("web-0", gone=True), *PODS[1:])
    assert len(await running.store.virtual_machines()) == 4


async def test_a_change_of_its_networks_meanwhile_is_told(
    machines: list[VirtualMachine], running: RunningManager
) -> None:
    changed = make_pod("web-0", networks="net-b")
    await running.tell_all(NET_A, NET_B, changed, *PODS[1:])
    assert await running.store.virtual_machines() == machines
    assert await running.reasons(changed) == ["InterfacesAssigned", "NetworksChanged"]


@pytest.mark.usefixtures("machines")
async def test_networks_whose_definition_went_meanwhile_go_with_their_last_pod(running: RunningManager) -> None:
    await running.tell_all(NET_A, *PODS[:2])
    assert await running.reasons(PODS[0]) == ["InterfacesAssigned"]
    late = make_pod("late", networks="net-b")
    await running.apply(late)
    assert await running.reasons(late) == ["NetworkNotFound"]
    await running.remove(*PODS[:2])
    await running.network_gone("k8s-net-b-pod-network")


async def test_one_uid_under_another_name_is_another_pod(
    machines: list[VirtualMachine], running: RunningManager
) -> None:
    renamed = make_pod("renamed", uid=PODS[0].uid)
    await running.tell_all(NET_A, NET_B, renamed, *PODS[1:])
    machine = await running.machine_when(lambda machine: machine.pod == "renamed")
    assert machine.uuid == machines[0].uuid
    await running.idle()
    assert len(await running.store.virtual_machines()) == 5


async def test_machines_of_another_cluster_are_somebody_elses(store: SqliteStore, start: Start) -> None:
    async with running_manager(store, ManagerConfiguration(cluster_name="other")) as other:
        await other.tell_all(make_pod("theirs"))
    running = await start()
    await running.tell_all(make_pod("ours"))
    assert [machine.name for machine in await store.virtual_machines()] == ["k8s__blue__ours", "other__blue__theirs"]
    assert await running.given() == 2


async def test_what_was_asked_of_two_networks_before_is_not_asked_again(
    machines: list[VirtualMachine], running: RunningManager
) -> None:
    """A MAC that was asked for is taken, though the manager that gave it is gone."""
    await running.tell_all(NET_A, NET_B, *PODS)
    asked = make_pod("asks", networks='[{"name": "net-a", "mac": "02:00:00:00:00:07"}]')
    again = make_pod("again", networks='[{"name": "net-a", "mac": "02:00:00:00:00:07"}]')
    await running.apply(asked)
    async with running_manager(running.store) as after:
        await after.tell_all(NET_A, NET_B, *PODS, asked, again)
        assert (await after.view(again)).reason == "MacAddressTaken"
    assert machines


class TestPodNetwork:
    """The pod network is what the configuration says, as far as pods allow."""

    async def test_a_family_can_be_added_and_what_is_no_subnet_changed(
        self, machines: list[VirtualMachine], start: Start
    ) -> None:
        settings = PodNetworkSettings(subnets=("10.32.0.0/12", "fd00:32::/64"), mtu=1400)
        running = await start(ManagerConfiguration(pod_network=settings))
        new = make_pod("new")
        await running.tell_all(NET_A, NET_B, *PODS, new)
        assert [address.family for address in (await running.machine(new)).interfaces[0].addresses] == [4, 6]
        assert (await running.machine(PODS[0])) == machines[0]

    @pytest.mark.usefixtures("machines")
    @pytest.mark.parametrize(
        ("settings", "key"),
        [
            (PodNetworkSettings(subnets=("10.40.0.0/16",)), "subnets"),
            (PodNetworkSettings(subnets=("10.32.0.0/16",)), "subnets"),
            (PodNetworkSettings(gateway=("10.32.0.99",)), "gateway"),
        ],
    )
    async def test_a_subnet_that_pods_are_in_cannot_be_changed(
        self, store: SqliteStore, settings: PodNetworkSettings, key: str
    ) -> None:
        running = RunningManager(store, ManagerConfiguration(pod_network=settings))
        with pytest.raises(ConfigurationError, match=rf"pod-network\.{key}: .* from 10\.32\.0\.0/12 \(gateway"):
            await asyncio.wait_for(running.manager.run(), DEADLINE)

    async def test_one_without_pods_can(self, store: SqliteStore, start: Start) -> None:
        async with running_manager(store) as before:
            await before.tell_all()
        running = await start(ManagerConfiguration(pod_network=PodNetworkSettings(subnets=("10.40.0.0/16",))))
        pod = make_pod()
        await running.tell_all(pod)
        assert (await running.machine(pod)).interfaces[0].addresses[0].address == "10.40.0.2"


class Interrupted:
    """A store that works until a certain call, and answers no more from then on: the process was killed there."""

    def __init__(self, store: SqliteStore, *, after: int) -> None:
        self._store = store
        self._left = after
        self.struck = asyncio.Event()

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if self._left <= 0:
            self.struck.set()
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
async def test_it_may_end_between_any_two_calls_of_the_store(store: SqliteStore, calls: int, start: Start) -> None:
    interrupted: Any = Interrupted(store, after=calls)
    before = RunningManager(interrupted, ManagerConfiguration())
    task = asyncio.create_task(before.manager.run())
    before.played.send(Applied(NET_A), Applied(NET_B), *(Applied(pod) for pod in PODS), Listed())
    async with asyncio.timeout(DEADLINE):
        await interrupted.struck.wait()
    running = await start()
    await running.tell_all(NET_A, NET_B, *PODS[1:])
    machines = await store.virtual_machines()
    assert [machine.uuid for machine in machines] == [pod.uid for pod in PODS[1:]]
    assert all(len(machine.interfaces) == 3 for machine in machines)
    assert await running.given() == 4 * 3
    _abandon(task)


def _abandon(task: asyncio.Task[None]) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())

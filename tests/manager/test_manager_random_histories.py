"""Random events in random order, with restarts in between: the store converges to the expected state.

That state does not depend on the history: it follows from the existing pods and NADs, except for networks whose NAD was
changed while pods used them, which stay as they were.
"""

import asyncio
import random

import pytest

from manager.api.types import PodState
from manager.configuration import ManagerConfiguration
from manager.mapping.errors import MappingError
from manager.mapping.interface_resolution import resolve_interfaces
from manager.source import Applied, Gone, Nad, Pod
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference
from tests.support.running_manager import RunningManager, running_manager
from tests.support.stores_with_events import StoreWithEvents

CONFIGURATION = ManagerConfiguration()
LIVES = 4  # managers, one after the other on the same store
STEPS = 25  # in each life
LOOP_STEPS = (0, 1, 5, 20, 60, 150)
"""Event loop iterations after a step: too few for an answer of the store, just enough, or enough for all work."""


class World:
    """The existing objects as a source knows them: each name once; a replaced uid is sent as gone."""

    def __init__(self, chance: random.Random) -> None:
        self.objects: dict[tuple[type, str], Pod | Nad] = {}
        self._chance = chance

    def step(self) -> list[Applied | Gone]:
        """Creates, changes or deletes an object."""
        pick = self._chance.choice
        if pick([True, True, True, False]):
            one: Pod | Nad = self._pod()
        else:
            one = pick([self._nad, self._alias])()
        return self.apply(one) if pick([True, True, False]) else self._remove(one)

    def apply(self, one: Pod | Nad) -> list[Applied | Gone]:
        """Creates or replaces the object."""
        before = self.objects.get((type(one), one.name))
        self.objects[type(one), one.name] = one
        return [*([Gone(before)] if before is not None and before.uid != one.uid else []), Applied(one)]

    def in_order(self) -> list[Pod | Nad]:
        """All objects, networks first."""
        return sorted(self.objects.values(), key=lambda one: isinstance(one, Pod))

    def _remove(self, one: Pod | Nad) -> list[Applied | Gone]:
        before = self.objects.pop((type(one), one.name), None)
        return [] if before is None else [Gone(before)]

    def _pod(self) -> Pod:
        pick = self._chance.choice
        return make_pod(
            pick(["p0", "p1", "p2"]),
            networks=pick(["", "net-a", "net-a,net-a", "net-a,net-b", "alias", ","]),
            generation=pick([1, 2]),
            gone=pick([False, False, False, True]),
        )

    def _nad(self) -> Nad:
        pick = self._chance.choice
        return make_nad(
            pick(["net-a", "net-b"]),
            cidr=pick(["10.1.0.0/16", "10.1.0.0/16", "10.2.0.0/16,fd00:2::/64", "nonsense"]),
            config=pick([None, None, None, FOREIGN_CONFIG]) or make_nad().config,
            generation=pick([1, 2]),
        )

    def _alias(self) -> Nad:
        to = self._chance.choice(["k8s-net-a-pod-network", "k8s-net-b-pod-network"])
        return make_nad("alias", cidr=None, network=reference("k8s-blue", to), generation=self._chance.choice([1, 2]))


@pytest.mark.parametrize("seed", range(30))
async def test_any_history_converges_to_the_expected_state(store: StoreWithEvents, seed: int) -> None:
    chance = random.Random(seed)
    world = World(chance)
    for _ in range(LIVES):
        async with running_manager(store, CONFIGURATION) as running:
            await _live(running, world, chance)
            await _quiet(running)
            await _check(running, world)
    async with running_manager(store, CONFIGURATION) as running:
        await running.send_list(*world.in_order())
        await _check_that_all_can_go(running, world)


async def _live(running: RunningManager, world: World, chance: random.Random) -> None:
    await running.send_list(*world.in_order())
    for _ in range(STEPS):
        running.scripted.send(*world.step())
        for _ in range(chance.choice(LOOP_STEPS)):
            await asyncio.sleep(0)


async def _quiet(running: RunningManager) -> None:
    """Returns when the manager has nothing left to do: twice, since its watches may deliver more work."""
    for _ in range(2):
        await running.send()
        await running.catch_up()


async def _check(running: RunningManager, world: World) -> None:
    pods = [one for one in world.objects.values() if isinstance(one, Pod) and not one.gone]
    await _check_pods(running, pods)
    await _check_addresses(running)
    await _check_networks(running, [one.key for one in world.objects.values() if isinstance(one, Nad)])


async def _check_that_all_can_go(running: RunningManager, world: World) -> None:
    await running.remove(*reversed(world.in_order()))
    await _quiet(running)
    assert await running.store.virtual_machines() == []
    assert await running.allocated_count() == 0
    assert [network.nad for network in await running.store.networks()] == [None]
    manager = running.manager
    assert (manager.pods.records, manager.nads.records, manager.nads.ended) == ({}, {}, set())
    assert len(manager.nads.dependents) == 0


async def _check_pods(running: RunningManager, pods: list[Pod]) -> None:
    vms = {vm.uuid for vm in await running.store.virtual_machines()}
    assert {f"{pod.namespace}/{pod.name}" for pod in pods} == running.manager.pods.records.keys()
    assert vms <= {pod.uid for pod in pods}
    for pod in pods:
        view = await running.view(pod)
        assert view.uid == pod.uid
        assert (view.state is PodState.READY) == (pod.uid in vms)
        assert view.state is PodState.READY or _is_unsatisfiable(running, pod), view


def _is_unsatisfiable(running: RunningManager, pod: Pod) -> bool:
    try:
        resolve_interfaces(pod, catalogue=running.manager.catalogue, configuration=CONFIGURATION)
    except MappingError:
        return True
    return False


async def _check_addresses(running: RunningManager) -> None:
    interfaces = [interface for vm in await running.store.virtual_machines() for interface in vm.interfaces]
    assert await running.store.address_owners() == {interface.uuid for interface in interfaces}
    addresses = [(each.network_uuid, address.address) for each in interfaces for address in each.addresses]
    assert len(set(addresses)) == len(addresses)


async def _check_networks(running: RunningManager, nads: list[str]) -> None:
    networks = await running.store.networks()
    used = {each.network_uuid for vm in await running.store.virtual_machines() for each in vm.interfaces}
    for network in networks:
        assert network.nad is None or network.nad in nads or network.retired, network
        assert not network.retired or network.uuid in used, network
    assert running.manager.catalogue.networks == {network.fq_name: network for network in networks}

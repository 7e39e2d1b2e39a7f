"""Whatever a source tells, in whatever order, with restarts in between: in the end the store is as it should be.

What it should be does not depend on the way: it follows from the pods and definitions that are there, but for networks
whose definition was changed while pods used them, which stay as they were.
"""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contrail_config.embedded.store import SqliteStore
from contrail_config.views import PodState
from manager.configuration import ManagerConfiguration
from manager.mapping.drafts import draft_interfaces
from manager.mapping.errors import MappingError
from manager.source import Applied, Gone, Nad, Pod
from tests.support.pods import FOREIGN_CONFIG, make_nad, make_pod, reference
from tests.support.running_manager import RunningManager, running_manager

CONFIGURATION = ManagerConfiguration()

_GENERATIONS = st.integers(1, 2)
_PODS = st.builds(
    make_pod,
    st.sampled_from(["p0", "p1", "p2"]),
    networks=st.sampled_from(["", "net-a", "net-a,net-a", "net-a,net-b", "alias", "nope", ","]),
    generation=_GENERATIONS,
    gone=st.sampled_from([False, False, False, True]),
)
_NADS = st.one_of(
    st.builds(
        make_nad,
        st.sampled_from(["net-a", "net-b"]),
        cidr=st.sampled_from(["10.1.0.0/16", "10.2.0.0/16,fd00:2::/64", "nonsense"]),
        generation=_GENERATIONS,
    ),
    st.builds(make_nad, st.just("net-a"), config=st.just(FOREIGN_CONFIG), generation=_GENERATIONS),
    st.builds(
        make_nad,
        st.just("alias"),
        cidr=st.none(),
        network=st.sampled_from([reference("k8s-blue", f"k8s-{name}-pod-network") for name in ("net-a", "net-b")]),
        generation=_GENERATIONS,
    ),
)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["apply", "apply", "remove", "settle", "restart"]), st.one_of(_PODS, _NADS)), max_size=25
)


class World:
    """What is there, as a source knows it: each name once, and an end for whatever makes room for another uid."""

    def __init__(self) -> None:
        self.objects: dict[tuple[type, str, str], Pod | Nad] = {}

    def apply(self, one: Pod | Nad) -> list[Applied | Gone]:
        before = self.objects.get(_place(one))
        self.objects[_place(one)] = one
        return [*([Gone(before)] if before is not None and before.uid != one.uid else []), Applied(one)]

    def remove(self, one: Pod | Nad) -> list[Applied | Gone]:
        before = self.objects.pop(_place(one), None)
        return [] if before is None else [Gone(before)]

    def in_order(self) -> list[Pod | Nad]:
        return sorted(self.objects.values(), key=lambda one: isinstance(one, Pod))


@given(_STEPS)
@settings(deadline=None, max_examples=60)
def test_the_end_is_as_it_should_be(steps: list[tuple[str, Pod | Nad]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(_live_through(Path(directory) / "config.db", steps))


async def _live_through(path: Path, steps: list[tuple[str, Pod | Nad]]) -> None:
    store, world = await SqliteStore.open(path), World()
    left = list(steps)
    while True:
        async with running_manager(store, CONFIGURATION) as running:
            await running.tell_all(*world.in_order())
            while left and (step := left.pop(0))[0] != "restart":
                if step[0] == "settle":
                    await running.settled()
                else:
                    running.played.send(*(world.apply if step[0] == "apply" else world.remove)(step[1]))
            await _quiet(running)
            await _check(running, world)
            if not left:
                await _check_that_all_can_go(running, world)
                break
    await store.close()


async def _quiet(running: RunningManager) -> None:
    """Returns when the manager has done what it can: twice, since what it hears may give it work again."""
    for _ in range(2):
        await running.send()
        await running.caught_up()


async def _check(running: RunningManager, world: World) -> None:
    pods = [one for one in world.objects.values() if isinstance(one, Pod) and not one.gone]
    await _check_pods(running, pods)
    await _check_addresses(running)
    await _check_networks(running, [one.key for one in world.objects.values() if isinstance(one, Nad)])


async def _check_that_all_can_go(running: RunningManager, world: World) -> None:
    await running.remove(*reversed(world.in_order()))
    await _quiet(running)
    assert await running.store.machines() == []
    assert await running.given() == 0
    assert [network.nad for network in await running.store.networks()] == [None]
    manager = running.manager
    assert (manager._pods.records, manager._nads._records, manager._nads._ended) == ({}, {}, set())


async def _check_pods(running: RunningManager, pods: list[Pod]) -> None:
    machines = {machine.uuid for machine in await running.store.machines()}
    assert {f"{pod.namespace}/{pod.name}" for pod in pods} == running.manager._pods.records.keys()
    assert machines <= {pod.uid for pod in pods}
    for pod in pods:
        view = await running.view(pod)
        assert view.uid == pod.uid
        assert (view.state is PodState.READY) == (pod.uid in machines)
        assert view.state is PodState.READY or _cannot_be_served(running, pod), view


def _cannot_be_served(running: RunningManager, pod: Pod) -> bool:
    try:
        draft_interfaces(pod, catalogue=running.manager._catalogue, configuration=CONFIGURATION)
    except MappingError:
        return True
    return False


async def _check_addresses(running: RunningManager) -> None:
    interfaces = [interface for machine in await running.store.machines() for interface in machine.interfaces]
    assert await running.store.address_owners() == {interface.uuid for interface in interfaces}
    addresses = [(each.network_uuid, address.address) for each in interfaces for address in each.addresses]
    assert len(set(addresses)) == len(addresses)


async def _check_networks(running: RunningManager, nads: list[str]) -> None:
    networks = await running.store.networks()
    used = {each.network_uuid for machine in await running.store.machines() for each in machine.interfaces}
    for network in networks:
        assert network.nad is None or network.nad in nads or network.retired, network
        assert not network.retired or network.uuid in used, network
    assert running.manager._catalogue.networks == {network.fq_name: network for network in networks}


def _place(one: Pod | Nad) -> tuple[type, str, str]:
    return type(one), one.namespace, one.name

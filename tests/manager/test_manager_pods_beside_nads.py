"""A tenant's NADs delay only the pods that name them: what is waited for is counted, not timed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from contrail_config.objects import VirtualNetwork
from manager.api.types import PodState
from manager.controller import nad_record
from manager.parsing.nad import parse_nad
from manager.parsing.network_definition import ForeignDefinition, NetworkDefinition
from manager.source import Applied, Gone, Listed, Nad, SourceEvent
from tests.support.pods import make_nad, make_namespace, make_pod, reference
from tests.support.running_manager import DEADLINE, RunningManager
from tests.support.stores_with_events import StoreWithEvents

PutNetwork = Callable[[VirtualNetwork], Awaitable[VirtualNetwork]]


class HeldNetworks:
    """Writes of networks wait until they are let go; `begun` are the names of those that wait."""

    def __init__(self, store: StoreWithEvents) -> None:
        self.begun: list[str] = []
        self.writes = 0
        self._put: PutNetwork = store.put_network
        self._permitted = asyncio.Event()
        self._some_begun = asyncio.Event()

    def let_go(self) -> None:
        self._permitted.set()

    async def put(self, network: VirtualNetwork) -> VirtualNetwork:
        self.writes += 1
        self.begun.append(network.fq_name[2])
        self._some_begun.set()
        await self._permitted.wait()
        return await self._put(network)

    async def until_begun(self) -> None:
        async with asyncio.timeout(DEADLINE):
            await self._some_begun.wait()


@pytest.fixture
def held(running: RunningManager, monkeypatch: pytest.MonkeyPatch) -> HeldNetworks:
    """Holds the networks that are written from the first list on."""
    held = HeldNetworks(running.store)
    monkeypatch.setattr(running.store, "put_network", held.put)
    return held


@pytest.fixture
async def listed(running: RunningManager) -> RunningManager:
    """A manager whose source has listed `net-a`."""
    await running.send_list(make_nad("net-a"))
    return running


def applied(nads: Iterable[Nad]) -> list[SourceEvent]:
    return [Applied(nad) for nad in nads]


async def taken(running: RunningManager) -> None:
    async with asyncio.timeout(DEADLINE):
        await running.scripted.taken()


async def test_a_pod_does_not_wait_for_nads_that_it_does_not_name(listed: RunningManager, held: HeldNetworks) -> None:
    nads = [make_nad(f"flood-{number}", namespace="flood", cidr=f"10.{number}.0.0/24") for number in range(1, 201)]
    pods = [make_pod("plain"), make_pod("named", networks="net-a")]
    listed.scripted.send(*applied(nads), *map(Applied, pods))
    await taken(listed)
    for pod in pods:
        await listed.wait_for_vm(pod)
    assert len(held.begun) < len(nads), "not one of them is done"
    held.let_go()
    await listed.idle()
    assert held.writes == len(nads)


async def test_a_pod_waits_for_the_nads_that_it_names_and_is_told_nothing(
    listed: RunningManager, held: HeldNetworks
) -> None:
    pod = make_pod(networks="net-a,new")
    listed.scripted.send(Applied(make_nad("new", cidr="10.9.0.0/24")), Applied(pod))
    await taken(listed)
    await held.until_begun()
    await listed.manager.pods.queue.idle()
    assert (await listed.view(pod)).state is PodState.WAITING
    held.let_go()
    await listed.wait_for_vm(pod)
    await listed.idle()
    assert await listed.reasons(pod) == ["InterfacesAssigned"]


@pytest.mark.parametrize("chooser", ["pod", "namespace", "default-network", "nad"])
async def test_a_pod_waits_for_the_nad_behind_each_way_to_choose_a_network(
    listed: RunningManager, held: HeldNetworks, chooser: str
) -> None:
    chosen = reference("k8s-blue", "k8s-new-pod-network")
    pods = {
        "pod": make_pod(network=chosen),
        "namespace": make_pod(),
        "default-network": make_pod(default_network="new"),
        "nad": make_pod(networks="refers"),
    }
    if chooser == "namespace":
        listed.scripted.send(Applied(make_namespace(network=chosen)))
    if chooser == "nad":
        await listed.apply(make_nad("refers", cidr=None, network=chosen))
    listed.scripted.send(Applied(make_nad("new", cidr="10.9.0.0/24")), Applied(pods[chooser]))
    await taken(listed)
    await held.until_begun()
    await listed.manager.pods.queue.idle()
    held.let_go()
    vm = await listed.wait_for_vm(pods[chooser])
    await listed.idle()
    assert vm.interfaces[-1].network[2] == "k8s-new-pod-network"
    assert await listed.reasons(pods[chooser]) == ["InterfacesAssigned"]


async def test_a_pod_waits_for_a_nad_once_however_often_that_changes(
    listed: RunningManager, held: HeldNetworks
) -> None:
    """The NAD is queued again whenever it was reconciled; a pod that waited for each state would never be assigned."""
    queue = listed.manager.nads.queue
    done = asyncio.Event()

    async def change_forever() -> None:
        while not done.is_set():
            queue.add("blue/net-a")
            await asyncio.sleep(0)

    pod = make_pod(networks="net-a")
    changing = asyncio.create_task(change_forever())
    try:
        listed.scripted.send(Applied(pod))
        await listed.wait_for_vm(pod)
    finally:
        done.set()
        await changing


async def test_nads_do_not_wait_for_pods(listed: RunningManager, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, permitted, allocate = asyncio.Event(), asyncio.Event(), listed.store.allocate

    async def allocate_late(*args: object, **kwargs: object) -> object:
        begun.set()
        await permitted.wait()
        return await allocate(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(listed.store, "allocate", allocate_late)
    slow = make_pod("slow")
    nads = [make_nad("new", cidr="10.9.0.0/24"), make_nad("net-a"), make_nad("new", cidr="10.9.0.0/24")]
    listed.scripted.send(Applied(slow), *applied(nads), Gone(nads[0]))
    await taken(listed)
    async with asyncio.timeout(DEADLINE):
        await begun.wait()
        await listed.manager.nads.queue.idle()
    permitted.set()
    await listed.wait_for_vm(slow)


async def test_a_nad_that_is_sent_again_unchanged_is_not_reconciled(listed: RunningManager, held: HeldNetworks) -> None:
    for _ in range(100):
        listed.scripted.send(Applied(make_nad("net-a")))
    await taken(listed)
    assert len(listed.manager.nads.queue) == 0
    assert held.writes == 0


async def test_pods_of_the_first_list_wait_for_all_nads(running: RunningManager, held: HeldNetworks) -> None:
    pod = make_pod("plain")
    running.scripted.send(Applied(make_nad("new", cidr="10.9.0.0/24")), Applied(pod), Listed())
    await held.until_begun()
    assert pod.key not in running.manager.pods.records
    held.let_go()
    await running.wait_for_vm(pod)


class ParsedNads:
    """Counts how often NADs of each name are parsed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        monkeypatch.setattr(nad_record, "parse_nad", self._parse)

    def _parse(self, nad: Nad, *, default_mtu: int) -> NetworkDefinition | ForeignDefinition:
        self.names.append(nad.name)
        return parse_nad(nad, default_mtu=default_mtu)


@pytest.mark.parametrize("recreated", [False, True])
async def test_a_nad_with_long_lists_that_changes_all_the_time_is_seldom_parsed(
    listed: RunningManager, monkeypatch: pytest.MonkeyPatch, *, recreated: bool
) -> None:
    parsed = ParsedNads(monkeypatch)
    for number in range(20):
        nad = make_nad("long", exclude=",".join(f"10.1.{number}.{item}" for item in range(1, 255)) * 4)
        events: list[SourceEvent] = [Applied(nad), Gone(nad), Applied(nad)] if recreated else [Applied(nad)]
        listed.scripted.send(*events, Applied(make_nad("short")))
        await taken(listed)
        await listed.idle()
    assert 1 <= parsed.names.count("long") <= 4
    await listed.apply(pod := make_pod(networks="net-a"))
    assert (await listed.view(pod)).state is PodState.READY


async def test_the_states_of_a_nad_that_are_replaced_at_once_are_not_parsed(
    listed: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = ParsedNads(monkeypatch)
    await listed.send(*(Applied(make_nad("changing", exclude=f"10.1.0.{item}")) for item in range(10, 200)))
    assert parsed.names.count("changing") <= 4


async def test_nads_with_long_lists_are_not_delayed_in_the_first_list(running: RunningManager) -> None:
    cidrs = [",".join(f"10.{number}.{item}.0/24" for item in range(200)) for number in range(1, 31)]
    await running.send_list(*(make_nad(f"long-{number}", cidr=cidr) for number, cidr in enumerate(cidrs)))
    assert len(await running.store.networks()) == 31


async def test_nads_with_long_lists_are_parsed_in_rounds_of_the_event_loop_of_their_own(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that renews its lease needs a few rounds, so none may take as long as all workers need to parse."""
    rounds, parsed = 0, list[int]()

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    def parse(nad: Nad, *, default_mtu: int) -> NetworkDefinition | ForeignDefinition:
        parsed.append(rounds)
        return parse_nad(nad, default_mtu=default_mtu)

    monkeypatch.setattr(nad_record, "parse_nad", parse)
    counting = asyncio.create_task(count_rounds())
    cidrs = [",".join(f"10.{number}.{item}.0/24" for item in range(80)) for number in range(1, 21)]
    try:
        await running.send_list(*(make_nad(f"long-{number}", cidr=cidr) for number, cidr in enumerate(cidrs)))
    finally:
        counting.cancel()
        await asyncio.wait([counting])
    assert len(set(parsed)) == len(parsed) == 20

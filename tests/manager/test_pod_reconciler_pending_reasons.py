"""The store says why a pod has no interfaces yet, and no part of the manager takes that for an assignment."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube import work_queue
from contrail_config.objects import Pending, VirtualMachine
from contrail_config.store import ChangeType
from manager.api.queries import ItemFilter
from manager.api.types import PodState
from manager.controller import pending_reporter
from manager.source import Applied, Pod
from tests.manager.conftest import Start
from tests.support.pods import make_nad, make_pod, uid_of
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import DEADLINE, RunningManager, running_manager
from tests.support.stores_with_events import StoreWithEvents

NET_A = make_nad("net-a")
WAITING = make_pod(networks="net-a")
MISSING = Pending("NetworkNotFound", "network attachment definition blue/net-a not found")
WRITES = ("put_pending", "delete_pending", "put_virtual_machine", "delete_virtual_machine")


async def wait_for_pending(
    store: StoreWithEvents, condition: Callable[[dict[str, Pending]], bool]
) -> dict[str, Pending]:
    """The reasons by uid of the pod, once they fulfil the condition."""
    reasons: dict[str, Pending] = {}
    synced = False
    async with asyncio.timeout(DEADLINE), store.watch_virtual_machines(include_pending=True) as changes:
        async for change in changes:
            synced = synced or change.object is None
            if change.object is not None:
                reasons.pop(change.object.uuid, None)
                if change.object.pending is not None and change.type is not ChangeType.DELETED:
                    reasons[change.object.uuid] = change.object.pending
            if synced and condition(reasons):
                return reasons
    raise AssertionError("the watch ended")


async def reason_of(store: StoreWithEvents, pod: Pod) -> Pending:
    """The stored reason of a pod, once there is one."""
    return (await wait_for_pending(store, lambda reasons: pod.uid in reasons))[pod.uid]


async def without_reasons(store: StoreWithEvents) -> None:
    """Waits until no pod has a stored reason."""
    await wait_for_pending(store, lambda reasons: not reasons)


async def all_reported(running: RunningManager) -> None:
    """Waits until no reason is going to be written."""
    queue = running.manager.pods.pending_queue
    await eventually(lambda: not queue.scheduled and not len(queue))


@pytest.fixture(autouse=True)
def short_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_reporter, "DELAY", 0.05)


@pytest.fixture
def writes(store: StoreWithEvents, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the store's writes of virtual machines, in order."""
    written: list[str] = []

    def recorded(name: str) -> Callable[..., Any]:
        original = getattr(store, name)

        async def write(*arguments: Any, **options: Any) -> None:
            written.append(name)
            await original(*arguments, **options)

        return write

    for name in WRITES:
        monkeypatch.setattr(store, name, recorded(name))
    return written


@pytest.mark.parametrize(
    ("networks", "state", "reason"),
    [("net-a", PodState.WAITING, "NetworkNotFound"), (",", PodState.REFUSED, "AnnotationInvalid")],
)
async def test_the_reason_of_a_pod_is_stored_as_in_its_event(
    running: RunningManager, networks: str, state: PodState, reason: str
) -> None:
    pod = make_pod(networks=networks)
    await running.send_list(pod)
    pending = await reason_of(running.store, pod)
    assert [(pending.reason, pending.message)] == await running.events_on(pod)
    assert pending.reason == reason
    assert (await running.view(pod)).state is state


async def test_a_pod_that_is_assigned_at_once_costs_one_write(running: RunningManager, writes: list[str]) -> None:
    await running.send_list(NET_A, WAITING)
    await all_reported(running)
    assert writes == ["put_virtual_machine"]


async def test_a_pod_whose_network_comes_within_the_delay_costs_one_write(
    running: RunningManager, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending_reporter, "DELAY", 2.0)
    await running.send_list(WAITING)
    await running.apply(NET_A)
    await all_reported(running)
    assert writes == ["put_virtual_machine"]


async def test_a_pod_that_waits_costs_three_writes_until_it_is_deleted(
    running: RunningManager, writes: list[str]
) -> None:
    await running.send_list(WAITING)
    assert await reason_of(running.store, WAITING) == MISSING
    await running.apply(NET_A)
    assert len((await running.vm(WAITING)).interfaces) == 2
    await without_reasons(running.store)
    await running.remove(WAITING)
    await all_reported(running)
    assert writes == ["put_pending", "put_virtual_machine", "delete_virtual_machine"]
    assert list(await running.store.recover_virtual_machines()) == []


async def test_the_stored_reason_follows_the_pod(running: RunningManager) -> None:
    pod = make_pod(networks="net-a,net-b")
    await running.send_list(pod)
    both = f"{MISSING.message}; network attachment definition blue/net-b not found"
    assert await reason_of(running.store, pod) == Pending("NetworkNotFound", both)
    await running.apply(make_nad("net-b", cidr="10.2.0.0/16"))
    await wait_for_pending(running.store, lambda reasons: reasons.get(pod.uid) == MISSING)


async def test_the_reason_of_a_deleted_pod_is_deleted(running: RunningManager) -> None:
    await running.send_list(WAITING)
    await reason_of(running.store, WAITING)
    await running.remove(WAITING)
    await without_reasons(running.store)


async def test_a_recreated_pod_is_assigned_although_its_predecessor_left_a_reason(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.send_list(WAITING)
    await reason_of(running.store, WAITING)

    async def fail(_pending: VirtualMachine) -> None:
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(running.store, "delete_pending", fail)
    successor = make_pod(generation=2)
    await running.apply(successor)
    assert list(await running.store.recover_virtual_machines()) == [await running.vm(successor)]


async def test_a_waiting_pod_has_nothing_in_the_api(running: RunningManager) -> None:
    await running.send_list(WAITING)
    await reason_of(running.store, WAITING)
    view = await running.view(WAITING)
    assert (view.state, view.reason, view.machine) == (PodState.WAITING, MISSING.reason, None)
    assert (await running.manager.queries.interfaces(ItemFilter())).items == ()
    sample = running.registry.get_sample_value
    assert sample("contrail_manager_interfaces") == sample("contrail_manager_addresses") == 0
    assert sample("contrail_manager_pods", {"state": "Waiting"}) == 1
    assert sample("contrail_manager_queue_failing", {"queue": "pending"}) == 0


@pytest.mark.parametrize("outcome", ["fails", "hangs"])
async def test_a_reason_that_cannot_be_written_does_not_delay_the_assignment(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, outcome: str
) -> None:
    tried, end = asyncio.Event(), asyncio.Event()
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)

    async def put_pending(_machine: VirtualMachine) -> None:
        tried.set()
        if outcome == "hangs":
            await end.wait()
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(running.store, "put_pending", put_pending)
    await running.send_list(WAITING)
    async with asyncio.timeout(DEADLINE):
        await tried.wait()
        if outcome == "fails":
            await eventually(lambda: f"{WAITING.key}: retry in" in caplog.text)
            assert "the disk is full" in caplog.text
        running.scripted.send(Applied(NET_A))
        assert len((await running.wait_for_vm(WAITING)).interfaces) == 2
    end.set()


async def test_a_store_that_keeps_failing_for_the_list_is_named(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)

    async def fail(_machine: VirtualMachine) -> None:
        raise StoreUnavailableError("the disk is full")

    pod = make_pod()
    with monkeypatch.context() as broken:
        broken.setattr(running.store, "put_virtual_machine", fail)
        await running.send_list(pod)
        assert await reason_of(running.store, pod) == Pending("StoreFailing", "the disk is full")
    await running.wait_for_vm(pod)
    await without_reasons(running.store)


async def test_many_waiting_pods_do_not_delay_one_that_can_be_served(
    running: RunningManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_progress: set[str] = set()
    full, end = asyncio.Event(), asyncio.Event()

    async def hang(vm: VirtualMachine) -> None:
        in_progress.add(vm.uuid)
        if len(in_progress) == pending_reporter._CONCURRENCY:
            full.set()
        await end.wait()

    monkeypatch.setattr(running.store, "put_pending", hang)
    await running.send_list(*(make_pod(f"waits-{number}", networks="net-b") for number in range(300)))
    async with asyncio.timeout(DEADLINE):
        await full.wait()
        running.scripted.send(Applied(NET_A), Applied(WAITING))
        await running.wait_for_vm(WAITING)
    assert len(in_progress) == pending_reporter._CONCURRENCY
    monkeypatch.undo()
    end.set()


class TestRestartedManager:
    """What an earlier manager has stored is known to the next one."""

    @pytest.fixture
    async def stored(self, store: StoreWithEvents) -> list[VirtualMachine]:
        """Two waiting pods; their manager has ended."""
        pods = [make_pod("stays", networks="net-a"), make_pod("goes", networks="net-a")]
        async with running_manager(store) as before:
            await before.send_list(*pods)
            await wait_for_pending(store, lambda reasons: len(reasons) == len(pods))
        return list(await store.recover_virtual_machines())

    async def test_it_writes_no_reason_again_and_deletes_those_of_deleted_pods(
        self, stored: list[VirtualMachine], start: Start, writes: list[str]
    ) -> None:
        running = await start()
        await running.send_list(make_pod("stays", networks="net-a"))
        await all_reported(running)
        assert writes == ["delete_pending"]
        assert list(await running.store.recover_virtual_machines()) == [stored[1]]

    async def test_an_incomplete_list_deletes_no_reason(
        self, stored: list[VirtualMachine], start: Start, writes: list[str]
    ) -> None:
        running = await start()
        await running.send_list(complete=False)
        await all_reported(running)
        assert writes == []

    async def test_no_address_is_recovered_for_it(self, stored: list[VirtualMachine], start: Start) -> None:
        running = await start()
        await running.send_list(*(make_pod(vm.pod, networks="net-a") for vm in stored))
        assert await running.allocated_count() == 0
        assert all(record.assignment is None for record in running.manager.pods.records.values())

    async def test_reasons_of_another_cluster_are_left_alone(self, store: StoreWithEvents, start: Start) -> None:
        foreign = VirtualMachine(
            uid_of("east", "web-0"), "east__blue__web-0", "east", "p", "blue", "web-0", "n", (), pending=MISSING
        )
        await store.put_pending(foreign)
        running = await start()
        await running.send_list(WAITING)
        await reason_of(store, WAITING)
        await running.remove(WAITING)
        await wait_for_pending(store, lambda reasons: list(reasons) == [foreign.uuid])
        assert list(await store.recover_virtual_machines()) == [foreign]

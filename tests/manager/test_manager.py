"""Start, readiness, metrics, errors and shutdown of a manager."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest
from prometheus_client import generate_latest

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube import work_queue
from contrail_config.objects import Event, InterfaceAddress, VirtualMachine, virtual_machine_name
from contrail_config.store import AddressRequest
from manager import events
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration
from manager.source import Applied, Gone, Listed, Pod, Problem, SourceEvent
from tests.manager.conftest import Start
from tests.support.fake_clock import FakeClock
from tests.support.pods import make_nad, make_pod
from tests.support.recorded_reflector import eventually
from tests.support.running_manager import DEADLINE, RunningManager
from tests.support.stores_with_events import StoreWithEvents
from tests.support.virtual_machines import make_virtual_machine

NET_A = make_nad("net-a")


async def test_it_is_ready_once_every_pod_of_the_first_list_was_tried(running: RunningManager) -> None:
    assert running.manager.readiness() == ["the source has not listed all pods and networks yet"]
    await running.apply(NET_A, make_pod("served"), make_pod("waits", networks="nope"))
    assert running.manager.readiness() != []
    await running.send(Listed())
    assert running.manager.readiness() == []


async def test_networks_are_created_before_pods_of_the_same_list(running: RunningManager) -> None:
    """However long their creation takes, no pod gets the event NetworkNotFound."""
    nads = [make_nad(f"net-{number}", cidr=f"10.{number}.0.0/16") for number in range(1, 30)]
    pods = [make_pod(f"web-{number}", networks=f"net-{number}") for number in range(1, 30)]
    await running.send_list(*nads, *pods)
    assert {event.reason for event in await running.store.events(kind="Pod")} == {"InterfacesAssigned"}


async def test_problems_of_the_source_are_recorded_as_events(running: RunningManager) -> None:
    problem = Problem(
        kind="Manifest", namespace="", name="a/b.yaml", uid="", reason="ManifestInvalid", message="line 1: no"
    )
    await running.send(problem, problem)
    (event,) = await running.store.events()
    assert (event.kind, event.name, event.reason, event.message) == (
        "Manifest",
        "a/b.yaml",
        "ManifestInvalid",
        "line 1: no",
    )
    assert event.count == 2


async def test_the_longest_wait_of_a_pod_is_known(running: RunningManager) -> None:
    def longest_wait() -> float:
        return running.registry.get_sample_value("contrail_manager_longest_wait_seconds") or 0.0

    first, second = (make_pod(name, networks="nope") for name in ("first", "second"))
    await running.send_list(NET_A, make_pod("a", networks="net-a"), make_pod("refused", networks=","))
    assert longest_wait() == 0
    await running.apply(first)
    waited = longest_wait()
    await running.apply(second)
    assert 0 < waited < longest_wait()
    await running.send(Gone(first), Gone(second))
    assert longest_wait() == 0


async def test_metrics_count_pods_interfaces_networks_and_events(running: RunningManager) -> None:
    gone = make_pod("gone")
    await running.send_list(
        NET_A, make_pod("a", networks="net-a"), make_pod("w", networks="nope"), make_pod("r", networks=","), gone
    )
    await running.apply(make_pod("h", host_network=True))
    await running.remove(gone)
    sample = running.registry.get_sample_value
    states = {state: sample("contrail_manager_pods", {"state": state}) for state in PodState}
    counted = (PodState.READY, PodState.WAITING, PodState.REFUSED, PodState.HOST_NETWORK)
    assert states == {**dict.fromkeys(counted, 1), PodState.EXCLUDED: 0}
    assert sample("contrail_manager_interfaces") == 2
    assert sample("contrail_manager_addresses") == 2
    assert sample("contrail_manager_networks") == 2
    assert sample("contrail_manager_pod_seconds_count") == 2
    assert sample("contrail_manager_events_total", {"reason": "InterfacesAssigned"}) == 2
    assert sample("contrail_manager_queue_depth", {"queue": "pods"}) == 0
    assert sample("contrail_manager_queue_failing", {"queue": "networks"}) == 0
    assert b'contrail_manager_pod_seconds_bucket{le="0.001"}' in generate_latest(running.registry)


async def test_metrics_count_used_and_free_addresses_of_networks(running: RunningManager) -> None:
    nad = make_nad("dual", cidr="10.9.0.0/29,fd00:9::/125", exclude="10.9.0.6,fd00:9::7")
    await running.send_list(nad, make_pod("a", networks="dual,dual"))
    name = "default-domain:k8s-blue:k8s-dual-pod-network"
    for family, used, free in (("ipv4", 2, 2), ("ipv6", 2, 3)):
        labels = {"network": name, "family": family}
        assert running.registry.get_sample_value("contrail_manager_network_addresses_used", labels) == used
        assert running.registry.get_sample_value("contrail_manager_network_addresses_free", labels) == free


class TestFailingStore:
    """Transient failures are retried without blocking the rest."""

    async def test_a_pod_is_assigned_when_the_store_recovers(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
        pod = make_pod(networks="net-a")
        await running.send_list(NET_A)
        put, failures = running.store.put_virtual_machine, [StoreUnavailableError("the disk is full")] * 3

        async def fail_at_first(vm: VirtualMachine) -> None:
            if failures:
                raise failures.pop()
            await put(vm)

        monkeypatch.setattr(running.store, "put_virtual_machine", fail_at_first)
        await running.apply(pod)
        vm = await running.wait_for_vm(pod)
        await running.idle()
        assert await running.allocated_count() == 2
        assert len(vm.interfaces) == 2
        assert failures == []

    async def test_a_pod_names_the_failure_after_a_few_attempts(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pod, attempts = make_pod(networks="net-a"), 0

        async def fail(_machine: VirtualMachine) -> None:
            nonlocal attempts
            attempts += 1
            raise StoreUnavailableError(f"attempt {attempts}: the disk is slow")

        await running.send_list(NET_A)
        with monkeypatch.context() as broken:
            broken.setattr(work_queue, "FIRST_RETRY", 0.01)
            broken.setattr(running.store, "put_virtual_machine", fail)
            running.scripted.send(Applied(pod))
            await eventually(lambda: attempts > 6)
            view = await running.view(pod)
            assert (view.state, view.reason) == (PodState.WAITING, "StoreFailing")
            assert "the disk is slow" in (view.message or "")
            assert await running.reasons(pod) == ["StoreFailing"]
        await running.wait_for_vm(pod)
        await running.idle()
        assert (await running.view(pod)).state is PodState.READY
        assert await running.reasons(pod) == ["StoreFailing", "InterfacesAssigned"]

    async def test_a_pod_names_the_failure_of_a_store_that_does_not_answer_after_one_attempt(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, pod = FakeClock(), make_pod(networks="net-a")
        running = await start(clock=clock)

        async def time_out(_machine: VirtualMachine) -> None:
            clock.advance(30)
            raise StoreUnavailableError("timed out after 30 s")

        await running.send_list(NET_A)
        monkeypatch.setattr(work_queue, "FIRST_RETRY", 3600)
        monkeypatch.setattr(running.store, "put_virtual_machine", time_out)
        running.scripted.send(Applied(pod))
        await eventually(lambda: clock() > FakeClock()())
        view = await running.view(pod)
        assert (view.state, view.reason) == (PodState.WAITING, "StoreFailing")
        assert view.message == "timed out after 30 s"

    @pytest.mark.parametrize("before", [make_pod(networks=","), msgspec.structs.replace(make_pod(), excluded=True)])
    async def test_a_corrected_pod_names_the_failure_and_no_former_outcome(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch, before: Pod
    ) -> None:
        pod, attempts = make_pod(networks="net-a"), 0

        async def fail(_machine: VirtualMachine) -> None:
            nonlocal attempts
            attempts += 1
            raise StoreUnavailableError("the disk is slow")

        await running.send_list(NET_A, before)
        with monkeypatch.context() as broken:
            broken.setattr(work_queue, "FIRST_RETRY", 0.01)
            broken.setattr(running.store, "put_virtual_machine", fail)
            running.scripted.send(Applied(pod))
            await eventually(lambda: attempts > 6)
            view = await running.view(pod)
            assert (view.state, view.reason) == (PodState.WAITING, "StoreFailing")
            assert (await running.reasons(pod))[-1] == "StoreFailing"
        await running.wait_for_vm(pod)
        await running.idle()
        view = await running.view(pod)
        assert (view.state, view.reason) == (PodState.READY, None)

    async def test_pods_are_assigned_although_no_event_can_be_written(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As on an API server whose storage of events does not answer."""
        answer = asyncio.Event()

        async def write_late(event: Event) -> Event:
            await answer.wait()
            return event

        monkeypatch.setattr(events, "_MAX_BACKLOG", 8)
        monkeypatch.setattr(events, "_PATIENCE", 0.05)
        monkeypatch.setattr(running.store, "record_event", write_late)
        pods = [make_pod(f"pod-{number}") for number in range(300)]
        running.scripted.send(*map(Applied, pods))
        await running.wait_for_vm(pods[-1])
        await eventually(lambda: not len(running.manager.pods.queue))
        assert len(await running.store.virtual_machines()) == len(pods)
        answer.set()

    async def test_a_served_pod_stays_ready_while_the_store_fails(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pod, attempts = make_pod(networks="net-a"), 0

        async def fail(_uuid: str) -> VirtualMachine:
            nonlocal attempts
            attempts += 1
            raise StoreUnavailableError("the disk is slow")

        await running.send_list(NET_A, pod)
        monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
        monkeypatch.setattr(running.store, "virtual_machine", fail)
        running.manager.pods.queue.add(pod.key)
        await eventually(lambda: attempts > 6)
        assert running.manager.pods.records[pod.key].outcome.state is PodState.READY

    async def test_a_virtual_machine_of_the_pods_name_and_another_uid_is_deleted(self, running: RunningManager) -> None:
        """As after a backup was restored."""
        pod = make_pod(networks="net-a")
        await running.send_list(NET_A)
        name = virtual_machine_name("k8s", pod.namespace, pod.name)
        stale = msgspec.structs.replace(make_virtual_machine(pod.name), name=name, namespace=pod.namespace)
        await running.store.put_virtual_machine(stale)
        await running.apply(pod)
        vm = await running.wait_for_vm(pod)
        await running.idle()
        assert await running.store.virtual_machines() == [vm]
        assert await running.store.address_owners() == {interface.uuid for interface in vm.interfaces}

    async def test_a_pod_deleted_during_the_failure_leaves_no_address_behind(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pod = make_pod(networks="net-a")
        await running.send_list(NET_A)

        async def fail(_machine: VirtualMachine) -> None:
            raise StoreUnavailableError("the disk is full")

        monkeypatch.setattr(running.store, "put_virtual_machine", fail)
        await running.apply(pod)
        assert await running.allocated_count() == 2
        await running.remove(pod)
        assert await running.allocated_count() == 0

    async def test_a_pod_changed_during_the_failure_keeps_only_its_last_request(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net_b = make_nad("net-b", cidr="10.2.0.0/16")
        await running.send_list(NET_A, net_b)
        put = running.store.put_virtual_machine

        async def fail(_machine: VirtualMachine) -> None:
            raise StoreUnavailableError("the disk is full")

        monkeypatch.setattr(running.store, "put_virtual_machine", fail)
        await running.apply(make_pod(networks="net-a,net-a,net-a"))
        monkeypatch.setattr(running.store, "put_virtual_machine", put)
        pod = make_pod(networks="net-b")
        await running.apply(pod)
        assert await running.allocated_count() == 2
        assert (await running.vm(pod)).interfaces[1].nad == "blue/net-b"

    async def test_a_release_during_a_failing_allocation_is_not_missed(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The store's refusal reaches the pod after another pod released its address."""
        first, second = make_pod("first", networks="tiny"), make_pod("second", networks="tiny")
        await running.send_list(make_nad("tiny", cidr="10.6.0.0/30"), first)
        allocate = running.store.allocate
        refused, released = asyncio.Event(), asyncio.Event()

        async def answer_late(requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
            try:
                return await allocate(requests)
            except Exception:
                if not refused.is_set():
                    refused.set()
                    await released.wait()
                raise

        monkeypatch.setattr(running.store, "allocate", answer_late)
        monkeypatch.setattr("manager.controller.pod_writer.DEFAULT_HOLD", 0.0)
        running.scripted.send(Applied(second))
        async with asyncio.timeout(DEADLINE):
            await refused.wait()
        running.scripted.send(Gone(first))
        await eventually(lambda: first.key not in running.manager.pods.records)
        released.set()
        await running.wait_for_vm(second)


class TestEnd:
    async def test_shutdown_finishes_the_work_in_progress(
        self, store: StoreWithEvents, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        running = RunningManager(store, ManagerConfiguration())
        task = asyncio.create_task(running.manager.run())
        begun, go_on = asyncio.Event(), asyncio.Event()
        allocate = store.allocate

        async def hold_up(requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
            begun.set()
            await go_on.wait()
            return await allocate(requests)

        monkeypatch.setattr(store, "allocate", hold_up)
        running.scripted.send(Applied(make_pod()))
        async with asyncio.timeout(DEADLINE):
            await begun.wait()
            task.cancel()
            asyncio.get_running_loop().call_soon(go_on.set)
            await asyncio.wait([task])
        assert task.cancelled()
        assert [vm.pod for vm in await store.virtual_machines()] == ["web-0"]
        assert [event.reason for event in await store.events()] == ["InterfacesAssigned"]

    async def test_an_error_of_the_source_ends_the_manager(self, start: Start, store: StoreWithEvents) -> None:
        class Broken:
            @contextlib.asynccontextmanager
            async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
                yield self._stream()

            async def _stream(self) -> AsyncIterator[SourceEvent]:
                yield Applied(make_pod())
                raise OSError("the folder is gone")

        running = RunningManager(store, ManagerConfiguration(), source=Broken())
        with pytest.raises(OSError, match="the folder is gone"):
            await asyncio.wait_for(running.manager.run(), DEADLINE)
        assert [vm.pod for vm in await store.virtual_machines()] == ["web-0"]

    async def test_the_manager_ends_with_its_source(self, store: StoreWithEvents) -> None:
        class Short:
            @contextlib.asynccontextmanager
            async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
                yield self._stream()

            async def _stream(self) -> AsyncIterator[SourceEvent]:
                yield Listed()

        running = RunningManager(store, ManagerConfiguration(), source=Short())
        await asyncio.wait_for(running.manager.run(), DEADLINE)

    @pytest.mark.lacking("vnc", "it is read before the manager starts, and answers from what it read")
    async def test_an_unreadable_store_at_start_ends_the_manager(self, store: StoreWithEvents) -> None:
        running = RunningManager(store, ManagerConfiguration())
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(running.manager.run(), DEADLINE)

"""Start, readiness, metrics, errors, and the end of a manager."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest
from prometheus_client import generate_latest

from contrail_config.embedded.store import SqliteStore
from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import InterfaceAddress, VirtualMachine
from contrail_config.store import AddressRequest
from manager import work_queue
from manager.api.types import PodState
from manager.configuration import ManagerConfiguration
from manager.source import Applied, Gone, Listed, Problem, SourceEvent
from tests.manager.conftest import Start
from tests.support.following import eventually
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import DEADLINE, RunningManager

NET_A = make_nad("net-a")


async def test_it_is_ready_when_every_pod_of_the_first_list_was_tried(running: RunningManager) -> None:
    assert running.manager.readiness() == ["the source has not listed all pods and networks yet"]
    await running.apply(NET_A, make_pod("served"), make_pod("waits", networks="nope"))
    assert running.manager.readiness() != []
    await running.send(Listed())
    assert running.manager.readiness() == []


async def test_networks_come_before_pods_within_one_list(running: RunningManager) -> None:
    """However long their making takes, no pod is told that its network is not there."""
    nads = [make_nad(f"net-{number}", cidr=f"10.{number}.0.0/16") for number in range(1, 30)]
    pods = [make_pod(f"web-{number}", networks=f"net-{number}") for number in range(1, 30)]
    await running.tell_all(*nads, *pods)
    assert {event.reason for event in await running.store.events(kind="Pod")} == {"InterfacesAssigned"}


async def test_what_the_source_cannot_use_is_told(running: RunningManager) -> None:
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


async def test_what_it_measures(running: RunningManager) -> None:
    gone = make_pod("gone")
    await running.tell_all(
        NET_A, make_pod("a", networks="net-a"), make_pod("w", networks="nope"), make_pod("r", networks=","), gone
    )
    await running.apply(make_pod("h", host_network=True))
    await running.remove(gone)
    sample = running.registry.get_sample_value
    states = {state: sample("contrail_manager_pods", {"state": state}) for state in PodState}
    assert states == {PodState.READY: 1, PodState.WAITING: 1, PodState.REFUSED: 1, PodState.HOST_NETWORK: 1}
    assert sample("contrail_manager_interfaces") == 2
    assert sample("contrail_manager_addresses") == 2
    assert sample("contrail_manager_networks") == 2
    assert sample("contrail_manager_pod_seconds_count") == 2
    assert sample("contrail_manager_events_total", {"reason": "InterfacesAssigned"}) == 2
    assert sample("contrail_manager_queue_depth", {"queue": "pods"}) == 0
    assert sample("contrail_manager_queue_failing", {"queue": "networks"}) == 0
    assert b'contrail_manager_pod_seconds_bucket{le="0.001"}' in generate_latest(running.registry)


class TestStoreThatFails:
    """What may pass is tried again; meanwhile the rest goes on."""

    async def test_a_pod_is_served_when_the_store_is_back(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(work_queue, "FIRST_RETRY", 0.01)
        pod = make_pod(networks="net-a")
        await running.tell_all(NET_A)
        put, failures = running.store.put_virtual_machine, [StoreUnavailableError("the disk is full")] * 3

        async def fail_at_first(machine: VirtualMachine) -> None:
            if failures:
                raise failures.pop()
            await put(machine)

        monkeypatch.setattr(running.store, "put_virtual_machine", fail_at_first)
        await running.apply(pod)
        machine = await running.written(pod)
        await running.idle()
        assert await running.given() == 2
        assert len(machine.interfaces) == 2
        assert failures == []

    async def test_a_pod_that_goes_meanwhile_leaves_no_address_behind(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pod = make_pod(networks="net-a")
        await running.tell_all(NET_A)

        async def fail(_machine: VirtualMachine) -> None:
            raise StoreUnavailableError("the disk is full")

        monkeypatch.setattr(running.store, "put_virtual_machine", fail)
        await running.apply(pod)
        assert await running.given() == 2
        await running.remove(pod)
        assert await running.given() == 0

    async def test_a_pod_that_is_changed_meanwhile_has_only_what_it_asks_for_in_the_end(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        net_b = make_nad("net-b", cidr="10.2.0.0/16")
        await running.tell_all(NET_A, net_b)
        put = running.store.put_virtual_machine

        async def fail(_machine: VirtualMachine) -> None:
            raise StoreUnavailableError("the disk is full")

        monkeypatch.setattr(running.store, "put_virtual_machine", fail)
        await running.apply(make_pod(networks="net-a,net-a,net-a"))
        monkeypatch.setattr(running.store, "put_virtual_machine", put)
        pod = make_pod(networks="net-b")
        await running.apply(pod)
        assert await running.given() == 2
        assert (await running.machine(pod)).interfaces[1].nad == "blue/net-b"

    async def test_a_release_that_comes_while_a_pod_is_refused_an_address_is_not_missed(
        self, running: RunningManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The pod learns that there is no address after another one gave its own back."""
        first, second = make_pod("first", networks="tiny"), make_pod("second", networks="tiny")
        await running.tell_all(make_nad("tiny", cidr="10.6.0.0/30"), first)
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
        running.played.send(Applied(second))
        async with asyncio.timeout(DEADLINE):
            await refused.wait()
        running.played.send(Gone(first))
        await eventually(lambda: first.key not in running.manager.pods.records)
        released.set()
        await running.written(second)


class TestEnd:
    async def test_it_finishes_what_it_began(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        running = RunningManager(store, ManagerConfiguration())
        task = asyncio.create_task(running.manager.run())
        begun, go_on = asyncio.Event(), asyncio.Event()
        allocate = store.allocate

        async def hold_up(requests: Sequence[AddressRequest]) -> list[InterfaceAddress]:
            begun.set()
            await go_on.wait()
            return await allocate(requests)

        monkeypatch.setattr(store, "allocate", hold_up)
        running.played.send(Applied(make_pod()))
        async with asyncio.timeout(DEADLINE):
            await begun.wait()
            task.cancel()
            asyncio.get_running_loop().call_soon(go_on.set)
            await asyncio.wait([task])
        assert task.cancelled()
        assert [machine.pod for machine in await store.virtual_machines()] == ["web-0"]
        assert [event.reason for event in await store.events()] == ["InterfacesAssigned"]

    async def test_what_the_source_raises_ends_it(self, start: Start, store: SqliteStore) -> None:
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
        assert [machine.pod for machine in await store.virtual_machines()] == ["web-0"]

    async def test_it_ends_with_its_source(self, store: SqliteStore) -> None:
        class Short:
            @contextlib.asynccontextmanager
            async def events(self) -> AsyncIterator[AsyncIterator[SourceEvent]]:
                yield self._stream()

            async def _stream(self) -> AsyncIterator[SourceEvent]:
                yield Listed()

        running = RunningManager(store, ManagerConfiguration(), source=Short())
        await asyncio.wait_for(running.manager.run(), DEADLINE)

    async def test_a_store_that_cannot_be_read_at_start_ends_it(self, store: SqliteStore) -> None:
        running = RunningManager(store, ManagerConfiguration())
        await store.close()
        with pytest.raises(StoreUnavailableError):
            await asyncio.wait_for(running.manager.run(), DEADLINE)

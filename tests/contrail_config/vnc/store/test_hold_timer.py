"""HoldTimer: held addresses stay on the server, unlinked, and are deleted there when their hold ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from contrail_config.errors import ExhaustedError
from contrail_config.objects import VirtualNetwork, interface_uuid
from contrail_config.store import DEFAULT_HOLD
from contrail_config.vnc.client import VncAccess, connect, unlimited
from contrail_config.vnc.holds import MAX_PARALLEL
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.recorded_reflector import eventually
from tests.support.system_clock import SystemClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod

UID = "0a000000-0000-4000-8000-000000000001"
LONG = 3600.0
SHORT = 0.3

OpenWriter = Callable[..., Awaitable[VncStore]]
"""Opens a store whose holds end by its own clock; with a timer, unless `timer` is false."""


@pytest.fixture
async def open_writer(double: ContrailApi) -> AsyncIterator[OpenWriter]:
    async with AsyncExitStack() as resources:

        async def open_one(before_write: Callable[[], float] = unlimited, *, timer: bool = True) -> VncStore:
            client = await resources.enter_async_context(connect(VncAccess((double.url,)), before_write=before_write))
            store = await VncStore.open(client, cluster="k8s")
            resources.push_async_callback(store.close)
            if timer:
                task = asyncio.create_task(store.maintain())
                resources.push_async_callback(ended, task)
            return store

        yield open_one


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


def on_server(double: ContrailApi) -> int:
    return len(double.database.of_kind(KINDS["instance-ip"]))


async def held_network(store: VncStore, *, hold: float, addresses: int = 1) -> VirtualNetwork:
    """A network in which some addresses are held."""
    network = await store.put_network(make_network())
    owners = [new_owner() for _ in range(addresses)]
    await asyncio.gather(*(allocate_one(store, network, owner) for owner in owners))
    await store.release(owners, hold=hold)
    return network


async def test_an_address_is_kept_unlinked_until_its_hold_ends(open_writer: OpenWriter, double: ContrailApi) -> None:
    store = await open_writer()
    network = await store.put_network(make_network())
    await start_pod(store, [network], uid=UID)
    await store.delete_virtual_machine(UID, hold=LONG)
    (kept,) = double.database.of_kind(KINDS["instance-ip"]).values()
    assert not kept.references["virtual-machine-interface"]
    assert await allocate_one(store, network) == "10.1.0.3"
    await store.release([interface_uuid(UID, 0)], hold=SHORT)
    await eventually(lambda: on_server(double) == 1)
    assert kept.uuid not in double.database.objects


async def test_a_hold_ends_although_another_one_is_longer_and_was_there_before(
    open_writer: OpenWriter, double: ContrailApi
) -> None:
    store = await open_writer()
    await held_network(store, hold=LONG)
    await held_network(store, hold=SHORT)
    await eventually(lambda: on_server(double) == 1)


@pytest.mark.parametrize("ahead", [2 * LONG, -2 * LONG])
async def test_a_hold_lasts_as_long_when_the_system_time_is_set(
    open_writer: OpenWriter, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    clock = SystemClock()
    monkeypatch.setattr("time.time", clock)
    store = await open_writer(timer=False)
    network = await store.put_network(make_network("tiny", "10.1.0.0/30"))
    owner = new_owner()
    await allocate_one(store, network, owner)
    await store.release([owner])
    clock.ahead = ahead
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(store, network)
    assert caught.value.next_free_in is not None
    assert 0 < caught.value.next_free_in <= DEFAULT_HOLD


async def test_holds_of_a_manager_that_ended_are_kept_and_end_in_another_one(
    open_writer: OpenWriter, double: ContrailApi
) -> None:
    first = await open_writer(timer=False)
    network = await held_network(first, hold=LONG)
    await first.close()
    second = await open_writer()
    assert await allocate_one(second, network) == "10.1.0.3"
    (held,) = await second.held_owners()
    await second.shorten_holds([held], hold=SHORT)
    await eventually(lambda: on_server(double) == 1)


async def test_what_cannot_be_freed_is_freed_later(
    open_writer: OpenWriter, double: ContrailApi, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_writer()
    double.faults.reject(500, "Internal Server Error", matches="DELETE /instance-ip", times=2)
    await held_network(store, hold=SHORT)
    await eventually(lambda: on_server(double) == 0)
    assert caplog.text.count("held addresses cannot be freed: ") == 2


async def test_many_holds_that_end_at_once_are_freed_a_few_at_a_time(
    open_writer: OpenWriter, double: ContrailApi
) -> None:
    store = await open_writer()
    running, most = 0, 0

    def begin(request: str) -> None:
        nonlocal running, most
        if request.startswith("DELETE /instance-ip"):
            running += 1
            most = max(most, running)

    def end(request: str) -> None:
        nonlocal running
        if request.startswith("DELETE /instance-ip"):
            running -= 1

    double.faults.before_request, double.faults.after_write = begin, end
    await held_network(store, hold=SHORT, addresses=5 * MAX_PARALLEL)
    double.faults.latency = 0.01
    await eventually(lambda: on_server(double) == 0)
    assert most <= MAX_PARALLEL


async def test_a_deleted_network_goes_with_its_last_hold(open_writer: OpenWriter, double: ContrailApi) -> None:
    store = await open_writer()
    network = await held_network(store, hold=SHORT)
    await store.delete_network(network.uuid)
    await eventually(lambda: network.uuid not in double.database.objects)


@pytest.mark.parametrize("writes", range(2))
async def test_a_network_whose_last_hold_ended_in_a_killed_manager_goes_with_the_next(
    open_writer: OpenWriter, double: ContrailApi, writes: int
) -> None:
    first = await open_writer(timer=False)
    network = await held_network(first, hold=SHORT)
    await first.delete_network(network.uuid)
    assert network.uuid in double.database.objects
    kill = Kill(writes)
    killed = await open_writer(kill)
    await eventually(lambda: kill.left < 0)
    await killed.close()
    next_one = await open_writer()
    await next_one.recover_virtual_machines()
    await eventually(lambda: network.uuid not in double.database.objects)

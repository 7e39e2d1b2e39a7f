"""SpanningReader: an agent's view of the networks of its node on other nodes."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.objects import NetworkSlice, VirtualMachine, VirtualNetwork, parse_endpoint
from contrail_config.store import ChangeType
from contrail_config.vnc import follower
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.slice_table import SliceKey, SliceTable
from contrail_config.vnc.spanning_reader import SpanningReader
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.recorded_reflector import eventually
from tests.support.virtual_networks import make_network, start_pod

HERE, ELSEWHERE = "node-1", "node-2"


@pytest.fixture
async def reader(vnc: VncClient) -> AsyncIterator[SpanningReader]:
    reader = SpanningReader(vnc, cluster="k8s")
    yield reader
    await reader.close()


async def add_router(caller: Caller, node: str, address: str | None = None) -> Made:
    stated = {} if address is None else {"virtual_router_ip_address": address}
    name = ["default-global-system-config", node]
    return await caller.create("virtual-router", fq_name=name, parent_type="global-system-config", **stated)


async def start_numbered(store: VncStore, networks: list[VirtualNetwork], pod: str) -> VirtualMachine:
    """Starts a pod on the other node as a manager does, with the numbers of its networks."""
    started = await start_pod(store, networks, pod, node=ELSEWHERE)
    pairs = zip(started.interfaces, networks, strict=True)
    interfaces = tuple(msgspec.structs.replace(interface, vni=network.vni) for interface, network in pairs)
    numbered = msgspec.structs.replace(started, interfaces=interfaces)
    await store.put_virtual_machine(numbered)
    return numbered


async def test_it_tells_where_pods_of_other_nodes_are_and_when_they_go(
    reader: SpanningReader, vnc_store: VncStore, caller: Caller
) -> None:
    await add_router(caller, ELSEWHERE, "192.0.2.2")
    network = await vnc_store.put_network(make_network("left", "10.1.0.0/24"))
    machine = await start_numbered(vnc_store, [network], "there")
    async with asyncio.timeout(10), reader.watch_slices([network.uuid]) as changes:
        found = (await anext(changes)).object
        assert found is not None
        assert (found.node, found.vni, found.tunnel) == (ELSEWHERE, network.vni, ("192.0.2.2",))
        (endpoint,) = map(parse_endpoint, found.endpoints)
        assert endpoint.mac == machine.interfaces[0].mac
        assert endpoint.addresses == tuple(address.address for address in machine.interfaces[0].addresses)
        assert (await anext(changes)).type is ChangeType.SYNCED
        await vnc_store.delete_virtual_machine(machine.uuid)
        gone = await anext(changes)
        assert (gone.type, gone.object) == (ChangeType.DELETED, found)


async def test_a_virtual_router_that_appears_or_changes_later_is_told(
    reader: SpanningReader, vnc_store: VncStore, caller: Caller
) -> None:
    network = await vnc_store.put_network(make_network("left", "10.1.0.0/24"))
    await start_numbered(vnc_store, [network], "there")
    async with asyncio.timeout(10), reader.watch_slices([network.uuid]) as changes:
        assert [_tunnel((await anext(changes)).object) for _ in range(2)] == [(), None]
        router = await add_router(caller, ELSEWHERE, "192.0.2.2")
        assert _tunnel((await anext(changes)).object) == ("192.0.2.2",)
        await caller.delete(router)
        assert _tunnel((await anext(changes)).object) == ()


def _tunnel(found: object) -> tuple[str, ...] | None:
    return getattr(found, "tunnel", None)


async def test_networks_of_others_are_not_told(reader: SpanningReader, vnc_store: VncStore) -> None:
    left = await vnc_store.put_network(make_network("left", "10.1.0.0/24"))
    right = await vnc_store.put_network(make_network("right", "10.2.0.0/24"))
    await start_numbered(vnc_store, [left], "a")
    async with asyncio.timeout(10), reader.watch_slices([right.uuid]) as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        await start_numbered(vnc_store, [left], "b")
        await start_numbered(vnc_store, [right], "c")
        told = (await anext(changes)).object
        assert told is not None
        assert told.network_uuid == right.uuid


async def test_slices_are_derived_for_watched_networks_only(
    reader: SpanningReader, vnc_store: VncStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is derived as a whole: for all pods of a cluster that would take long."""
    derived: list[str] = []
    derive = SliceTable.slice

    def note(table: SliceTable, key: SliceKey) -> NetworkSlice | None:
        derived.append(key.network_uuid)
        return derive(table, key)

    monkeypatch.setattr(SliceTable, "slice", note)
    left = await vnc_store.put_network(make_network("left", "10.1.0.0/24"))
    right = await vnc_store.put_network(make_network("right", "10.2.0.0/24"))
    for pod in ("a", "b", "c"):
        await start_numbered(vnc_store, [left, right], pod)
    async with asyncio.timeout(10), reader.watch_slices([left.uuid]) as changes:
        assert derived == [left.uuid]
        for _ in range(2):
            await anext(changes)
        await start_numbered(vnc_store, [right], "d")
        await start_numbered(vnc_store, [left], "e")
        found = (await anext(changes)).object
        assert found is not None
        assert len(found.endpoints) == 4
        assert set(derived) == {left.uuid}
    async with asyncio.timeout(10), reader.watch_slices([right.uuid]) as changes:
        found = (await anext(changes)).object
        assert found is not None
        assert len(found.endpoints) == 4


async def test_it_reads_virtual_machines_and_virtual_routers_in_one_watch(
    reader: SpanningReader, vnc_store: VncStore, double: ContrailApi
) -> None:
    del double.requests[:]
    async with reader.watch_virtual_machines(node=HERE), reader.watch_slices(["any"]):
        assert double.requests == ["GET /", "GET /watch"]


async def test_a_watch_that_gets_no_list_in_time_says_why(
    reader: SpanningReader, double: ContrailApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "START_DEADLINE", 0.5)
    await double.stop()
    with pytest.raises(StoreUnavailableError, match=r"cannot connect to 127\.0\.0\.1"):
        async with reader.watch_slices([]):
            pass
    await double.start()
    await eventually(lambda: reader.problems() == [])


async def test_watches_end_when_the_reader_is_closed(reader: SpanningReader, vnc_store: VncStore) -> None:
    async with reader.watch_slices(["any"]) as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        await reader.close()
        assert [change async for change in changes] == []

"""VncReader: an agent's view of the virtual machines of its node, which waits for the server."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from contrail_config.errors import StoreUnavailableError
from contrail_config.store import ChangeType
from contrail_config.vnc import follower
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.reader import VncReader
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.recorded_reflector import eventually
from tests.support.virtual_machines import make_virtual_machine

HERE, ELSEWHERE = "node-1", "node-2"


@pytest.fixture
async def reader(vnc: VncClient) -> AsyncIterator[VncReader]:
    reader = VncReader(vnc, cluster="k8s")
    yield reader
    await reader.close()


async def test_it_lists_the_machines_of_the_node_and_then_tells_changes(reader: VncReader, vnc_store: VncStore) -> None:
    mine = make_virtual_machine(pod="mine", node=HERE)
    await vnc_store.put_virtual_machine(mine)
    await vnc_store.put_virtual_machine(make_virtual_machine(pod="other", node=ELSEWHERE))
    async with asyncio.timeout(10), reader.watch_virtual_machines(node=HERE) as changes:
        assert [(await anext(changes)).object for _ in range(2)] == [mine, None]
        await vnc_store.delete_virtual_machine(mine.uuid)
        gone = await anext(changes)
        assert (gone.type, gone.object) == (ChangeType.DELETED, mine)


async def test_it_writes_nothing_and_reads_no_networks(
    reader: VncReader, vnc_store: VncStore, double: ContrailApi
) -> None:
    del double.requests[:]
    async with reader.watch_virtual_machines(node=HERE):
        assert set(double.requests) == {"GET /", "GET /watch"}


async def test_a_watch_that_gets_no_list_in_time_says_why(
    reader: VncReader, double: ContrailApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "START_DEADLINE", 0.5)
    await double.stop()
    assert reader.problems() == ["Contrail API server: not listed yet"]
    with pytest.raises(StoreUnavailableError, match=r"cannot connect to 127\.0\.0\.1"):
        async with reader.watch_virtual_machines():
            pass
    await double.start()
    await eventually(lambda: reader.problems() == [])


async def test_a_watch_ends_when_the_reader_is_closed(reader: VncReader, vnc_store: VncStore) -> None:
    async with reader.watch_virtual_machines() as changes:
        assert (await anext(changes)).type is ChangeType.SYNCED
        await reader.close()
        assert [change async for change in changes] == []

"""Watches of the store, as agents use them, skip invalid virtual machines and keep the last valid state."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from contrail_config.kubernetes.kinds import virtual_machine_object
from contrail_config.kubernetes.node_buckets import node_bucket
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import merge
from tests.support.stored_objects import VIRTUAL_MACHINE_KIND, add_node_buckets
from tests.support.virtual_machines import NODE, make_virtual_machine


@pytest.fixture(autouse=True)
def _buckets(server: FakeApiServer) -> None:
    add_node_buckets(server)


def put(server: FakeApiServer, vm: VirtualMachine, **spec: object) -> None:
    item = msgspec.json.decode(msgspec.json.encode(virtual_machine_object(vm)))
    changed = merge(item, {"metadata": {"namespace": node_bucket(vm.node), "uid": "u"}, "spec": spec})
    server.storage.put(VIRTUAL_MACHINE_KIND, changed)


async def objects(changes: AsyncIterator[Change[VirtualMachine]]) -> list[VirtualMachine]:
    """The objects until the end of the list."""
    found = list[VirtualMachine]()
    async for change in changes:
        if change.type is ChangeType.SYNCED:
            return found
        assert change.object is not None
        found.append(change.object)
    raise AssertionError("the watch ended")


async def test_an_invalid_one_is_skipped_and_the_others_are_served(
    open_manager: OpenManager, server: FakeApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    valid, invalid = make_virtual_machine("valid"), make_virtual_machine("invalid")
    put(server, valid)
    put(server, invalid, name="k8s__shop__db")
    store = await open_manager()
    async with store.watch_virtual_machines(node=NODE) as changes:
        assert await objects(changes) == [valid]
        assert [one.name for one in store.invalid_objects()] == [invalid.uuid]
        put(server, invalid)
        assert (await anext(changes)).object == invalid
        assert store.invalid_objects() == []
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert f"VirtualMachine {node_bucket(NODE)}/{invalid.uuid}: skipped" in error.getMessage()


async def test_one_that_becomes_invalid_stays_as_it_was(open_manager: OpenManager, server: FakeApiServer) -> None:
    vm, later = make_virtual_machine("vm"), make_virtual_machine("later")
    put(server, vm)
    store = await open_manager()
    async with store.watch_virtual_machines(node=NODE) as changes:
        assert await objects(changes) == [vm]
        put(server, vm, interfaces=1)
        put(server, later)
        assert (await anext(changes)).object == later, "the invalid state is no change"
        assert [one.name for one in store.invalid_objects()] == [vm.uuid]
        await store.close()
        assert [change async for change in changes] == []

"""A pod is deleted while the write of its addresses is unanswered: no address is left behind."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.client_config import ClientConfig
from tests.support import crashable_manager
from tests.support.cluster_objects import ClusterObjects
from tests.support.crashable_manager import CrashableManager
from tests.support.fake_apiserver.request_targets import RequestTarget
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.recorded_reflector import eventually
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses, stored_virtual_machines


class Hanging(FakeApiServer):
    """Executes the next write of addresses and sends it to watchers, but never answers."""

    armed = False

    async def _do(self, request: web.Request, verb: str, place: RequestTarget) -> Object:
        done = await super()._do(request, verb, place)
        if self.armed and place.kind == BLOCK_KIND:
            self.armed = False
            await asyncio.Event().wait()
        return done


@pytest.fixture
async def server() -> AsyncIterator[Hanging]:
    server = Hanging()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def life(server: Hanging, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CrashableManager]:
    """A manager whose requests time out after half a second."""

    def connect_with_short_deadline(access: ClientConfig) -> contextlib.AbstractAsyncContextManager[KubeClient]:
        return connect(access, deadline=0.5)

    monkeypatch.setattr(crashable_manager, "connect", connect_with_short_deadline)
    life = CrashableManager(server)
    await life.start()
    await eventually(lambda: not life.manager.readiness())
    yield life
    life.check()
    await life.crash()


@pytest.mark.parametrize("verb", ["create", "update"])
async def test_a_pod_deleted_before_its_allocation_is_answered_leaves_nothing(
    server: Hanging, life: CrashableManager, verb: str
) -> None:
    objects = ClusterObjects(server)
    if verb == "update":
        objects.add_pod("stays")
        await eventually(lambda: objects.status("stays"))
    before = allocated_addresses(server)
    server.armed = True
    objects.add_pod("goes")
    await eventually(lambda: len(allocated_addresses(server)) == len(before) + 1)
    objects.remove_pod("goes")
    await eventually(lambda: allocated_addresses(server) == before)
    objects.add_pod("next")
    await eventually(lambda: objects.status("next"))
    owners = {one.uuid for vm in stored_virtual_machines(server).values() for one in vm.interfaces}
    assert set(allocated_addresses(server).values()) == owners

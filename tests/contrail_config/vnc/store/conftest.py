"""Fixtures: stores on one double, as managers and agents of one cluster have them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from contrail_config.vnc.client import VncAccess, connect, unlimited
from contrail_config.vnc.follower import Intervals
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.virtual_machines import NODE

OpenVnc = Callable[..., Awaitable[VncStore]]
"""Opens one more store on the server; `before_write` is the client's."""


@pytest.fixture
async def open_vnc(double: ContrailApi, clock: FakeClock) -> AsyncIterator[OpenVnc]:
    async with AsyncExitStack() as resources:

        async def open_one(
            before_write: Callable[[], float] = unlimited,
            *,
            intervals: Intervals | None = None,
            take_over: bool = False,
        ) -> VncStore:
            access = VncAccess((double.url,))
            client = await resources.enter_async_context(connect(access, deadline=10, before_write=before_write))
            store = await VncStore.open(
                client, cluster="k8s", clock=clock, intervals=intervals or Intervals(), take_over=take_over
            )
            resources.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def vnc_store(open_vnc: OpenVnc) -> VncStore:
    return await open_vnc()


@pytest.fixture
async def router(caller: Caller) -> Made:
    """The virtual router of the node, as the site's provisioning makes it."""
    name = ["default-global-system-config", NODE]
    return await caller.create("virtual-router", fq_name=name, parent_type="global-system-config")

"""Fixtures that run each test of this folder on each server."""

from collections.abc import AsyncIterator

import pytest

from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.contrail_apis import CONTRAIL_APIS
from tests.support.contrail_callers import Caller, caller_of


@pytest.fixture(params=CONTRAIL_APIS)
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    async with CONTRAIL_APIS[request.param]() as url, caller_of(url) as caller:
        yield caller


@pytest.fixture
async def double() -> AsyncIterator[ContrailApi]:
    """The double, for what only a server can do whose pauses are controlled."""
    async with serve_contrail_api() as server:
        yield server


@pytest.fixture
async def racing(double: ContrailApi) -> AsyncIterator[Caller]:
    """A caller of the double."""
    async with caller_of(double.url) as caller:
        yield caller

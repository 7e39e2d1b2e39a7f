"""Fixtures for the client and the store: the double, and a client of it."""

from collections.abc import AsyncIterator

import pytest

from contrail_config.vnc.client import VncAccess, VncClient, connect
from tests.support.contrail_api.server import ContrailApi, serve_contrail_api
from tests.support.contrail_callers import Caller, caller_of


@pytest.fixture
async def double() -> AsyncIterator[ContrailApi]:
    async with serve_contrail_api() as server:
        yield server


@pytest.fixture
async def caller(double: ContrailApi) -> AsyncIterator[Caller]:
    """Sends requests of others to the double."""
    async with caller_of(double.url) as caller:
        yield caller


@pytest.fixture
async def vnc(double: ContrailApi) -> AsyncIterator[VncClient]:
    async with connect(VncAccess((double.url,)), deadline=10) as client:
        yield client

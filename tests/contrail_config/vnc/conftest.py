"""Fixtures for the client and the store: the double, and a client of it."""

from collections.abc import AsyncIterator

import pytest

from contrail_config.vnc.client import VncAccess, VncClient, connect
from tests.support.contrail_api.server import ContrailApi


@pytest.fixture
def double(contrail: ContrailApi) -> ContrailApi:
    return contrail


@pytest.fixture
async def vnc(double: ContrailApi) -> AsyncIterator[VncClient]:
    async with connect(VncAccess((double.url,)), deadline=10) as client:
        yield client

"""The API and the web page as a configuration gives access to them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp.plugin import AiohttpClient

from contrail_service.pages import errors_as_json
from manager.api.routes import api_routes
from manager.configuration import ManagerConfiguration
from manager.web.access import access_of
from manager.web.serving import served_routes
from tests.support.running_manager import RunningManager

Client = TestClient[web.Request, web.Application]
Serve = Callable[..., Awaitable[Client]]


@pytest.fixture
async def serve(running: RunningManager, aiohttp_client: AiohttpClient) -> Serve:
    """Serves a running manager with this configuration file."""
    await running.send_list()

    async def serve_configured(**settings: Any) -> Client:
        configuration = msgspec.convert(settings, ManagerConfiguration)
        application = web.Application(middlewares=[errors_as_json])
        api = api_routes(running.manager.queries, running.manager.change_log)
        access = access_of(configuration)
        application.add_routes(await asyncio.to_thread(served_routes, configuration, access, api=api))  # it reads files
        return await aiohttp_client(application)

    return serve_configured

"""Serves applications on addresses until a process ends: each listener has an application, and a runner, of its own."""

import logging
from contextlib import AsyncExitStack

from aiohttp import web

from contrail_service.listen import ListenAddress, serve_tcp
from contrail_service.pages import Routes, errors_as_json

log = logging.getLogger(__name__)

_SHUTDOWN = 2.0  # seconds for answers that are under way when a listener closes


def plain_runner(pages: Routes) -> web.AppRunner:
    """Returns the runner of an application that has these pages alone."""
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(pages)
    return web.AppRunner(application, access_log=None, shutdown_timeout=_SHUTDOWN)


async def set_up(stack: AsyncExitStack, runner: web.AppRunner) -> None:
    """Sets the runner up until the stack is left."""
    await runner.setup()
    stack.push_async_callback(runner.cleanup)


async def serve_api(stack: AsyncExitStack, runner: web.AppRunner, address: ListenAddress) -> None:
    """Serves there until the stack is left. Raises ListenError."""
    await set_up(stack, runner)
    log.info("serving the API on http://%s", await serve_tcp(runner, address))


async def serve_metrics(stack: AsyncExitStack, status: Routes, address: ListenAddress | None) -> None:
    """Serves health and metrics alone, for a scraper from elsewhere, if there is an address. Raises ListenError."""
    if address is None:
        return
    runner = plain_runner(status)
    await set_up(stack, runner)
    log.info("serving health and metrics on http://%s", await serve_tcp(runner, address))

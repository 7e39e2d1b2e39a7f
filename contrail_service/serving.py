"""HTTP servers of a process: each listener has its own aiohttp application and runner, until an exit stack is left."""

import logging
import os
from contextlib import AsyncExitStack

from aiohttp import web

from contrail_service.connections import BoundedRunner
from contrail_service.errors import ListenError
from contrail_service.listen import ListenAddress
from contrail_service.pages import Routes, errors_as_json

log = logging.getLogger(__name__)

SHUTDOWN_TIMEOUT = 2.0
"""Seconds for requests in progress when a listener closes."""

_BACKLOG = 1024  # a node that boots starts all its pods at once


def pages_runner(pages: Routes) -> web.AppRunner:
    """Returns the runner of an application that serves only these pages."""
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(pages)
    return BoundedRunner(application, shutdown_timeout=SHUTDOWN_TIMEOUT)


async def set_up(stack: AsyncExitStack, runner: web.AppRunner) -> None:
    """Sets up the runner and cleans it up when the stack is left."""
    await runner.setup()
    stack.push_async_callback(runner.cleanup)


async def serve_api(stack: AsyncExitStack, runner: web.AppRunner, address: ListenAddress) -> None:
    """Serves the API on the address until the stack is left. Raises ListenError."""
    await set_up(stack, runner)
    log.info("serving the API on http://%s", await serve_tcp(runner, address))


async def serve_metrics(stack: AsyncExitStack, status: Routes, address: ListenAddress | None) -> None:
    """Serves health and metrics on a listener for remote scrapers; does nothing without an address.

    Raises ListenError.
    """
    if address is None:
        return
    runner = pages_runner(status)
    await set_up(stack, runner)
    log.info("serving health and metrics on http://%s", await serve_tcp(runner, address))


async def serve_tcp(runner: web.AppRunner, address: ListenAddress) -> ListenAddress:
    """Serves a runner that is set up, and returns the address with the port that was bound. Raises ListenError."""
    site = web.TCPSite(runner, address.host, address.port, backlog=_BACKLOG)
    try:
        await site.start()
    except OSError as error:
        raise ListenError(f"cannot listen on {address}: {_reason(error)}") from error
    bound: tuple[str, int] = runner.addresses[-1][:2]
    return ListenAddress(address.host, bound[1])


def _reason(error: OSError) -> str:
    """Returns the system's message only: asyncio's own repeats the address."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)

"""The agent's pages as an aiohttp application, and how to run it.

Whoever composes a process serves one application per listener, since the listeners differ in whether they take
writes, and may have other pages beside (`/healthz`, the manager's). All of one process share one `Agent`.
"""

from collections.abc import Sequence

from aiohttp import web

from agent_api.agent import Agent
from agent_api.middlewares import answer_errors, name_charset, refuse_writes
from agent_api.routes import vm_routes
from contrail_service.pages import errors_as_json

LARGEST_BODY = 1024 * 1024
"""Bytes; a larger one is answered with 413."""

BODY_DEADLINE = 10.0
"""Seconds in which a body must be here; a slower one is answered with 408."""

_SHUTDOWN = 2.0  # seconds for answers that are under way when a listener closes


def agent_application(
    agent: Agent, *, take_writes: bool, pages: Sequence[web.RouteDef] = (), body_deadline: float = BODY_DEADLINE
) -> web.Application:
    """Returns the agent's pages and others beside; POST and DELETE are answered with 403 unless writes are taken."""
    policy = [] if take_writes else [refuse_writes]
    application = web.Application(
        middlewares=[agent.metrics.middleware(), errors_as_json, answer_errors, *policy], client_max_size=LARGEST_BODY
    )
    application.add_routes(vm_routes(agent.machines, agent.ports, body_deadline=body_deadline))
    application.add_routes(pages)
    application.on_response_prepare.append(name_charset)
    application.on_shutdown.append(lambda _application: _stop_waiting(agent))
    return application


def agent_runner(application: web.Application) -> web.AppRunner:
    """Returns the runner to serve it with: one that forgets the waiting request of a client that hung up."""
    return web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=_SHUTDOWN)


async def _stop_waiting(agent: Agent) -> None:
    agent.machines.waiters.stop()

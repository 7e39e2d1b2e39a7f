"""The agent's pages as an aiohttp application, and how to run it.

Whoever composes a process serves one application per listener, since the listeners differ in whether they take
writes, and may have other pages beside (`/healthz`, the manager's). All of one process share one `Agent`.
"""

from collections.abc import Sequence
from typing import Any

from aiohttp import web

from agent_api.connections import BoundedRunner
from agent_api.fast_path import FastPath
from agent_api.handlers.configured import ConfiguredPages
from agent_api.handlers.containers import ContainerPages
from agent_api.handlers.gateways import GatewayPages
from agent_api.handlers.instances import InstancePages
from agent_api.handlers.operation import Operation, answer_json
from agent_api.handlers.status import status_operations
from agent_api.middlewares import answer_errors, name_charset, refuse_writes
from agent_api.node_agent import NodeAgent
from agent_api.openapi import openapi_document
from agent_api.request_bodies import RequestBodyReader
from contrail_service.pages import errors_as_json

_DIRECT = web.AppKey("direct", FastPath)
_SHUTDOWN = 2.0  # seconds for answers that are under way when a listener closes


def agent_application(
    agent: NodeAgent, *, take_writes: bool, pages: Sequence[web.RouteDef] = (), bodies: RequestBodyReader | None = None
) -> web.Application:
    """Returns the agent's pages and others beside; what writes is answered with 403 unless writes are taken."""
    policy = [] if take_writes else [refuse_writes]
    application = web.Application(middlewares=[agent.metrics.middleware(), errors_as_json, answer_errors, *policy])
    operations = agent_operations(agent, bodies or RequestBodyReader())
    operations.append(_description([*operations, *status_operations(pages)]))
    application.add_routes([operation.route() for operation in operations])
    application.add_routes(pages)
    application[_DIRECT] = FastPath(agent, take_writes=take_writes)
    application.on_response_prepare.append(name_charset)
    application.on_shutdown.append(lambda _application: _stop_waiting(agent))
    return application


def agent_operations(agent: NodeAgent, bodies: RequestBodyReader) -> list[Operation]:
    """Returns all pages of an agent but the one that describes them."""
    return [
        *ConfiguredPages(agent.machines).operations(),
        *ContainerPages(agent.machines, agent.ports, bodies).operations(),
        *InstancePages(agent.machines, agent.ports, agent.stale, bodies).operations(),
        *GatewayPages(agent.gateways, bodies).operations(),
    ]


def agent_runner(application: web.Application, **bounds: Any) -> web.AppRunner:
    """Returns the runner to serve it with; other bounds than the default ones are those of `BoundedRunner`."""
    return BoundedRunner(application, direct=application[_DIRECT].answer, shutdown_timeout=_SHUTDOWN, **bounds)


def _description(described: list[Operation]) -> Operation:
    async def describe(_request: web.Request) -> web.Response:
        return answer_json(document)

    description = Operation("GET", "/openapi.json", "This description.", describe, answer=dict[str, Any])
    document = openapi_document([*described, description])
    return description


async def _stop_waiting(agent: NodeAgent) -> None:
    agent.machines.waiters.stop()

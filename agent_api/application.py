"""The agent's HTTP endpoints as an aiohttp application.

A process creates one application per listener, because listeners differ in whether they accept writes, and may add
routes of its own (`/healthz`, the manager's API). All applications of a process share one `NodeAgent`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Middleware

from agent_api.fast_path import FastPath
from agent_api.handlers.datapath import DatapathHandlers
from agent_api.handlers.gateway import GatewayHandlers
from agent_api.handlers.operation import Operation, json_bytes_response
from agent_api.handlers.port import PortHandlers
from agent_api.handlers.vm import VmHandlers
from agent_api.handlers.vm_cfg import VmCfgHandlers
from agent_api.middlewares import add_json_charset, reject_foreign_peers, reject_writes, translate_errors
from agent_api.node_agent import NodeAgent
from agent_api.openapi import openapi_document, status_operations
from agent_api.request_bodies import RequestBodyReader
from agent_api.waiters import MAX_WAITING_REQUESTS, WaitSlots
from contrail_service.connections import BoundedRunner
from contrail_service.pages import errors_as_json
from contrail_service.serving import SHUTDOWN_TIMEOUT

Guard = Callable[[Sequence[web.RouteDef]], Sequence[web.RouteDef]]
"""Returns routes that reject requests which a listener does not serve."""

_FAST_PATH = web.AppKey("fast_path", FastPath)


def _unguarded(routes: Sequence[web.RouteDef]) -> Sequence[web.RouteDef]:
    return routes


def agent_application(
    agent: NodeAgent,
    *,
    accept_writes: bool,
    root_peers_only: bool = False,
    routes: Sequence[web.RouteDef] = (),
    body_reader: RequestBodyReader | None = None,
    max_waiting: int = MAX_WAITING_REQUESTS,
    is_local: bool = False,
    guard: Guard = _unguarded,
) -> web.Application:
    """Returns an application with the agent's endpoints and further routes.

    Unless `accept_writes`, requests that write are answered with 403; with `root_peers_only`, for listeners on TCP, so
    are those of local processes of other users. `max_waiting` limits the waiting requests. `is_local`: only root of
    this node can connect, so the listener serves the datapath too. `guard` is for the agent's endpoints that clients of
    the Contrail vrouter agent do not know.
    """
    # Outermost first: metrics see every status, including those that the error middlewares produce.
    policy = _write_policy(accept_writes=accept_writes, root_peers_only=root_peers_only)
    application = web.Application(middlewares=[agent.metrics.middleware(), errors_as_json, translate_errors, *policy])
    body_reader = body_reader or RequestBodyReader()
    wire = wire_operations(agent, body_reader, WaitSlots(max_waiting))
    own = datapath_operations(agent, body_reader, is_local=is_local)
    own.append(_openapi_operation([*wire, *own, *status_operations(routes)]))
    application.add_routes([operation.route() for operation in wire])
    application.add_routes(guard([operation.route() for operation in own]))
    application.add_routes(routes)
    application[_FAST_PATH] = FastPath(agent, accept_writes=accept_writes and not root_peers_only)
    application.on_response_prepare.append(add_json_charset)
    # Waiting requests would otherwise delay the shutdown of a listener by up to their wait time.
    application.on_shutdown.append(lambda _application: _stop_waiters(agent))
    return application


def _write_policy(*, accept_writes: bool, root_peers_only: bool) -> list[Middleware]:
    if not accept_writes:
        return [reject_writes]
    return [reject_foreign_peers] if root_peers_only else []


def wire_operations(agent: NodeAgent, body_reader: RequestBodyReader, wait_slots: WaitSlots) -> list[Operation]:
    """Returns the operations that clients of the Contrail vrouter agent know."""
    return [
        *VmCfgHandlers(agent.virtual_machines, wait_slots).operations(),
        *VmHandlers(agent.virtual_machines, agent.ports, body_reader).operations(),
        *PortHandlers(agent.virtual_machines, agent.ports, agent.stale_ports, body_reader).operations(),
        *GatewayHandlers(agent.gateways, body_reader).operations(),
    ]


def datapath_operations(agent: NodeAgent, body_reader: RequestBodyReader, *, is_local: bool) -> list[Operation]:
    """Returns the operations on the datapath, if the agent has one."""
    if agent.datapath is None:
        return []
    handlers = DatapathHandlers(agent.datapath, body_reader)
    return handlers.operations() + (handlers.local_operations() if is_local else [])


def agent_runner(application: web.Application, **limits: Any) -> web.AppRunner:
    """Returns a runner for the application; `limits` override the defaults of `BoundedRunner`."""
    fast_path = application[_FAST_PATH]
    return BoundedRunner(application, fast_path=fast_path, shutdown_timeout=SHUTDOWN_TIMEOUT, **limits)


def _openapi_operation(described: list[Operation]) -> Operation:
    async def get_document(_request: web.Request) -> web.Response:
        return json_bytes_response(document)

    # The document also describes the endpoint that serves it, hence the order.
    operation = Operation("GET", "/openapi.json", "This document.", get_document, response=dict[str, Any])
    document = openapi_document([*described, operation])
    return operation


async def _stop_waiters(agent: NodeAgent) -> None:
    agent.virtual_machines.waiters.stop()
    if agent.datapath is not None:
        agent.datapath.feed.waiters.stop()

"""Routes of the API: `/v1/summary`, the lists, such as `/v1/pods`, and `/v1/watch`.

A list is `{"items": [...]}`. `?namespace=` and `?name=` filter items. `?limit=` is the length of a page; one that is
not the last has a token as `continue`, with which the next one is requested. Any other key is an error: ignoring a
mistyped key would return all items. `/v1/pods/{namespace}/{name}/trace` is one object. `/v1/watch` is described in
`manager.api.watch`, `/v1/openapi.json` describes all of them.

Errors are HTTP errors; `contrail_service.pages.errors_as_json` writes them.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from aiohttp import web

from contrail_config.errors import InvalidTokenError, StoreError
from contrail_service.pages import Handler, json_response
from manager.api.change_log import ChangeLog
from manager.api.network_slices import SliceFinder
from manager.api.openapi import NO_AGENT, NO_CLUSTER, PORTS_PATH, TRACE_PATH, openapi_document
from manager.api.paging import DEFAULT_LIMIT, MAX_LIMIT, Page, PageRequest, read_token
from manager.api.queries import FindPorts, ItemFilter, ManagerQueries, PortsUnansweredError
from manager.api.types import DEFAULT_KINDS, PodTrace, SliceView, WatchedKind
from manager.api.watch import Watches, WatchRequest

Query = Callable[[ItemFilter, PageRequest], Awaitable[Page[Any]]]
TraceQuery = Callable[[str, str], Awaitable[PodTrace | None]]

_KEYS = ("namespace", "name", "limit", "continue")
_WATCH_KEYS = ("kind", "namespace", "name")


def _always_ready() -> str:
    return ""


def api_routes(
    queries: ManagerQueries,
    change_log: ChangeLog,
    *,
    unavailable: Callable[[], str] = _always_ready,
    trace: TraceQuery | None = None,
    ports: FindPorts | None = None,
    requested_ports: FindPorts | None = None,
    slices: SliceFinder | None = None,
) -> list[web.RouteDef]:
    """Returns the routes for the caller's application.

    `trace` returns the time line of a pod by namespace and name, None if there is no such pod; it is missing outside of
    a cluster. `ports` finds those of a virtual machine where the agent is in this process, `requested_ports` where the
    agent of its node is asked: only for a single pod. `slices` finds network slices where the store has them.
    `unavailable` returns why requests cannot be served now, which is answered with status 503; empty if they can.
    """
    queries_by_path: dict[str, Query] = {
        "/v1/networks": queries.networks,
        "/v1/pods": queries.pods,
        "/v1/interfaces": queries.interfaces,
        "/v1/events": queries.events,
        "/v1/pod-networks": queries.pod_networks,
        "/v1/addresses": queries.addresses,
        "/v1/nodes": queries.nodes,
        "/v1/network-slices": _no_slices if slices is None else partial(queries.network_slices, slices),
    }
    find_ports = ports or requested_ports
    if find_ports is not None:
        queries_by_path[PORTS_PATH] = partial(queries.ports, find_ports)
    handlers = {path: _list_handler(query, unavailable) for path, query in queries_by_path.items()}
    if ports is None:
        handlers[PORTS_PATH] = _of_single_pods(handlers.get(PORTS_PATH, _no_ports))
    lists = [web.get(path, handler) for path, handler in handlers.items()]
    watch = web.get("/v1/watch", _watch_handler(Watches(queries, change_log), unavailable), allow_head=False)
    document = web.get("/v1/openapi.json", _document_handler(openapi_document()))
    traced = web.get(TRACE_PATH, _trace_handler(trace, unavailable))
    return [web.get("/v1/summary", _summary_handler(queries, unavailable)), *lists, traced, watch, document]


async def _no_slices(_item_filter: ItemFilter, _page: PageRequest) -> Page[SliceView]:
    return Page(())


def _of_single_pods(handler: Handler) -> Handler:
    """Returns a handler of the ports of one pod: a list of those of many would ask as many agents."""

    async def handle(request: web.Request) -> web.StreamResponse:
        is_of_one = "namespace" in request.query and "name" in request.query
        return await (handler if is_of_one else _no_ports)(request)

    return handle


async def _no_ports(request: web.Request) -> web.Response:
    _item_filter(request)
    _page_request(request)
    return json_response({"error": "ports are known to the agents of their nodes", "reason": NO_AGENT}, status=404)


def _document_handler(document: bytes) -> Handler:
    async def handle(_request: web.Request) -> web.Response:
        return web.Response(body=document, content_type="application/json")

    return handle


def _summary_handler(queries: ManagerQueries, unavailable: Callable[[], str]) -> Handler:
    async def handle(_request: web.Request) -> web.Response:
        return await _answer(queries.summary, unavailable)

    return handle


def _list_handler(query: Query, unavailable: Callable[[], str]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        # Validated first, so that a mistyped key is an error on a standby too.
        item_filter, page = _item_filter(request), _page_request(request)
        return await _answer(partial(query, item_filter, page), unavailable)

    return handle


def _trace_handler(trace: TraceQuery | None, unavailable: Callable[[], str]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        _item_filter(request, keys=())
        if trace is None:
            content = {"error": "time lines of pods exist in a cluster only", "reason": NO_CLUSTER}
            return json_response(content, status=404)
        namespace, name = request.match_info["namespace"], request.match_info["name"]

        async def found() -> PodTrace:
            traced = await trace(namespace, name)
            if traced is None:
                raise web.HTTPNotFound(text=f"pod {namespace[:253]}/{name[:253]}: not found")
            return traced

        return await _answer(found, unavailable)

    return handle


def _watch_handler(watches: Watches, unavailable: Callable[[], str]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        watch = _watch_request(request)
        if reason := unavailable():
            raise web.HTTPServiceUnavailable(text=reason)
        return await watches.serve(request, watch)

    return handle


async def _answer(query: Callable[[], Awaitable[Any]], unavailable: Callable[[], str]) -> web.Response:
    if reason := unavailable():
        raise web.HTTPServiceUnavailable(text=reason)
    try:
        return json_response(await query())
    except InvalidTokenError as error:
        raise web.HTTPBadRequest(text=str(error)) from error
    except StoreError as error:
        raise web.HTTPServiceUnavailable(text=f"the store is not available: {error}") from error
    except PortsUnansweredError as error:
        raise web.HTTPGatewayTimeout(text=str(error)) from error


def _watch_request(request: web.Request) -> WatchRequest:
    item_filter = _item_filter(request, keys=_WATCH_KEYS)
    text = request.query.get("kind", ",".join(DEFAULT_KINDS))
    try:
        kinds = tuple(dict.fromkeys(WatchedKind(kind) for kind in text.split(",")))
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"kind: use a list of {', '.join(WatchedKind)}: {error}") from error
    return WatchRequest(kinds, item_filter, request.headers.get("Last-Event-ID", ""))


def _item_filter(request: web.Request, *, keys: Sequence[str] = _KEYS) -> ItemFilter:
    for key in request.query:
        if key not in keys:
            raise web.HTTPBadRequest(text=f"unknown query key {key!r}: use {', '.join(keys) or 'none'}")
        if len(request.query.getall(key)) > 1:
            raise web.HTTPBadRequest(text=f"duplicate query key {key!r}")
    return ItemFilter(namespace=request.query.get("namespace"), name=request.query.get("name"))


def _page_request(request: web.Request) -> PageRequest:
    text, token = request.query.get("limit", str(DEFAULT_LIMIT)), request.query.get("continue")
    if not (text.isascii() and text.isdigit() and len(text) < 5 and 1 <= int(text) <= MAX_LIMIT):
        raise web.HTTPBadRequest(text=f"limit: {text[:20]!r} is not a number from 1 to {MAX_LIMIT}")
    try:
        return PageRequest(int(text), None if token is None else read_token(token))
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"continue: {error}") from error

"""Routes of the API: `/v1/summary`, and the lists `/v1/networks`, `/v1/pods`, `/v1/interfaces` and `/v1/events`.

A list is `{"items": [...]}`. `?namespace=` and `?name=` filter items. `?limit=` is the length of a page; one that is
not the last has a token as `continue`, with which the next one is requested. Any other key is an error: ignoring a
mistyped key would return all items.

Errors are HTTP errors; `contrail_service.pages.errors_as_json` writes them.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web

from contrail_config.errors import StoreError
from contrail_service.pages import Handler, json_response
from manager.api.paging import DEFAULT_LIMIT, MAX_LIMIT, Page, PageRequest, read_token
from manager.api.queries import ItemFilter, ManagerQueries

Query = Callable[[ItemFilter, PageRequest], Awaitable[Page[Any]]]

_KEYS = ("namespace", "name", "limit", "continue")


def _always_ready() -> str:
    return ""


def api_routes(queries: ManagerQueries, *, unavailable: Callable[[], str] = _always_ready) -> list[web.RouteDef]:
    """Returns the routes for the caller's application.

    `unavailable` returns why requests cannot be served now, which is answered with status 503; empty if they can.
    """
    queries_by_path: dict[str, Query] = {
        "/v1/networks": queries.networks,
        "/v1/pods": queries.pods,
        "/v1/interfaces": queries.interfaces,
        "/v1/events": queries.events,
    }
    lists = [web.get(path, _list_handler(query, unavailable)) for path, query in queries_by_path.items()]
    return [web.get("/v1/summary", _summary_handler(queries, unavailable)), *lists]


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


async def _answer(query: Callable[[], Awaitable[Any]], unavailable: Callable[[], str]) -> web.Response:
    if reason := unavailable():
        raise web.HTTPServiceUnavailable(text=reason)
    try:
        return json_response(await query())
    except StoreError as error:
        raise web.HTTPServiceUnavailable(text=f"the store is not available: {error}") from error


def _item_filter(request: web.Request) -> ItemFilter:
    for key in request.query:
        if key not in _KEYS:
            raise web.HTTPBadRequest(text=f"unknown query key {key!r}: use {', '.join(_KEYS)}")
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

"""Routes of the API: `/v1/networks`, `/v1/pods`, `/v1/interfaces` and `/v1/events`, each `{"items": [...]}`.

`?namespace=` and `?name=` filter items. Any other key is an error: ignoring a mistyped key would return all items.
Errors are HTTP errors; `contrail_service.pages.errors_as_json` writes them.
"""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from contrail_config.errors import StoreError
from contrail_config.objects import ConfigObject
from contrail_service.pages import Handler, json_response
from manager.api.queries import ItemFilter, ManagerQueries

Query = Callable[[ItemFilter], Awaitable[Sequence[ConfigObject]]]

_KEYS = ("namespace", "name")


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
    return [web.get(path, _handler(query, unavailable)) for path, query in queries_by_path.items()]


def _handler(query: Query, unavailable: Callable[[], str]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        # Validated first, so that a mistyped key is an error on a standby too.
        item_filter = _item_filter(request)
        if reason := unavailable():
            raise web.HTTPServiceUnavailable(text=reason)
        try:
            items = await query(item_filter)
        except StoreError as error:
            raise web.HTTPServiceUnavailable(text=f"the store is not available: {error}") from error
        return json_response({"items": items})

    return handle


def _item_filter(request: web.Request) -> ItemFilter:
    for key in request.query:
        if key not in _KEYS:
            raise web.HTTPBadRequest(text=f"unknown query key {key!r}: use {' or '.join(_KEYS)}")
        if len(request.query.getall(key)) > 1:
            raise web.HTTPBadRequest(text=f"duplicate query key {key!r}")
    return ItemFilter(namespace=request.query.get("namespace"), name=request.query.get("name"))

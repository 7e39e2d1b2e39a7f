"""Routes of the API: `/v1/networks`, `/v1/pods`, `/v1/interfaces` and `/v1/events`, each `{"items": [...]}`.

`?namespace=` and `?name=` choose items; any other key is an error, since one that is mistyped and ignored would answer
with everything. Errors are HTTP errors; `contrail_service.pages.errors_as_json` writes them.
"""

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from contrail_config.errors import StoreError
from contrail_config.objects import ConfigObject
from contrail_service.pages import Handler, json_response
from manager.api.queries import ItemFilter, ManagerQueries

Collect = Callable[[ItemFilter], Awaitable[Sequence[ConfigObject]]]

_KEYS = ("namespace", "name")


def _answer_all() -> str:
    return ""


def api_routes(views: ManagerQueries, *, refusal: Callable[[], str] = _answer_all) -> list[web.RouteDef]:
    """Returns the routes, for an application of the caller's.

    `refusal` tells why nothing can be answered now, which is said with status 503; empty: it can.
    """
    pages: dict[str, Collect] = {
        "/v1/networks": views.networks,
        "/v1/pods": views.pods,
        "/v1/interfaces": views.interfaces,
        "/v1/events": views.events,
    }
    return [web.get(path, _handler(collect, refusal)) for path, collect in pages.items()]


def _handler(collect: Collect, refusal: Callable[[], str]) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        selection = _selection(request)
        if reason := refusal():
            raise web.HTTPServiceUnavailable(text=reason)
        try:
            items = await collect(selection)
        except StoreError as error:
            raise web.HTTPServiceUnavailable(text=f"the store cannot answer: {error}") from error
        return json_response({"items": items})

    return handle


def _selection(request: web.Request) -> ItemFilter:
    for key in request.query:
        if key not in _KEYS:
            raise web.HTTPBadRequest(text=f"unknown query key {key!r}: there are {' and '.join(_KEYS)}")
        if len(request.query.getall(key)) > 1:
            raise web.HTTPBadRequest(text=f"query key {key!r} is there more than once")
    return ItemFilter(namespace=request.query.get("namespace"), name=request.query.get("name"))

"""What the manager serves on its listener: the status pages, the API, and the web page if it is configured."""

from collections.abc import Sequence

from aiohttp import web

from manager.configuration import ManagerConfiguration
from manager.web.access import Access
from manager.web.routes import page_routes


def served_routes(
    configuration: ManagerConfiguration,
    access: Access,
    *,
    api: Sequence[web.RouteDef],
    status: Sequence[web.RouteDef] = (),
) -> list[web.RouteDef]:
    """Returns the routes as far as `access` allows them: the status pages and the page's files without its token."""
    page = page_routes() if configuration.web_page else []
    return [*access.by_host(status), *access.by_host_and_token(api), *access.by_host(page)]

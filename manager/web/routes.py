"""Routes of the web page: `/`, and its files below `/web/`. They only read, and take no parameters.

The page fetches nothing but these files and the API, runs no script but its own files, and cannot be framed: what
tenants write is only ever text in it, and the policy holds even if that were forgotten somewhere.
"""

from typing import Final

from aiohttp import ETag, web

from contrail_service.pages import Handler
from manager.web.files import PageFile, page_files

INDEX: Final = "index.html"

POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # no text becomes HTML or script
        "trusted-types 'none'",
    ]
)

HEADERS: Final = {
    "Cache-Control": "no-cache",  # kept, but asked for again: a page and its modules are of one release
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def page_routes() -> list[web.RouteDef]:
    """Returns the routes for the caller's application. Reads the files."""
    return [web.get("/" if file.name == INDEX else f"/web/{file.name}", _file_handler(file)) for file in page_files()]


def _file_handler(file: PageFile) -> Handler:
    tag = ETag(file.tag)

    async def handle(request: web.Request) -> web.Response:
        known = request.if_none_match or ()
        if any(each.value in (file.tag, "*") for each in known):
            response = web.Response(status=304, headers=HEADERS)
        else:
            response = web.Response(body=file.content, headers=HEADERS, content_type=file.content_type, charset="utf-8")
        response.etag = tag
        return response

    return handle

"""Error responses: plain text, but 401, 412 and 413, which are HTML pages with the text in `<pre>`."""

from html import escape
from http import HTTPStatus

from aiohttp import web

_PAGES = frozenset({401, 412, 413})


class ApiError(Exception):
    """Sent as an error response."""

    def __init__(self, status: int, text: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}

    def response(self) -> web.Response:
        text = str(self)
        if self.status in _PAGES:
            title = f"Error: {self.status} {HTTPStatus(self.status).phrase}"
            text = (
                f"<!DOCTYPE html><html><head><title>{title}</title></head><body><pre>{escape(text)}</pre></body></html>"
            )
        return web.Response(status=self.status, text=text, content_type="text/html", headers=self.headers)


def internal_error() -> ApiError:
    """The answer to a body that the server cannot parse."""
    return ApiError(500, "Internal Server Error")


def unknown_id(uuid: str) -> ApiError:
    return ApiError(404, f"Unknown id: {uuid}")


def name_not_found(fq_name: object) -> ApiError:
    return ApiError(404, f"Name {fq_name} not found")


def no_id_error(text: str) -> ApiError:
    """A lookup that fails behind the checks, as a traceback's last line."""
    return ApiError(500, f"vnc_api.exceptions.NoIdError: Unknown id: {text}")


def bad_property(name: str, problem: str) -> ApiError:
    return ApiError(400, f"Bad property in create: Error validating property {name}: {problem}")


def unknown_reference(reference: object) -> ApiError:
    return ApiError(400, f"Unknown reference in resource create {reference}")

"""The query parameter `wait`, by which a request is held until there is something to answer."""

import re

from aiohttp import web

from agent_api.errors import BadRequestError
from agent_api.handlers.operation import QueryParameter

MAX_WAIT = 60.0
"""Seconds; the upper limit of `?wait=`."""

_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def wait_parameter(condition: str) -> QueryParameter:
    """Returns the parameter; `condition` completes "Seconds to wait for"."""
    schema = {"type": "string", "pattern": "^[0-9]{1,9}(\\.[0-9]{1,9})?$", "default": "0"}
    return QueryParameter("wait", f"Seconds to wait for {condition}, at most 60.", schema)


def wait_seconds(request: web.Request) -> float:
    """Returns seconds, at most `MAX_WAIT`; 0 if the request does not ask to wait. Raises BadRequestError."""
    text = request.query.get("wait", "0")
    if _SECONDS.fullmatch(text) is None:
        raise BadRequestError(f"wait: {text[:80]!r} is not a number of seconds")
    return min(float(text), MAX_WAIT)

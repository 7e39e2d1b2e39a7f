"""`/datapath`: the desired state of the node's datapath, for the process that programs the kernel, and its reports.

Only on the Unix socket: over TCP any local process could read all of it, and occupy the few slots of waiting requests.
`/datapath/report` is served everywhere, for operators.

A follower, which programs what it reads, names itself; one at a time gets the state (`FollowerLease`).
"""

import asyncio
import re

import msgspec
from aiohttp import web

from agent_api.datapath.feed import VersionedState
from agent_api.datapath.linux_datapath import DatapathStatus, LinuxDatapath
from agent_api.datapath.report import DatapathReport, parse_report
from agent_api.errors import BadRequestError
from agent_api.handlers.operation import (
    BODY_ERRORS,
    Operation,
    QueryParameter,
    json_bytes_response,
    ok_response,
    query_parameter,
)
from agent_api.handlers.waiting import wait_parameter, wait_seconds
from agent_api.metrics import exclude_wait_time
from agent_api.request_bodies import RequestBodyReader
from agent_api.waiters import WaitSlots

MAX_WAITING = 16
"""Requests that wait at the same time: one per process that programs the kernel, and those that hung up just now."""

_WAIT = wait_parameter("another version")
_FOLLOWER_PATTERN = "[!-~]{1,64}"
_FOLLOWER = QueryParameter(
    "follower",
    "The name of the process that programs the kernel, unique to it: it waits until no other one does.",
    {"type": "string", "pattern": f"^{_FOLLOWER_PATTERN}$"},
)
_VERSION = QueryParameter(
    "version", "The version that the client has: no response before another one.", {"type": "string", "minLength": 1}
)


class DatapathHandlers:
    """The endpoints of the desired state and of the reports."""

    def __init__(self, datapath: LinuxDatapath, body_reader: RequestBodyReader) -> None:
        self._datapath = datapath
        self._body_reader = body_reader
        self._wait_slots = WaitSlots(MAX_WAITING)

    def operations(self) -> list[Operation]:
        """Returns the operations for all listeners."""
        summary = "The latest report on the node's datapath."
        return [Operation("GET", "/datapath/report", summary, self._get_status, response=DatapathStatus)]

    def local_operations(self) -> list[Operation]:
        """Returns the operations for the Unix socket."""
        return [
            Operation(
                "GET",
                "/datapath",
                "The desired state of the node's datapath.",
                self._get,
                response=VersionedState,
                errors=(409,),
                query=(_WAIT, _VERSION, _FOLLOWER),
            ),
            Operation(
                "POST",
                "/datapath",
                "Reports the state of the kernel.",
                self._report,
                request_body=DatapathReport,
                errors=(*BODY_ERRORS, 409),
                query=(_FOLLOWER,),
            ),
        ]

    async def _report(self, request: web.Request) -> web.Response:
        follower = _follower(request)
        if follower is None:
            raise BadRequestError("follower: missing; a report is that of a follower")
        async with self._body_reader.read(request) as body:
            report = parse_report(body)
            self._datapath.lease.claim(follower)
            self._datapath.report(report)
        return ok_response()

    async def _get_status(self, _request: web.Request) -> web.Response:
        return json_bytes_response(msgspec.json.encode(self._datapath.status()))

    async def _get(self, request: web.Request) -> web.Response:
        known, wait, follower = query_parameter(request, "version"), wait_seconds(request), _follower(request)
        # Without a known version the wait is only for the first list, but that may be long too.
        with self._wait_slots.take(), exclude_wait_time():
            if follower is None:
                return json_bytes_response(await self._datapath.feed.get(known=known, wait=wait))
            end = asyncio.get_running_loop().time() + wait
            async with self._datapath.lease.held(follower, wait=wait):
                remaining = max(0.0, end - asyncio.get_running_loop().time())
                return json_bytes_response(await self._datapath.feed.get(known=known, wait=remaining))


def _follower(request: web.Request) -> str | None:
    """Returns the parameter, None if it is missing. Raises BadRequestError."""
    follower = query_parameter(request, _FOLLOWER.name)
    if follower is not None and not re.fullmatch(_FOLLOWER_PATTERN, follower):
        raise BadRequestError(f"follower: {follower[:80]!r} is not a name of at most 64 characters without blanks")
    return follower

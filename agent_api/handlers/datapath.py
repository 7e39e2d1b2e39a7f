"""`/datapath`: the desired state of the node's datapath, for the process that programs the kernel, and its reports.

Only on the Unix socket: over TCP any local process could read all of it, and occupy the few slots of waiting requests.
`/datapath/report` is served everywhere, for operators.
"""

import msgspec
from aiohttp import web

from agent_api.datapath.feed import VersionedState
from agent_api.datapath.linux_datapath import DatapathStatus, LinuxDatapath
from agent_api.datapath.report import DatapathReport, parse_report
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
                query=(_WAIT, _VERSION),
            ),
            Operation(
                "POST",
                "/datapath",
                "Reports the state of the kernel.",
                self._report,
                request_body=DatapathReport,
                errors=BODY_ERRORS,
            ),
        ]

    async def _report(self, request: web.Request) -> web.Response:
        async with self._body_reader.read(request) as body:
            self._datapath.reports.add(parse_report(body))
        return ok_response()

    async def _get_status(self, _request: web.Request) -> web.Response:
        return json_bytes_response(msgspec.json.encode(self._datapath.status()))

    async def _get(self, request: web.Request) -> web.Response:
        known, wait = query_parameter(request, "version"), wait_seconds(request)
        # Without a known version the wait is only for the first list, but that may be long too.
        with self._wait_slots.take(), exclude_wait_time():
            body = await self._datapath.feed.get(known=known, wait=wait)
        return json_bytes_response(body)

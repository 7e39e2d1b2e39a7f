"""`/datapath`: the desired state of the node's datapath, for the process that programs the kernel.

Only on the Unix socket: over TCP any local process could read all of it, and occupy the few slots of waiting requests.
"""

from aiohttp import web

from agent_api.datapath.feed import VersionedState
from agent_api.datapath.linux_datapath import LinuxDatapath
from agent_api.handlers.operation import Operation, QueryParameter, json_bytes_response, query_parameter
from agent_api.handlers.waiting import wait_parameter, wait_seconds
from agent_api.metrics import exclude_wait_time
from agent_api.waiters import WaitSlots

MAX_WAITING = 16
"""Requests that wait at the same time: one per process that programs the kernel, and those that hung up just now."""

_WAIT = wait_parameter("another version")
_VERSION = QueryParameter(
    "version", "The version that the client has: no response before another one.", {"type": "string", "minLength": 1}
)


class DatapathHandlers:
    """The endpoint of the desired state."""

    def __init__(self, datapath: LinuxDatapath) -> None:
        self._datapath = datapath
        self._wait_slots = WaitSlots(MAX_WAITING)

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
            )
        ]

    async def _get(self, request: web.Request) -> web.Response:
        known, wait = query_parameter(request, "version"), wait_seconds(request)
        # Without a known version the wait is only for the first list, but that may be long too.
        with self._wait_slots.take(), exclude_wait_time():
            body = await self._datapath.feed.get(known=known, wait=wait)
        return json_bytes_response(body)

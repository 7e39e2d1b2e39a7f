"""Fast path: answers our own plugin's requests straight from the received bytes, bypassing aiohttp.

The start of a pod waits for these responses. An agent that was idle for a few milliseconds finds the CPU caches cold,
and aiohttp's own work (parser, task, request, router, middlewares, response) then dominates the latency.

A request is answered here only if it arrives in one piece, in exactly the plugin's form, and succeeds immediately. It
uses the same tables as the handlers and gives the same status, headers and metrics. Anything else (an additional
header, a VirtualMachine that does not exist yet, an invalid value, a slow disk) has no effect here and goes to the
handlers from its first byte. aiohttp does not reveal whether its parser holds the beginning of a further request, so
after any bytes that are not one whole request with the plugin's headers, the rest of the connection is aiohttp's
(`is_whole_request`).
"""

import re
import time
from collections.abc import Callable
from typing import NamedTuple

from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE

from agent_api.errors import AgentError
from agent_api.field_types import UUID_PATTERN
from agent_api.node_agent import NodeAgent
from agent_api.ports.container import parse_container_ports
from agent_api.request_bodies import SMALL_BODY_SIZE
from contrail_service.pages import JSON_CONTENT_TYPE

_TEXT = r"[\w.-]{1,512}"  # characters that need no quoting in a URL
_HOST = r" HTTP/1\.1\r\nHost: [\w.-]+(?::\d{1,5})?"
# Anchored by fullmatch: any deviation from the plugin's exact bytes goes to aiohttp, which parses HTTP properly.
_SHOW = re.compile(rf"GET /vm-cfg/(\w{_TEXT})\?wait=\d{{1,9}}(?:\.\d{{1,9}})?(?:&uid=({_TEXT}))?{_HOST}", re.ASCII)
_BODY = r"\r\nContent-Type: application/json\r\nContent-Length: (\d{1,7})"
_PLUG = re.compile(rf"POST /vm{_HOST}{_BODY}", re.ASCII)
_UNPLUG = re.compile(rf"DELETE /vm/({UUID_PATTERN})(?:/({UUID_PATTERN}))?\?vm-id=({_TEXT}){_HOST}", re.ASCII)
# Also requests of the plugin and its daemon that are not answered here, since they share connections with these.
_WHOLE = re.compile(rf"(?:GET|POST|PUT|DELETE) /[!-~]*{_HOST}(?:{_BODY})?", re.ASCII)


class _Result(NamedTuple):
    """The result of a request: its route, for the metrics, and the response body."""

    route: str
    body: bytes = b"{}"


class FastPath:
    """The fast path of one listener; unless `accept_writes`, requests that write go to the handlers."""

    def __init__(self, agent: NodeAgent, *, accept_writes: bool) -> None:
        self._virtual_machines = agent.virtual_machines
        self._ports = agent.ports
        self._metrics = agent.metrics
        self._accept_writes = accept_writes

    def handle(self, data: bytes, write: Callable[[bytes], None]) -> bool:
        """Returns whether `data` was one whole request that succeeded; its response was written then."""
        begin = time.perf_counter()
        head, end, body = data.partition(b"\r\n\r\n")
        if not end:
            return False
        request = head.decode("latin-1")  # decodes any bytes; non-ASCII ones match no pattern
        method = request.partition(" ")[0]
        try:
            result = self._execute(method, request, body)
        except AgentError:
            return False  # nothing was changed; the handler fails in the same way, and answers and logs the error
        if result is None:
            return False
        write(_response(result.body))
        self._metrics.record(method, result.route, 200, time.perf_counter() - begin)
        return True

    def is_whole_request(self, data: bytes) -> bool:
        """Returns whether `data` is exactly one request with the plugin's headers, whatever its response will be."""
        head, end, body = data.partition(b"\r\n\r\n")
        match = _WHOLE.fullmatch(head.decode("latin-1"))
        return bool(end) and match is not None and int(match[1] or 0) == len(body)

    def _execute(self, method: str, head: str, body: bytes) -> _Result | None:
        if method == "GET":
            return None if body else self._show(head)
        if not self._accept_writes:
            return None
        if method == "POST":
            return self._plug(head, body)
        return None if body else self._unplug(head)

    def _show(self, head: str) -> _Result | None:
        if (match := _SHOW.fullmatch(head)) is None:
            return None
        served = self._virtual_machines.find(match[1], uid=match[2])
        return None if served is None else _Result("/vm-cfg/{name}", served.vm_cfg())

    def _plug(self, head: str, body: bytes) -> _Result | None:
        match = _PLUG.fullmatch(head)
        # An incomplete body and pipelined requests fail the comparison of the length.
        if match is None or int(match[1]) != len(body) or len(body) > SMALL_BODY_SIZE:
            return None
        return _Result("/vm") if self._ports.plug_nowait(parse_container_ports(body)) else None

    def _unplug(self, head: str) -> _Result | None:
        if (match := _UNPLUG.fullmatch(head)) is None:
            return None
        vm, vmi, container = match.groups()
        if not self._ports.unplug_nowait(vm, vmi_uuid=vmi, container=container):
            return None
        return _Result("/vm/{vm}/{vmi}" if vmi else "/vm/{vm}")


def _response(body: bytes) -> bytes:
    # The headers and their order are those of an aiohttp response.
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {JSON_CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
        f"Date: {rfc822_formatted_time()}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"
    )
    return head.encode() + body

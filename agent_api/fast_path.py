"""Answers the requests of our own plugin as soon as their bytes are here, without the steps that aiohttp takes.

A pod's start waits for these answers. An agent that had nothing to do for some milliseconds finds the processor's
caches cold, and the way through aiohttp (parser, task, request, route, middlewares, response) is then most of the cost.

Only what comes in one piece, in the plugin's own form, and goes right at once is answered here: by the same tables as
behind the pages, with the same status, headers and metrics. All else, be it a header more, a list that is not there
yet, a wrong value or a slow disk, changes nothing here, and is left to the pages from its first byte.
"""

import re
import time
from collections.abc import Callable
from typing import NamedTuple

from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE

from agent_api.errors import AgentError
from agent_api.middlewares import UPSTREAM_JSON
from agent_api.node_agent import NodeAgent
from agent_api.ports.container import parse_container_ports
from agent_api.request_bodies import SMALL_BODY
from agent_api.values import UUID_PATTERN

_TEXT = r"[\w.-]{1,512}"  # what nobody need quote in a URL
_HOST = r" HTTP/1\.1\r\nHost: [\w.-]+(?::\d{1,5})?"
_SHOW = re.compile(rf"GET /vm-cfg/(\w{_TEXT})\?wait=\d{{1,9}}(?:\.\d{{1,9}})?(?:&uid=({_TEXT}))?{_HOST}", re.ASCII)
_PLUG = re.compile(rf"POST /vm{_HOST}\r\nContent-Type: application/json\r\nContent-Length: (\d{{1,5}})", re.ASCII)
_UNPLUG = re.compile(rf"DELETE /vm/({UUID_PATTERN})(?:/({UUID_PATTERN}))?\?vm-id=({_TEXT}){_HOST}", re.ASCII)


class _Done(NamedTuple):
    """What a request led to: the route that it is counted under, and the body of its answer."""

    route: str
    body: bytes = b"{}"


class FastPath:
    """Answers of one listener; what writes is left to the pages unless writes are taken."""

    def __init__(self, agent: NodeAgent, *, take_writes: bool) -> None:
        self._machines = agent.machines
        self._ports = agent.ports
        self._metrics = agent.metrics
        self._take_writes = take_writes

    def answer(self, data: bytes, write: Callable[[bytes], None]) -> bool:
        """Tells whether the data was one whole request that is done; its answer is written then."""
        begin = time.perf_counter()
        head, _, body = data.partition(b"\r\n\r\n")
        request = head.decode("latin-1")
        method = request.partition(" ")[0]
        try:
            done = self._do(method, request, body)
        except AgentError:
            return False
        if done is None:
            return False
        write(_page(done.body))
        self._metrics.count(method, done.route, 200, time.perf_counter() - begin)
        return True

    def _do(self, method: str, head: str, body: bytes) -> _Done | None:
        if method == "GET":
            return None if body else self._show(head)
        if not self._take_writes:
            return None
        if method == "POST":
            return self._plug(head, body)
        return None if body else self._unplug(head)

    def _show(self, head: str) -> _Done | None:
        if (match := _SHOW.fullmatch(head)) is None:
            return None
        served = self._machines.named(match[1], uid=match[2])
        return None if served is None else _Done("/vm-cfg/{name}", served.vm_cfg())

    def _plug(self, head: str, body: bytes) -> _Done | None:
        match = _PLUG.fullmatch(head)
        if match is None or int(match[1]) != len(body) or len(body) > SMALL_BODY:
            return None
        return _Done("/vm") if self._ports.plug_at_once(parse_container_ports(body)) else None

    def _unplug(self, head: str) -> _Done | None:
        if (match := _UNPLUG.fullmatch(head)) is None:
            return None
        vm, vmi, container = match.groups()
        if not self._ports.unplug_at_once(vm, vmi_uuid=vmi, container=container):
            return None
        return _Done("/vm/{vm}/{vmi}" if vmi else "/vm/{vm}")


def _page(body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {UPSTREAM_JSON}\r\nContent-Length: {len(body)}\r\n"
        f"Date: {rfc822_formatted_time()}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"
    )
    return head.encode() + body

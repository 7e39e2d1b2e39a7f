"""The routes that CNI plugins use: `/vm-cfg` and `/vm`, wire-compatible with upstream's agent; `/openapi.json`.

A uuid in a path is lower case, or the route is not there, as upstream has it. What upstream's plugin does not know
(`wait`, `uid`, `vm-id`, an array posted) stands in queries and bodies that upstream ignores or refuses.

`/port`, `/syncports`, `/gateway` and `/enable-port` serve other orchestrators and are unknown requests here.
"""

import asyncio
import re

import msgspec
from aiohttp import web

from agent_api.answers import VmItem, vm_item
from agent_api.errors import BadRequestError
from agent_api.machines import Machines
from agent_api.metrics import time_not_counted
from agent_api.middlewares import UPSTREAM_JSON
from agent_api.openapi import openapi_document
from agent_api.ports.request import parse_ports
from agent_api.ports.table import PortTable

LONGEST_WAIT = 60.0
"""Seconds for which `?wait=` holds an answer at most."""

_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_VM = f"/vm/{{vm:{_UUID}}}"
_VMI = f"{_VM}/{{vmi:{_UUID}}}"

_HEADERS = {"Content-Type": UPSTREAM_JSON}
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


def vm_routes(machines: Machines, ports: PortTable, *, body_deadline: float) -> list[web.RouteDef]:
    """Returns the routes; `body_deadline` is the number of seconds in which a POST's body must be here."""
    pages = _Pages(machines, ports, body_deadline=body_deadline)
    return [
        web.get("/vm-cfg/{name:.*}", pages.show_configured, allow_head=False),
        web.post("/vm", pages.plug),
        *(web.get(path, pages.show_plugged, allow_head=False) for path in (_VM, _VMI)),
        *(web.delete(path, pages.unplug) for path in (_VM, _VMI)),
        web.get("/openapi.json", pages.describe, allow_head=False),
    ]


class _Pages:
    def __init__(self, machines: Machines, ports: PortTable, *, body_deadline: float) -> None:
        self._machines = machines
        self._ports = ports
        self._body_deadline = body_deadline

    async def show_configured(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        uid = _text_parameter(request, "uid")
        wait = _wait_parameter(request)
        served = self._machines.named(name, uid=uid)
        if served is None and wait:
            with time_not_counted():
                served = await self._machines.awaited(name, uid=uid, seconds=min(wait, LONGEST_WAIT))
        if served is None:
            raise _not_found()
        return web.Response(body=served.vm_cfg(), headers=_HEADERS)

    async def show_plugged(self, request: web.Request) -> web.Response:
        items = self._plugged(request.match_info["vm"], request.match_info.get("vmi"))
        return web.Response(body=msgspec.json.encode(items), headers=_HEADERS)

    async def plug(self, request: web.Request) -> web.Response:
        await self._ports.plug(parse_ports(await self._body(request)))
        return web.Response(body=b"{}", headers=_HEADERS)

    async def unplug(self, request: web.Request) -> web.Response:
        container = _text_parameter(request, "vm-id")
        path = request.match_info
        await self._ports.unplug(path["vm"], vmi_uuid=path.get("vmi"), container=container)
        return web.Response(body=b"{}", headers=_HEADERS)

    async def describe(self, _request: web.Request) -> web.Response:
        return web.Response(body=openapi_document(), headers=_HEADERS)

    def _plugged(self, vm_uuid: str, vmi_uuid: str | None) -> list[VmItem]:
        """All interfaces of the machine, or the one: whole or not at all, as upstream has it."""
        machine = self._machines.with_uuid(vm_uuid)
        ports = self._ports.of_machine(vm_uuid)
        if machine is None:
            raise _not_found()
        wanted = [interface for interface in machine.interfaces if vmi_uuid in (None, interface.uuid)]
        if not wanted or any(interface.uuid not in ports for interface in wanted):
            raise _not_found()
        return [vm_item(machine, interface, ports[interface.uuid]) for interface in wanted]

    async def _body(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._body_deadline):
                return await request.read()
        except TimeoutError as error:
            raise web.HTTPRequestTimeout(text=f"the body was not here within {self._body_deadline:g} s") from error


def _not_found() -> web.HTTPNotFound:
    return web.HTTPNotFound(text="{ Not Found }")


def _text_parameter(request: web.Request, key: str) -> str | None:
    value = request.query.get(key)
    if value == "":
        raise BadRequestError(f"{key}: is empty; leave it out or give it a value")
    return value


def _wait_parameter(request: web.Request) -> float:
    """Seconds; 0 if the request does not ask to wait."""
    text = request.query.get("wait", "0")
    if _SECONDS.fullmatch(text) is None:
        raise BadRequestError(f"wait: {text[:80]!r} is no number of seconds")
    return float(text)

"""Fake APIs of manager and agent over HTTP, with the objects of a small cluster."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from contrail_config.objects import Event, InterfaceAddress, VirtualMachineInterface
from manager.api.types import InterfaceView, NetworkView, PodState, Summary
from tests.support import api_views

Handler = Callable[[web.Request], Awaitable[web.Response]]


class FakeProcessApi:
    """Health endpoints whose responses a test can change at any time."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.version: str | None = "0.1.0"

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/readyz", self._readyz), web.get("/healthz", self._healthz)]

    async def _readyz(self, _request: web.Request) -> web.Response:
        answer = {"ready": not self.reasons, "reasons": self.reasons}
        return web.json_response(answer, status=503 if self.reasons else 200)

    async def _healthz(self, _request: web.Request) -> web.Response:
        return web.json_response({"healthy": True} | ({"version": self.version} if self.version else {}))


class FakeManagerApi(FakeProcessApi):
    """API of a manager of the small cluster; a test can replace `events`."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = api_views.events()

    def routes(self) -> list[web.RouteDef]:
        kinds: dict[str, Callable[[], Iterable[Any]]] = {
            "networks": lambda: api_views.NETWORKS,
            "pods": lambda: api_views.PODS,
            "interfaces": lambda: api_views.INTERFACE_VIEWS,
            "events": lambda: self.events,
        }
        lists = (web.get(f"/v1/{kind}", _list(items)) for kind, items in kinds.items())
        return [*super().routes(), web.get("/v1/summary", _summary), *lists]


async def _summary(_request: web.Request) -> web.Response:
    states = Counter(pod.state for pod in api_views.PODS)
    summary = Summary(
        networks=len(api_views.NETWORKS),
        interfaces=sum(network.interfaces for network in api_views.NETWORKS),
        pods={state: states[state] for state in PodState},
    )
    return web.Response(body=msgspec.json.encode(summary), content_type="application/json")


class FakeAgentApi(FakeProcessApi):
    """API of an agent that serves the pod shop/router, interfaces in reverse order, the first one plugged."""

    def routes(self) -> list[web.RouteDef]:
        return [
            *super().routes(),
            web.get("/vm-cfg/{name}", self._vm_cfg),
            web.get(f"/vm/{api_views.ROUTER_UID}/{api_views.INTERFACES[0].uuid}", self._vm),
        ]

    async def _vm_cfg(self, request: web.Request) -> web.Response:
        if request.match_info["name"] != api_views.ROUTER.name:
            return web.json_response({"error": "{ Not Found }"}, status=404)
        items = [_configured_item(interface, index) for index, interface in enumerate(api_views.INTERFACES)]
        return web.json_response(items[::-1])

    async def _vm(self, _request: web.Request) -> web.Response:
        return web.json_response([{"id": api_views.INTERFACES[0].uuid, "system-name": "tapabcdefghijkl"}])


@asynccontextmanager
async def served(routes: Iterable[web.RouteDef]) -> AsyncIterator[str]:
    """Serves the routes and yields their URL without a trailing slash."""
    app = web.Application()
    app.add_routes(routes)
    server = TestServer(app)
    await server.start_server()
    try:
        yield str(server.make_url("")).rstrip("/")
    finally:
        await server.close()


def _list(items: Callable[[], Iterable[Any]]) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        wanted = request.query.get("namespace"), request.query.get("name")
        chosen = [item for item in items() if _fits(item, wanted)]
        return web.Response(body=msgspec.json.encode({"items": chosen}), content_type="application/json")

    return handler


def _fits(view: Any, wanted: tuple[str | None, str | None]) -> bool:
    return all(want in (None, is_) for want, is_ in zip(wanted, _named(view), strict=True))


def _named(view: Any) -> tuple[str, str]:
    """Namespace and name that filter an item of the API."""
    if isinstance(view, NetworkView):
        namespace, _, name = (view.network.nad or f"/{view.network.fq_name[2]}").rpartition("/")
        return namespace, name
    return view.namespace, view.pod if isinstance(view, InterfaceView) else view.name


def _configured_item(interface: VirtualMachineInterface, index: int) -> dict[str, Any]:
    """An item of `/vm-cfg` as our agent serves it."""
    pairs = {
        "project": "k8s-shop",
        "index": f"{index}/{len(api_views.INTERFACES)}",
        "interface": interface.interface,
        "nad": interface.nad,
        "config-name": interface.config_name,
        "attachment": interface.attachment,
        "default-gw": interface.default_gw,
    }
    item: dict[str, Any] = {
        "id": interface.uuid,
        "vm-uuid": api_views.ROUTER_UID,
        "vn-id": interface.network_uuid,
        "vn-name": ":".join(interface.network),
        "mac-address": interface.mac,
        "sub-interface": False,
        "annotations": [f"{{{key}:{value}}}" for key, value in pairs.items() if value],
        "mtu": interface.mtu,
        "routes": msgspec.to_builtins(interface.routes),
    }
    for address in interface.addresses:
        item |= _address_keys(address)
    return item


def _address_keys(address: InterfaceAddress) -> dict[str, Any]:
    prefix = "v6-" if address.family == 6 else ""
    return {
        f"{prefix}ip-address": address.address,
        f"{prefix}plen": address.prefix_length,
        f"{prefix}gateway": address.gateway,
        f"{prefix}dns-server": "::" if prefix else "0.0.0.0",
    }

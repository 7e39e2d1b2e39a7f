"""The read-only API over HTTP: items, filters and errors."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp.plugin import AiohttpClient

from contrail_config.objects import Event, VirtualMachine
from contrail_service.pages import errors_as_json
from manager.api.paging import page_token
from manager.api.queries import PortsUnansweredError
from manager.api.routes import api_routes
from manager.api.types import InterfaceView, NetworkView, PodState, PodView, PortView
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import RunningManager

Client = TestClient[web.Request, web.Application]
Get = Callable[[str], Awaitable[Any]]

OBJECTS = (
    make_nad("net-a"),
    make_nad("net-b", namespace="red", cidr="10.2.0.0/16"),
    make_pod("web-0", networks="net-a,net-a@left"),
    make_pod("web-0", namespace="red"),
    make_pod("waits", networks="nope"),
    make_pod("host", host_network=True),
)


OF_PODS = page_token(("a", "web-0"))


@pytest.fixture
async def client(running: RunningManager, aiohttp_client: AiohttpClient) -> Client:
    await running.send_list(*OBJECTS)
    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(api_routes(running.manager.queries, running.manager.change_log))
    return await aiohttp_client(application)


@pytest.fixture
def get(client: Client) -> Get:
    """Returns the items of a path."""

    async def get_items(path: str) -> Any:
        response = await client.get(path)
        assert response.status == 200
        assert response.content_type == "application/json"
        body = await response.json()
        assert list(body) == ["items"]
        return body["items"]

    return get_items


async def test_networks_have_the_number_of_their_interfaces(get: Get) -> None:
    networks = msgspec.convert(await get("/v1/networks"), list[NetworkView])
    assert [(view.network.nad, view.interfaces) for view in networks] == [
        ("blue/net-a", 2),
        (None, 2),
        ("red/net-b", 0),
    ]


@pytest.mark.parametrize(
    ("query", "nads"),
    [
        ("namespace=red", ["red/net-b"]),
        ("namespace=blue&name=net-a", ["blue/net-a"]),
        ("name=k8s-default-pod-network", [None]),
        ("namespace=blue&name=net-b", []),
    ],
)
async def test_networks_are_filtered_by_namespace_and_name_of_their_nad(
    get: Get, query: str, nads: list[str | None]
) -> None:
    assert [item["network"].get("nad") for item in await get(f"/v1/networks?{query}")] == nads


async def test_pods_have_state_and_virtual_machine(get: Get) -> None:
    pods = msgspec.convert(await get("/v1/pods"), list[PodView])
    assert [(view.namespace, view.name, view.state) for view in pods] == [
        ("blue", "host", PodState.HOST_NETWORK),
        ("blue", "waits", PodState.WAITING),
        ("blue", "web-0", PodState.READY),
        ("red", "web-0", PodState.READY),
    ]
    _, waiting, ready, _ = pods
    assert (waiting.reason, waiting.machine) == ("NetworkNotFound", None)
    assert waiting.message == "network attachment definition blue/nope not found"
    assert (ready.reason, ready.message, ready.uid, ready.node) == (None, None, OBJECTS[2].uid, "node-1")
    assert ready.machine is not None
    assert len(ready.machine.interfaces) == 3


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("namespace=red", ["red/web-0"]),
        ("name=web-0", ["blue/web-0", "red/web-0"]),
        ("namespace=blue&name=web-0", ["blue/web-0"]),
        ("namespace=blue&name=waits", ["blue/waits"]),
        ("namespace=blue&name=nobody", []),
    ],
)
async def test_pods_are_filtered_by_namespace_and_name(get: Get, query: str, names: list[str]) -> None:
    items = await get(f"/v1/pods?{query}")
    assert [f"{item['namespace']}/{item['name']}" for item in items] == names
    assert all(("machine" in item) == (item["state"] == "Ready") for item in items)


async def test_interfaces_have_their_name_in_the_sandbox(get: Get) -> None:
    views = msgspec.convert(await get("/v1/interfaces"), list[InterfaceView])
    assert [(view.namespace, view.pod, view.index, view.name) for view in views] == [
        ("blue", "web-0", 0, "eth0"),
        ("blue", "web-0", 1, "eth1"),
        ("blue", "web-0", 2, "left"),
        ("red", "web-0", 0, "eth0"),
    ]
    assert views[0].pod_uid == OBJECTS[2].uid
    assert views[1].interface.nad == "blue/net-a"
    assert len(await get("/v1/interfaces?namespace=red&name=web-0")) == 1


async def test_events_are_filtered_by_their_object(get: Get) -> None:
    events = msgspec.convert(await get("/v1/events?namespace=blue&name=waits"), list[Event])
    assert [(event.kind, event.reason, event.count) for event in events] == [("Pod", "NetworkNotFound", 1)]
    assert {item["reason"] for item in await get("/v1/events")} == {
        "InterfacesAssigned",
        "NetworkCreated",
        "NetworkNotFound",
    }


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/v1/pods?nam=web-0", 400, "unknown query key 'nam': use namespace, name, limit, continue"),
        ("/v1/events?name=a&name=b", 400, "duplicate query key 'name'"),
        ("/v1/pods?limit=0", 400, "limit: '0' is not a number from 1 to 1000"),
        ("/v1/pods?limit=1001", 400, "limit: '1001' is not a number from 1 to 1000"),
        ("/v1/pods?limit=ten", 400, "limit: 'ten' is not a number from 1 to 1000"),
        ("/v1/pods?continue=!", 400, "continue: not a token of this API"),
        ("/v1/pods?continue=W10", 400, "continue: not a token of this API"),
        ("/v1/pods?continue=WzFd", 400, "continue: not a token of this API"),
        (f"/v1/addresses?continue={OF_PODS}", 400, "continue: not a token of this list"),
        (f"/v1/events?continue={OF_PODS}", 400, "continue: not a token of this list"),
        ("/v1/pod", 404, "404: Not Found"),
        ("/v2/pods", 404, "404: Not Found"),
    ],
)
async def test_an_invalid_request_is_rejected(client: Client, path: str, status: int, error: str) -> None:
    response = await client.get(path)
    assert response.status == status
    assert await response.json() == {"error": error}


async def test_a_time_line_outside_of_a_cluster_and_that_of_a_missing_pod_are_told_apart(
    client: Client, running: RunningManager, aiohttp_client: AiohttpClient
) -> None:
    path = "/v1/pods/blue/none/trace"
    outside = await client.get(path)
    error = "time lines of pods exist in a cluster only"
    assert (outside.status, await outside.json()) == (404, {"error": error, "reason": "NoCluster"})

    async def find_none(_namespace: str, _name: str) -> None:
        return None

    application = web.Application(middlewares=[errors_as_json])
    application.add_routes(api_routes(running.manager.queries, running.manager.change_log, trace=find_none))
    inside = await (await aiohttp_client(application)).get(path)
    assert (inside.status, await inside.json()) == (404, {"error": "pod blue/none: not found"})


async def find_ports(virtual_machine: VirtualMachine, names: Sequence[str]) -> list[PortView]:
    """As in a cluster; the agent of the pod `red/web-0` does not answer."""
    if virtual_machine.namespace == "red":
        raise PortsUnansweredError("node node-1: its agent did not answer")
    return [PortView("blue", virtual_machine.pod, index, name, "u", "Connected") for index, name in enumerate(names)]


@pytest.fixture
async def cluster(running: RunningManager, aiohttp_client: AiohttpClient) -> Client:
    await running.send_list(*OBJECTS)
    application = web.Application(middlewares=[errors_as_json])
    routes = api_routes(running.manager.queries, running.manager.change_log, requested_ports=find_ports)
    application.add_routes(routes)
    return await aiohttp_client(application)


async def test_ports_in_a_cluster_are_those_of_the_pod_that_is_asked_for(cluster: Client) -> None:
    response = await cluster.get("/v1/ports?namespace=blue&name=web-0&limit=1")
    body = await response.json()
    assert (response.status, list(body)) == (200, ["items"])
    assert [(port["name"], port["condition"]) for port in body["items"]] == [
        ("eth0", "Connected"),
        ("eth1", "Connected"),
        ("left", "Connected"),
    ]
    nobody = await cluster.get("/v1/ports?namespace=blue&name=nobody")
    assert (nobody.status, await nobody.json()) == (200, {"items": []})


@pytest.mark.parametrize("query", ["", "?limit=1", "?namespace=blue", "?name=web-0"])
async def test_ports_of_several_pods_of_a_cluster_are_not_asked_for(cluster: Client, query: str) -> None:
    response = await cluster.get(f"/v1/ports{query}")
    assert response.status == 404
    assert (await response.json())["reason"] == "NoAgent"


async def test_an_agent_that_does_not_answer_is_a_timeout(cluster: Client) -> None:
    response = await cluster.get("/v1/ports?namespace=red&name=web-0")
    assert (response.status, await response.json()) == (504, {"error": "node node-1: its agent did not answer"})


async def test_ports_are_not_known_where_no_agent_can_be_asked(client: Client) -> None:
    response = await client.get("/v1/ports?namespace=blue&name=web-0")
    assert response.status == 404
    assert (await response.json())["reason"] == "NoAgent"
    assert (await client.get("/v1/ports?namespace=blue&nam=web-0")).status == 400


async def test_the_api_is_read_only(client: Client) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        response = await client.request(method, "/v1/pods")
        assert response.status == 405


@pytest.mark.lacking("vnc", "it answers from what it read")
async def test_a_closed_store_is_reported_with_status_503(client: Client, running: RunningManager) -> None:
    await running.store.close()
    response = await client.get("/v1/pods")
    assert response.status == 503
    assert "the store is not available" in (await response.json())["error"]


async def test_a_pod_without_its_deleted_virtual_machine_is_returned(get: Get, running: RunningManager) -> None:
    await running.store.delete_virtual_machine(OBJECTS[2].uid)
    (item,) = await get("/v1/pods?namespace=blue&name=web-0")
    assert "machine" not in item

"""`/openapi.json` describes exactly the served operations, with the schemas of the real bodies."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agent_api.application import agent_application, agent_runner
from agent_api.node_agent import NodeAgent
from contrail_config.embedded.store import SqliteStore
from contrail_service.listen import ListenAddress
from contrail_service.pages import status_routes
from contrail_service.serving import serve_tcp
from tests.agent_api.conftest import WaitForSync
from tests.support.raw_http import exchanged, request
from tests.support.served_agent import ServedAgent, instance_port_of, port_of
from tests.support.virtual_machines import (
    NODE,
    SAMPLE_VM,
    SAMPLE_VMI,
    make_pending,
    make_virtual_machine,
    sample_interface,
)

Json = dict[str, Any]


@pytest.fixture
async def document(served: ServedAgent) -> Json:
    async with served.tcp.get("/openapi.json") as answer:
        assert answer.status == 200
        content: Json = await answer.json()
    return content


def schema_of(document: Json, path: str, method: str = "get") -> Json:
    schema: Json = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
    if schema.get("type") == "array":
        schema = schema["items"]
    return resolved(document, schema)


def resolved(document: Json, schema: Json) -> Json:
    found: Json = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


async def test_it_describes_exactly_the_served_operations(document: Json, store: SqliteStore, tmp_path: Path) -> None:
    registry = CollectorRegistry()
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(tmp_path), registry=registry)
    routes_of_process = await asyncio.to_thread(status_routes, agent.readiness, registry, details=agent.details)
    routes = agent_application(agent, accept_writes=True, routes=routes_of_process).router.routes()
    served = {(route.method.lower(), route.resource.canonical) for route in routes if route.resource is not None}
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(method, path) for method, path in served if method != "head"}


async def test_responses_have_the_keys_of_their_schemas(
    document: Json, store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    virtual_machine = make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(),))
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    for path, described in (
        (f"/vm-cfg/{virtual_machine.name}", "/vm-cfg/{name}"),
        (f"/vm/{SAMPLE_VM}", "/vm/{vm}"),
        (f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}", "/vm/{vm}/{vmi}"),
        (f"/port/{SAMPLE_VMI}", "/port/{vmi}"),
    ):
        async with served.tcp.get(path) as answer:
            content = await answer.json()
        item = content[0] if isinstance(content, list) else content
        schema = schema_of(document, described)
        assert set(schema["required"]) <= set(item) <= set(schema["properties"]), path


async def test_the_404_of_a_pending_pod_is_as_described(
    document: Json, store: SqliteStore, served: ServedAgent, wait_for_sync: WaitForSync
) -> None:
    pending = make_pending()
    await store.put_pending(pending)
    await wait_for_sync()
    async with served.tcp.get(f"/vm-cfg/{pending.name}") as answer:
        content = await answer.json()
    described = document["paths"]["/vm-cfg/{name}"]["get"]["responses"]["404"]["content"]["application/json"]["schema"]
    schema = resolved(document, described)
    assert (schema["required"], list(schema["properties"])) == (["error"], list(content))


@pytest.mark.parametrize(
    ("path", "name", "body"),
    [
        ("/vm", "ContainerPortRequest", port_of(SAMPLE_VM, SAMPLE_VMI)),
        ("/port", "InstancePortRequest", instance_port_of(SAMPLE_VM, SAMPLE_VMI, link_state=0)),
    ],
)
async def test_the_body_of_a_post_is_one_port_or_an_array(document: Json, path: str, name: str, body: Json) -> None:
    schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    port = {"$ref": f"#/components/schemas/{name}"}
    assert port in schema["anyOf"]
    assert {"type": "array", "items": port} in schema["anyOf"]
    assert set(body) - {"time", "author"} == set(resolved(document, port)["properties"])


async def test_the_response_of_an_unready_agent_is_as_described(
    document: Json, store: SqliteStore, tmp_path: Path
) -> None:
    registry = CollectorRegistry()
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(tmp_path), registry=registry)
    routes_of_process = await asyncio.to_thread(status_routes, agent.readiness, registry, details=agent.details)
    runner = agent_runner(agent_application(agent, accept_writes=True, routes=routes_of_process))
    await runner.setup()
    address = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
    answer = await exchanged(address, request("GET", "/readyz"))
    await runner.cleanup()
    described = document["paths"]["/readyz"]["get"]["responses"]["503"]["content"]["application/json"]["schema"]
    assert answer.status == 503
    assert set(answer.json) == set(resolved(document, described)["properties"])

"""`/openapi.json`: no route is missing, none is made up, and the schemas are those of real bodies."""

from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from agent_api.agent import Agent
from agent_api.application import agent_application
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import Settle
from tests.support.agent import ServedAgent, port_of
from tests.support.machines import NODE, SAMPLE_VM, SAMPLE_VMI, make_machine, sample_interface

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
        schema = document["components"]["schemas"][schema["items"]["$ref"].rpartition("/")[2]]
    return schema


async def test_it_names_the_routes_that_are_served_and_no_others(
    document: Json, store: SqliteStore, tmp_path: Any
) -> None:
    agent = Agent(store=store, node=NODE, ports_dir=str(tmp_path), registry=CollectorRegistry())
    application: web.Application = agent_application(agent, take_writes=True)
    served = {
        (route.method.lower(), route.resource.canonical)
        for route in application.router.routes()
        if route.resource is not None
    }
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert described == served - {("get", "/openapi.json")}


async def test_answers_have_the_keys_of_their_schemas(
    document: Json, store: SqliteStore, served: ServedAgent, settle: Settle
) -> None:
    machine = make_machine(uid=SAMPLE_VM, interfaces=(sample_interface(),))
    await store.put_machine(machine)
    await settle()
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    for path, described in (
        (f"/vm-cfg/{machine.name}", "/vm-cfg/{name}"),
        (f"/vm/{SAMPLE_VM}", "/vm/{vm}"),
        (f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}", "/vm/{vm}/{vmi}"),
    ):
        async with served.tcp.get(path) as answer:
            (item,) = await answer.json()
        schema = schema_of(document, described)
        assert set(schema["required"]) <= set(item) <= set(schema["properties"])


async def test_the_body_of_a_post_is_one_port_or_an_array(document: Json) -> None:
    body = document["paths"]["/vm"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    port = {"$ref": "#/components/schemas/PortRequest"}
    assert port in body["anyOf"]
    assert {"type": "array", "items": port} in body["anyOf"]
    assert set(port_of(SAMPLE_VM, SAMPLE_VMI)) - {"time"} == set(
        document["components"]["schemas"]["PortRequest"]["properties"]
    )

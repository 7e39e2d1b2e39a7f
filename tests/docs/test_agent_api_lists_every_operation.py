"""`docs/agent-api.md` and the agent's errors in `docs/troubleshooting.md`, compared with what the agent serves."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from agent_api.application import agent_application
from agent_api.datapath.kind import Datapath
from agent_api.node_agent import NodeAgent
from contrail_config.embedded.store import SqliteStore
from contrail_service.pages import status_routes
from tests.support.documentation import code, rows, section

Json = dict[str, Any]


@pytest.fixture
async def document(tmp_path: Path) -> AsyncIterator[Json]:
    """`/openapi.json` of an agent with a datapath, on its Unix socket: it has all operations."""
    store = await SqliteStore.open(str(tmp_path / "store.sqlite"))
    registry = CollectorRegistry()
    agent = NodeAgent(
        store=store,
        node="worker-1",
        ports_dir=str(tmp_path / "ports"),
        registry=registry,
        datapath=Datapath.LINUX,
    )
    pages = await asyncio.to_thread(status_routes, agent.readiness, registry, details=agent.details)
    application = agent_application(agent, accept_writes=True, is_local=True, routes=pages)
    async with TestClient(TestServer(application)) as client:
        yield json.loads(await (await client.get("/openapi.json")).read())
    await store.close()


def operations(document: Json) -> list[tuple[str, str, Json]]:
    return [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_is_documented_and_no_other(document: Json) -> None:
    served = {(method, path) for method, path, _ in operations(document)} - {("GET", "/openapi.json")}
    assert {(row[0], code(row[1])[0]) for row in rows("agent-api", "Operations")} == served


def test_every_query_parameter_is_documented_and_no_other(document: Json) -> None:
    served = {
        parameter["name"]
        for _, _, operation in operations(document)
        for parameter in operation["parameters"]
        if parameter["in"] == "query"
    }
    assert {code(row[0])[0] for row in rows("agent-api", "Query parameters")} == served


def test_every_error_status_has_a_cause_and_a_cure(document: Json) -> None:
    statuses = {status for _, _, operation in operations(document) for status in operation["responses"]} - {"200"}
    documented = rows("troubleshooting", "Agent errors")
    assert {row[0] for row in documented} == statuses
    assert all(len(row) == 3 and all(row) for row in documented)


@pytest.mark.parametrize("path", ["/vm", "/port", "/gateway", "/datapath"])
def test_every_key_of_a_body_is_documented_and_no_other(document: Json, path: str) -> None:
    item = item_of(document, document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"])
    served = {(key, key in item["required"]) for key in item["properties"]}
    assert {(code(row[0])[0], row[1] == "yes") for row in rows("agent-api", f"Body of POST {path}")} == served


def test_every_key_of_the_interface_list_is_documented(document: Json) -> None:
    answer = document["paths"]["/vm-cfg/{name}"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    documented = code(section("agent-api", "The interface list"))
    assert item_of(document, answer)["properties"].keys() <= set(documented)


def item_of(document: Json, schema: Json) -> Json:
    """The schema of one item of a body that is one, an array of them, or either."""
    while "properties" not in schema:
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        else:
            schema = schema["anyOf"][0] if "anyOf" in schema else schema["items"]
    return schema

"""`/v1/openapi.json` describes exactly the routes that are served, and the responses conform to it."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from manager.api.openapi import openapi_document
from manager.api.routes import api_routes
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.running_manager import RunningManager

CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddedProcess]:
    """An embedded node with a network, a pod that has it, and one that waits."""
    node = EmbeddedProcess(tmp_path)
    objects = (nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"), pod("waits", networks="late"))
    write(node.manifests / "all.yaml", *objects)
    node.start()
    yield node
    node.kill()


async def test_every_route_is_described_and_no_other(running: RunningManager) -> None:
    routes = api_routes(running.manager.queries, running.manager.change_log)
    described = json.loads(openapi_document())
    assert {route.path for route in routes} == {*described["paths"], "/v1/openapi.json"}


def test_the_token_is_described_as_optional() -> None:
    described = json.loads(openapi_document())
    assert described["security"] == [{}, {"token": []}]
    assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


def test_messages_of_a_watch_conform_to_the_document(node: EmbeddedProcess) -> None:
    document = node.get("/v1/openapi.json")
    schema = {"$ref": "#/components/schemas/WatchMessage", "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema)
    found: list[dict[str, Any]] = []
    with urllib.request.urlopen(f"http://{node.listen}/v1/watch", timeout=10) as stream:
        while not found or found[-1]["type"] != "SYNCED":
            line = stream.readline().decode()
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
                assert validator.is_valid(found[-1]), found[-1]
    assert {each.get("kind") for each in found} == {None, "networks", "pods", "events"}
    assert not validator.is_valid({"type": "APPLIED", "kind": "pods", "object": {"name": 1}})


def test_responses_conform_to_the_document(node: EmbeddedProcess, tmp_path: Path) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION)),
            *("run", f"http://{node.listen}/v1/openapi.json", "--no-color"),
        ],
        cwd=tmp_path,  # it writes a cache to the working directory
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "11 selected / 12 total" in run.stdout

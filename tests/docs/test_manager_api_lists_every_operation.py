"""`docs/manager-api.md`, compared with the OpenAPI document of the manager."""

import json
from typing import Any

from manager.api.change_log import MAX_ENTRIES, MAX_WATCHES
from manager.api.openapi import openapi_document
from manager.api.types import WatchedKind, WatchMessageType
from tests.support.documentation import code, page, rows, section

DOCUMENT: dict[str, Any] = json.loads(openapi_document())


def test_every_operation_is_documented_and_no_other() -> None:
    documented = {code(row[0])[0] for row in rows("manager-api", "Operations of the manager")[:12]}
    assert documented == set(DOCUMENT["paths"])


def test_every_query_parameter_is_documented_and_no_other() -> None:
    served = {
        each["name"]
        for path in DOCUMENT["paths"].values()
        for each in path["get"]["parameters"]
        if each["in"] == "query"
    }
    parameters = section("manager-api", "Operations of the manager").partition("| Parameter |")[2]
    documented = {name for line in parameters.splitlines()[2:] if line for name in code(line.split("|")[1])}
    assert documented == served


def test_every_message_is_documented_and_no_other() -> None:
    messages = [code(row[0])[0] for row in rows("manager-api", "Watches") if row[0].startswith("`")]
    assert {*messages} >= {*WatchMessageType}
    text = section("manager-api", "Operations of the manager")
    assert all(f"`{kind}`" in text for kind in WatchedKind)


def test_the_bounds_are_those_of_the_code() -> None:
    assert f"| {MAX_WATCHES}; further ones" in page("manager-api")
    assert f"after {MAX_ENTRIES:,} objects" in page("manager-api")

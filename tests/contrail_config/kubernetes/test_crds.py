"""CustomResourceDefinitions: the files match the types, and an existing definition is never changed."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from contrail_config.errors import StoreUnavailableError
from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.crds import crds, ensure_crds, structural_schema
from contrail_config.kubernetes.kinds import KINDS, virtual_machine_object, virtual_network_object
from tests.support.fake_apiserver.kinds import CRDS
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import make_network

FOLDER = Path(__file__).parents[3] / "deploy" / "crds"


def test_the_files_match_the_types() -> None:
    """Run `python -m contrail_config.kubernetes deploy/crds` to update the files."""
    found = [yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("*.yaml"))]
    assert found == sorted(crds().values(), key=lambda each: str(each["metadata"]["name"]))


def test_each_kind_has_a_definition() -> None:
    assert set(crds()) == {f"{kind.plural}.{kind.group}" for kind in KINDS}


def schemas(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """A schema and all its nested schemas."""
    parts = [*schema.get("properties", {}).values()]
    parts += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return [schema, *(each for part in parts for each in schemas(part))]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_schemas_are_structural(kind: Any) -> None:
    """Each part has one type and only keywords that a structural schema may have."""
    allowed = {"type", "description", "properties", "additionalProperties", "items", "required", "nullable", "enum"}
    for schema in schemas(structural_schema(kind.type)):
        assert isinstance(schema["type"], str)
        assert set(schema) <= allowed | {"minItems", "maxItems"}


@pytest.mark.parametrize(
    "item",
    [
        virtual_machine_object(make_virtual_machine()),
        virtual_network_object(make_network("n", "10.1.0.0/24", "fd00::/64")),
    ],
)
def test_the_schema_prunes_no_written_field(item: Any) -> None:
    written = msgspec.to_builtins(item)
    assert pruned(written["spec"], structural_schema(type(item.spec))) == written["spec"]


def pruned(value: Any, schema: dict[str, Any]) -> Any:
    """The value without fields that are not in the schema, as a server prunes it."""
    match schema:
        case {"properties": properties} if isinstance(value, dict):
            return {key: pruned(each, properties[key]) for key, each in value.items() if key in properties}
        case {"items": items} if isinstance(value, list | tuple):
            return type(value)(pruned(each, items) for each in value)
    return value


def test_a_type_without_a_structural_schema_is_rejected() -> None:
    class Either(msgspec.Struct):
        value: int | str

    with pytest.raises(ValueError, match="no structural schema"):
        structural_schema(Either)


async def test_missing_definitions_are_created_and_awaited(client: KubeClient, server: FakeApiServer) -> None:
    await ensure_crds(client)
    assert {name for _, name in server.storage.objects(CRDS)} == set(crds())
    for kind in KINDS:
        assert await client.list_all(kind) == []


async def test_an_existing_definition_is_not_changed(client: KubeClient, server: FakeApiServer) -> None:
    name, definition = next(iter(crds().items()))
    foreign = {**definition, "metadata": {**definition["metadata"], "annotations": {"made": "by hand"}}}
    conditions = [{"type": "Established", "status": "True"}]
    before = server.storage.put(CRDS, {**foreign, "status": {"conditions": conditions}})
    await ensure_crds(client)
    await ensure_crds(client)
    assert server.storage.objects(CRDS)["", name] == before
    assert server.requests.count("create customresourcedefinitions") == len(crds()) - 1


async def test_two_managers_create_them_concurrently(client: KubeClient) -> None:
    await asyncio.gather(ensure_crds(client), ensure_crds(client))


async def test_a_definition_not_established_in_time_is_named(client: KubeClient, server: FakeApiServer) -> None:
    name, definition = next(iter(crds().items()))
    server.storage.put(CRDS, definition)
    with pytest.raises(StoreUnavailableError, match=f"{name}: not established after 0.2 s: it has no conditions"):
        await ensure_crds(client, deadline=0.2)


async def test_missing_permission_to_create_names_the_definition(client: KubeClient, server: FakeApiServer) -> None:
    server.faults.reject(403, verb="create")
    with pytest.raises(StoreUnavailableError, match=next(iter(crds()))):
        await ensure_crds(client)

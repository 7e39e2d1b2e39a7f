"""The next release: the same config objects with one more field in each struct, in any store.

It reads and writes the stored JSON, not through a store of this release.
"""

import asyncio
import contextlib
import copy
import sqlite3
import types
import typing
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from contrail_config.embedded.store import SqliteStore
from contrail_config.kube.client import KubeClient
from contrail_config.kube.resource import Resource
from contrail_config.kubernetes.crds import crds
from contrail_config.kubernetes.kinds import (
    CONTRAIL_NODE_DOCUMENTS,
    VIRTUAL_MACHINE_DOCUMENTS,
    VIRTUAL_NETWORK_DOCUMENTS,
    Document,
    FullMetadata,
    NodeReport,
)
from contrail_config.objects import VirtualMachine, VirtualNetwork
from contrail_config.store import Store
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.mapping import annotations, machines, networks
from tests.support.custom_kinds import DEFINITIONS
from tests.support.stores import ServedStore, VncStoreOfTest

WRITTEN = "by the next release"
"""Value of the additional field in what the next release writes."""

ABSENT = "absent"
"""Its default, which the next release assumes in what this one writes."""

_DEADLINE = 20.0

JsonObject = dict[str, Any]


def next_type(kind: Any) -> Any:
    """The type as the next release has it: every struct in it has one more field, `added`."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        fields: list[Any] = []
        for field in msgspec.structs.fields(kind):
            given: dict[str, Any] = {"default": field.default, "default_factory": field.default_factory}
            default = msgspec.field(name=field.encode_name, **given)
            fields.append((field.name, next_type(hints[field.name]), default))
        fields.append(("added", str, ABSENT))
        return msgspec.defstruct(f"Next{kind.__name__}", fields, kw_only=True, omit_defaults=True)
    parts = tuple(map(next_type, typing.get_args(kind)))
    if typing.get_origin(kind) is types.UnionType:
        return typing.Union[parts]  # noqa: UP007 - of a computed number of types
    return tuple[parts] if typing.get_origin(kind) is tuple else kind  # type: ignore[valid-type]


def written_by_next(stored: JsonObject, kind: type[Any]) -> JsonObject:
    """The same object as the next release writes it, with all of its fields."""
    written: JsonObject = _with_added(msgspec.to_builtins(msgspec.convert(stored, next_type(kind))), kind)
    return written


def read_by_next(stored: JsonObject, kind: type[Any]) -> list[str]:
    """The values of the additional field that the next release reads, the outermost struct's first."""
    return _added(msgspec.convert(stored, next_type(kind)))


def _with_added(value: Any, kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = {field.encode_name: typing.get_type_hints(kind)[field.name] for field in msgspec.structs.fields(kind)}
        return {key: _with_added(each, hints[key]) for key, each in value.items()} | {"added": WRITTEN}
    parts = [part for part in typing.get_args(kind) if part not in (type(None), ...)]
    if isinstance(value, list | tuple) and parts:
        return [_with_added(each, parts[0]) for each in value]
    return _with_added(value, parts[0]) if isinstance(value, dict) and len(parts) == 1 else value


def _added(value: Any) -> list[str]:
    if isinstance(value, msgspec.Struct):
        nested = [each for name in value.__struct_fields__ for each in _added(getattr(value, name))]
        return [value.added, *nested]  # type: ignore[attr-defined]  # of the next release
    return [each for item in value for each in _added(item)] if isinstance(value, tuple | list) else []


class StoredJson(Protocol):
    """The stored JSON of networks and virtual machines."""

    async def read(self, kind: type[VirtualNetwork | VirtualMachine], uuid: str) -> JsonObject:
        """The stored object."""

    async def write(self, kind: type[VirtualNetwork | VirtualMachine], uuid: str, stored: JsonObject) -> None:
        """Replaces the stored object."""


class EmbeddedJson:
    """Rows of the embedded store."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def read(self, kind: type[Any], uuid: str) -> JsonObject:
        with contextlib.closing(sqlite3.connect(self._file)) as db:
            (body,) = db.execute(f"SELECT body FROM {_TABLES[kind]} WHERE uuid = ?", (uuid,)).fetchone()
        found: JsonObject = msgspec.json.decode(body)
        return found

    async def write(self, kind: type[Any], uuid: str, stored: JsonObject) -> None:
        with contextlib.closing(sqlite3.connect(self._file)) as db, db:
            update = f"UPDATE {_TABLES[kind]} SET body = ? WHERE uuid = ?"
            db.execute(update, (msgspec.json.encode(stored), uuid))


class AnnotatedJson:
    """Annotations of a Contrail API server's objects."""

    def __init__(self, client: VncClient) -> None:
        self._client = client

    async def read(self, kind: type[Any], uuid: str) -> JsonObject:
        server_kind, annotation = _ANNOTATIONS[kind]
        item = await self._client.read(server_kind, uuid, fields=["annotations"])
        found: JsonObject = msgspec.json.decode(annotations.from_object(item)[annotation])
        return found

    async def write(self, kind: type[Any], uuid: str, stored: JsonObject) -> None:
        _, annotation = _ANNOTATIONS[kind]
        await self._client.set_annotations(uuid, {annotation: msgspec.json.encode(stored).decode()})


class ServedJson:
    """Specs of custom resources."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def read(self, kind: type[Any], uuid: str) -> JsonObject:
        return (await self._find(kind, uuid)).spec

    async def write(self, kind: type[Any], uuid: str, stored: JsonObject) -> None:
        found = await self._find(kind, uuid)
        metadata = found.metadata
        replaced = msgspec.structs.replace(found, spec=stored)
        await self._client.replace(_RESOURCES[kind], metadata.name, replaced, namespace=metadata.namespace)

    async def _find(self, kind: type[Any], uuid: str) -> Document:
        (found,) = [item for item in await self._client.list_all(_RESOURCES[kind]) if item.spec["uuid"] == uuid]
        return found


_ANNOTATIONS: dict[type[Any], tuple[str, str]] = {
    VirtualNetwork: (networks.KIND, annotations.NETWORK),
    VirtualMachine: (machines.KIND, annotations.MACHINE),
}
_TABLES: dict[type[Any], str] = {VirtualNetwork: "networks", VirtualMachine: "machines"}
_RESOURCES: dict[type[Any], Resource[Document]] = {
    VirtualNetwork: VIRTUAL_NETWORK_DOCUMENTS,
    VirtualMachine: VIRTUAL_MACHINE_DOCUMENTS,
}


def stored_json(store: Store, folder: Path) -> StoredJson:
    """The stored JSON of an open store, whose data is below the folder."""
    if isinstance(store, SqliteStore):
        return EmbeddedJson(folder / "store" / "config.db")
    if isinstance(store, VncStoreOfTest):
        return AnnotatedJson(store.client)
    assert isinstance(store, ServedStore)
    return ServedJson(store.client)


def next_definition(definition: JsonObject) -> JsonObject:
    """The CustomResourceDefinition as the next release ships it."""
    changed = copy.deepcopy(definition)
    for version in changed["spec"]["versions"]:
        _add_property(version["schema"]["openAPIV3Schema"])
    return changed


@contextlib.asynccontextmanager
async def next_definitions(client: KubeClient) -> AsyncIterator[None]:
    """Upgrades the definitions to those of the next release until the context is left."""
    await _apply(client, {name: next_definition(definition) for name, definition in crds().items()})
    try:
        yield
    finally:
        await _apply(client, crds())


async def _apply(client: KubeClient, definitions: dict[str, JsonObject]) -> None:
    """Applies the definitions, the last of which is that of node reports, and waits until they are in force."""
    for name, definition in definitions.items():
        await client.patch(DEFINITIONS, name, {"spec": {"versions": definition["spec"]["versions"]}})
    is_next = "added" in str(definitions)
    async with asyncio.timeout(_DEADLINE):
        while await _keeps_added(client) < is_next:  # noqa: ASYNC110 - pruned until the server has noticed it
            await asyncio.sleep(0.02)


async def _keeps_added(client: KubeClient) -> bool:
    status = msgspec.to_builtins(NodeReport("2026-11-21T12:00:00Z", "probe")) | {"added": WRITTEN}
    name = f"probe-{uuid.uuid4().hex}"
    await client.create(CONTRAIL_NODE_DOCUMENTS, Document(FullMetadata(name=name), status=status))
    found = await client.get(CONTRAIL_NODE_DOCUMENTS, name)
    await client.delete(CONTRAIL_NODE_DOCUMENTS, name)
    return "added" in found.status


def _add_property(schema: JsonObject) -> None:
    for part in [*schema.get("properties", {}).values()]:
        _add_property(part)
    if "items" in schema:
        _add_property(schema["items"])
    if "properties" in schema:
        schema["properties"]["added"] = {"type": "string"}

"""Detects CustomResourceDefinitions of an older release: the server would prune fields that they do not have.

A definition of a newer release, or one that its administrator has extended, has all fields of this one, and passes.
"""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS
from contrail_config.kube.errors import KubeError, KubeNotFoundError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kubernetes.crds import Schema, crds

log = logging.getLogger(__name__)

_INTERVAL: Final = 15.0  # seconds
_MAX_NAMED: Final = 5  # missing fields in a message


class _Definition(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, Any] = {}


_DEFINITIONS: Final = Resource(
    CUSTOM_RESOURCE_DEFINITIONS.group,
    CUSTOM_RESOURCE_DEFINITIONS.version,
    CUSTOM_RESOURCE_DEFINITIONS.kind,
    CUSTOM_RESOURCE_DEFINITIONS.plural,
    _Definition,
    namespaced=False,
)


class DefinitionCheck:
    """Compares the server's definitions with those of this release. Needs the verb get for each of them."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._problems: dict[str, str] = {}

    def problems(self) -> list[str]:
        """Returns which definitions are of an older release, and which fields they miss."""
        return list(self._problems.values())

    async def run(self, *, interval: float = _INTERVAL) -> None:
        """Checks until it is cancelled."""
        while True:
            await self.check()
            await asyncio.sleep(interval)

    async def check(self) -> None:
        """Reads all definitions once. A missing one is no problem: a leader creates it."""
        failed: dict[str, KubeError] = {}
        for name, wanted in crds().items():
            try:
                found = await self._client.get(_DEFINITIONS, name)
            except KubeNotFoundError:
                self._problems.pop(name, None)
            except KubeError as error:
                failed[name] = error
            else:
                self._compare(name, found.spec, wanted["spec"])
        if failed:  # one line, since what fails mostly fails for all: rejected credentials, or no server
            name, first = next(iter(failed.items()))
            log.info("CustomResourceDefinitions that cannot be compared: %d, first %s: %s", len(failed), name, first)

    def _compare(self, name: str, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        fields = sorted(missing_fields(_schema(found, wanted["versions"][0]["name"]), _schema(wanted)))
        if not fields:
            self._problems.pop(name, None)
            return
        some = ", ".join(fields[:_MAX_NAMED]) + (f" and {len(fields) - _MAX_NAMED} more" if fields[_MAX_NAMED:] else "")
        problem = f"CustomResourceDefinition {name}: of an older release, without {some}: apply deploy/crds"
        if self._problems.get(name) != problem:
            log.warning("%s", problem)
        self._problems[name] = problem


def missing_fields(found: Schema, wanted: Schema, path: str = "") -> Iterator[str]:
    """Yields the paths of those fields of a schema that a server with the other schema prunes."""
    if found.get("x-kubernetes-preserve-unknown-fields"):
        return
    for name, part in wanted.get("properties", {}).items():
        place = f"{path}.{name}" if path else name
        if name in found.get("properties", {}):
            yield from missing_fields(found["properties"][name], part, place)
        elif "additionalProperties" not in found:
            yield place
    if "items" in wanted:
        yield from missing_fields(found.get("items", {}), wanted["items"], f"{path}[]")


def _schema(spec: dict[str, Any], version: str | None = None) -> Schema:
    versions = [each for each in spec.get("versions", ()) if version is None or each.get("name") == version]
    schema: Schema = versions[0].get("schema", {}).get("openAPIV3Schema", {}) if versions else {}
    return schema

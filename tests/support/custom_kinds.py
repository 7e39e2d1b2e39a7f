"""Custom kinds with unique groups, for tests of CustomResourceDefinitions."""

import uuid
from typing import Any

import msgspec

from contrail_config.kube.resource import Metadata, Resource


class Gadget(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object of a custom kind."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Condition(msgspec.Struct, frozen=True):
    """A condition of a definition."""

    type: str
    status: str


class DefinitionStatus(msgspec.Struct, frozen=True):
    """The status that the server sets; `conditions` is None before that."""

    conditions: list[Condition] | None = None


class Definition(msgspec.Struct, frozen=True):
    """A CustomResourceDefinition without its spec."""

    metadata: Metadata
    status: DefinitionStatus = DefinitionStatus()

    @property
    def is_established(self) -> bool:
        return Condition("Established", "True") in (self.status.conditions or ())


DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", Definition, namespaced=False
)


def new_gadgets() -> Resource[Gadget]:
    """A cluster-scoped kind in a new group."""
    return Resource(f"{uuid.uuid4().hex[:12]}.example", "v1", "Gadget", "gadgets", Gadget, namespaced=False)


def definition_of(resource: Resource[Any]) -> dict[str, Any]:
    """The CustomResourceDefinition of the kind, with a status subresource."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()},
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }

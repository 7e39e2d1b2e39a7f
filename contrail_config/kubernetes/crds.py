"""CustomResourceDefinitions of the group `opencontrail.org`: their content, and creation of the missing ones.

An existing definition belongs to the cluster's administrator and is never changed; a newer release ships its own as
files.

The OpenAPI schemas are derived from the structs of the kinds, in the structural form that the API server requires
(Kubernetes, "CustomResourceDefinitions", section "Specifying a structural schema"): no references, no tuples,
`nullable` instead of a union with null. Defaults are left out, since the reader applies them. The server prunes fields
that are not in the schema. `constraints` adds bounds and formats. They also bound the estimated cost of the rules, for
which the server has a budget.
"""

from typing import Any, Final, NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS, DEADLINE, ensure_crd
from contrail_config.kube.resource import Resource
from contrail_config.kubernetes.constraints import constrain
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import (
    ADDRESS_BLOCKS,
    CONTRAIL_NODES,
    NETWORK_SLICES,
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
)

Schema = dict[str, Any]


class _Column(NamedTuple):
    """A column of `kubectl get`; those of priority 1 are shown only with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


class _Rule(NamedTuple):
    """A CEL rule of an object or, with a `field`, of that field; a rule with `oldSelf` is for changes only."""

    rule: str
    message: str
    field: str = ""


class _KindView(NamedTuple):
    """Presentation of a kind in `kubectl`, and rules on its objects beyond those on single fields."""

    resource: Resource[Any]
    short_name: str
    columns: tuple[_Column, ...]
    rules: tuple[_Rule, ...] = ()


_AGE: Final = _Column("Age", ".metadata.creationTimestamp", "date")

_KINDS: Final = (
    _KindView(
        VIRTUAL_MACHINES,
        "cvm",
        (
            _Column("Pod Namespace", ".spec.namespace"),
            _Column("Pod", ".spec.pod"),
            _Column("Node", ".spec.node"),
            _Column("Interfaces", ".status.interfaces", "integer"),
            _Column("Addresses", ".status.addresses"),
            _Column("Pending", ".spec.pending.reason"),
            _AGE,
            _Column("Networks", ".status.networks", priority=1),
        ),
        (
            _Rule("self.metadata.name == self.spec.uuid", "metadata.name must equal spec.uuid"),
            _Rule(
                "self.name == self.cluster + '__' + self.__namespace__ + '__' + self.pod",  # escaped: a word of CEL
                "spec.name must be that of spec.cluster, spec.namespace and spec.pod",
                "spec",
            ),
            _Rule("self.name == oldSelf.name", "spec.name, and what it is derived from, is immutable", "spec"),
        ),
    ),
    _KindView(
        VIRTUAL_NETWORKS,
        "cvn",
        (
            _Column("Network", ".status.name"),
            _Column("VNI", ".spec.vni", "integer"),
            _Column("Subnets", ".status.subnets"),
            _Column("Nad", ".spec.nad"),
            _Column("Retired", ".spec.retired", "boolean"),
            _AGE,
        ),
        (
            _Rule("self.metadata.name == self.spec.uuid", "metadata.name must equal spec.uuid"),
            _Rule("self.fqName == oldSelf.fqName", "spec.fqName is immutable", "spec"),
        ),
    ),
    _KindView(
        ADDRESS_BLOCKS,
        "cab",
        (
            _Column("Network", ".spec.network"),
            _Column("First", ".spec.first"),
            _Column("Node", ".spec.node"),
            _Column("Given", ".status.given", "integer"),
            _Column("Held", ".status.held", "integer"),
            _AGE,
            _Column("Borrowed", ".status.borrowed", "integer", priority=1),
        ),
        (
            _Rule(
                "self.metadata.name.startsWith(self.spec.network + '-') && (self.spec.first.contains(':') || "
                "self.metadata.name == self.spec.network + '-' + self.spec.first.replace('.', '-'))",
                "metadata.name must be derived from spec.network and spec.first",
            ),
            _Rule("self.network == oldSelf.network", "spec.network is immutable", "spec"),
            _Rule("self.first == oldSelf.first", "spec.first is immutable", "spec"),
        ),
    ),
    _KindView(
        NETWORK_SLICES,
        "cns",
        (
            _Column("Network", ".status.network"),
            _Column("VNI", ".spec.vni", "integer"),
            _Column("Node", ".spec.node"),
            _Column("Tunnel", ".status.tunnel"),
            _Column("Endpoints", ".status.endpoints", "integer"),
            _Column("Blocks", ".status.blocks"),
            _AGE,
        ),
        (
            _Rule(
                "self.metadata.name.startsWith(self.spec.networkUuid + '.')",
                "metadata.name must be derived from spec.networkUuid and spec.node",
            ),
            _Rule("self.networkUuid == oldSelf.networkUuid", "spec.networkUuid is immutable", "spec"),
            _Rule("self.node == oldSelf.node", "spec.node is immutable", "spec"),
        ),
    ),
    _KindView(
        CONTRAIL_NODES,
        "cn",
        (
            _Column("Agent", ".status.versions.agent"),
            _Column("MTU", ".status.tunnelMtu", "integer"),
            _Column("Pending Deletes", ".status.pendingDeletes", "integer"),
            _Column("Last Error", ".status.lastErrors[0]"),
            _Column("Reported", ".status.reportedAt", "date"),
            _AGE,
            _Column("Conflict", ".status.conflicts[0]", priority=1),
        ),
    ),
)


def crds() -> dict[str, dict[str, Any]]:
    """Returns the definitions by name."""
    return {definition["metadata"]["name"]: definition for definition in map(_definition, _KINDS)}


async def ensure_crds(client: KubeClient, *, deadline: float = DEADLINE) -> dict[str, str]:
    """Creates the missing definitions, waits until all are established, and returns their uids by name.

    Raises StoreUnavailableError, which names a definition that is not established within `deadline` seconds, and
    StoreError for other errors of the server.
    """
    uids = {}
    for name, definition in crds().items():
        with as_store_error(f"CustomResourceDefinition {name}"):
            uids[name] = await ensure_crd(client, name, definition, deadline=deadline)
    return uids


def _definition(view: _KindView) -> dict[str, Any]:
    resource = view.resource
    schema = constrain(structural_schema(resource.type), resource.type)
    for rule in view.rules:
        ruled = schema["properties"][rule.field] if rule.field else schema
        ruled.setdefault("x-kubernetes-validations", []).append({"rule": rule.rule, "message": rule.message})
    schema["properties"] |= {name: {"type": "string"} for name in ("apiVersion", "kind")}
    schema["properties"]["metadata"] = {"type": "object"}
    columns = [
        {"name": column.name, "type": column.type, "jsonPath": column.path}
        | ({"priority": column.priority} if column.priority else {})
        for column in view.columns
    ]
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITIONS.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITIONS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [view.short_name],
            },
            "versions": [version],
        },
    }


def structural_schema(kind: type[Any]) -> Schema:
    """Returns the schema of a struct. Raises ValueError for a type that has no structural form."""
    schema, parts = msgspec.json.schema_components((kind,), ref_template="{name}")
    return _structural(schema[0], parts)


def _structural(schema: Schema, parts: dict[str, Schema]) -> Schema:
    match schema:
        case {"$ref": name}:
            return _structural(parts[name], parts)
        case {"anyOf": [one, {"type": "null"}]}:
            return {**_structural(one, parts), "nullable": True}
        case {"anyOf": _}:
            raise ValueError(f"no structural schema for {schema}")
        case {"enum": values}:
            return {"type": "string", "enum": values}
        case {"type": "object"}:
            return _object(schema, parts)
        case {"type": "array"}:
            return _array(schema, parts)
    return {key: value for key, value in schema.items() if key == "type"}


def _object(schema: Schema, parts: dict[str, Schema]) -> Schema:
    result: Schema = {"type": "object"}
    if "description" in schema:
        result["description"] = " ".join(schema["description"].split())
    if "properties" in schema:
        result["properties"] = {name: _structural(part, parts) for name, part in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = _structural(schema["additionalProperties"], parts)
    if schema.get("required"):
        result["required"] = list(schema["required"])
    return result


def _array(schema: Schema, parts: dict[str, Schema]) -> Schema:
    # Structural schemas have no tuples: one of equal item types becomes an array with fixed bounds.
    items = schema["prefixItems"][0] if "prefixItems" in schema else schema["items"]
    bounds: Schema = {key: schema[key] for key in ("minItems", "maxItems") if key in schema}
    return {"type": "array", "items": _structural(items, parts), **bounds}

"""The CustomResourceDefinitions of the group: what they say, and making those that are missing.

One that is there belongs to whoever runs the cluster, and is never altered: a newer release brings its own as files.
"""

from typing import Any, Final, NamedTuple

from contrail_config.kube.client import KubeClient
from contrail_config.kube.custom_resource_definitions import CUSTOM_RESOURCE_DEFINITIONS, DEADLINE, ensure_crd
from contrail_config.kube.resource import Resource
from contrail_config.kubernetes.errors import as_store_error
from contrail_config.kubernetes.kinds import ADDRESS_BLOCKS, CONTRAIL_NODES, VIRTUAL_MACHINES, VIRTUAL_NETWORKS
from contrail_config.kubernetes.schemas import structural_schema


class _Column(NamedTuple):
    """A column of `kubectl get`; those of priority 1 are shown by `-o wide` alone."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


class _Shown(NamedTuple):
    """How people meet a kind."""

    resource: Resource[Any]
    short_name: str
    columns: tuple[_Column, ...]


_AGE: Final = _Column("Age", ".metadata.creationTimestamp", "date")

_KINDS: Final = (
    _Shown(
        VIRTUAL_MACHINES,
        "cvm",
        (
            _Column("Node", ".spec.node"),
            _Column("Interfaces", ".status.interfaces", "integer"),
            _Column("Addresses", ".status.addresses"),
            _AGE,
            _Column("Networks", ".status.networks", priority=1),
            _Column("UID", ".spec.uuid", priority=1),
        ),
    ),
    _Shown(
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
    ),
    _Shown(
        ADDRESS_BLOCKS,
        "cab",
        (
            _Column("Network", ".spec.network"),
            _Column("First", ".spec.first"),
            _Column("Given", ".status.given", "integer"),
            _Column("Held", ".status.held", "integer"),
            _AGE,
        ),
    ),
    _Shown(
        CONTRAIL_NODES,
        "cn",
        (
            _Column("Agent", ".status.versions.agent"),
            _Column("Pending Deletes", ".status.pendingDeletes", "integer"),
            _Column("Last Error", ".status.lastErrors[0]"),
            _Column("Reported", ".status.reportedAt", "date"),
            _AGE,
            _Column("Conflict", ".status.conflicts[0]", priority=1),
        ),
    ),
)


def crds() -> dict[str, dict[str, Any]]:
    """The definitions, by name."""
    return {definition["metadata"]["name"]: definition for definition in map(_definition, _KINDS)}


async def ensure_crds(client: KubeClient, *, deadline: float = DEADLINE) -> dict[str, str]:
    """Makes those definitions that are not there, and returns the uids of all, by name, when they are established.

    Raises StoreUnavailableError, which names the one that is not within `deadline` seconds, and what else the server
    answers.
    """
    uids = {}
    for name, definition in crds().items():
        with as_store_error(f"CustomResourceDefinition {name}"):
            uids[name] = await ensure_crd(client, name, definition, deadline=deadline)
    return uids


def _definition(shown: _Shown) -> dict[str, Any]:
    resource = shown.resource
    schema = structural_schema(resource.type)
    schema["properties"] |= {name: {"type": "string"} for name in ("apiVersion", "kind")}
    schema["properties"]["metadata"] = {"type": "object"}
    columns = [
        {"name": column.name, "type": column.type, "jsonPath": column.path}
        | ({"priority": column.priority} if column.priority else {})
        for column in shown.columns
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
                "shortNames": [shown.short_name],
            },
            "versions": [version],
        },
    }

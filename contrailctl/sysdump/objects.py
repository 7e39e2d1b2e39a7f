"""Objects of a dump: ours and those of the installation as a whole, of tenants' pods only what concerns networks."""

from typing import Any, NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.errors import KubeError
from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kube.selector import EVERYTHING, Selector
from contrail_config.kubernetes.kinds import GROUP, VERSION
from contrail_config.kubernetes.pods import CreatedMetadata, PodStatus
from contrailctl.sysdump.archive import DumpFolder
from contrailctl.sysdump.redaction import redacted

MAX_OBJECTS = 20_000
"""Of one kind; further ones are left out, and that is said."""

_NETWORK_ANNOTATIONS = ("cni.cncf.io/", "opencontrail.org/", "kubernetes.io/config.")


class _Metadata(Metadata, frozen=True, kw_only=True):
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Any = None
    annotations: Any = None
    owner_references: Any = None
    finalizers: Any = None


class _Whole(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An object without managedFields; the later fields are those of events and ConfigMaps."""

    metadata: _Metadata
    spec: Any = None
    status: Any = None
    data: Any = None
    type: Any = None
    reason: Any = None
    message: Any = None
    involved_object: Any = None
    count: Any = None
    first_timestamp: Any = None
    last_timestamp: Any = None
    event_time: Any = None


class _TenantPodSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    node_name: str = ""
    host_network: bool = False


class _TenantPod(msgspec.Struct, frozen=True):
    metadata: CreatedMetadata
    spec: _TenantPodSpec = _TenantPodSpec()
    status: PodStatus = PodStatus()


class _TenantNamespace(msgspec.Struct, frozen=True):
    metadata: CreatedMetadata


class _Dumped(NamedTuple):
    file: str
    resource: Resource[Any]
    selector: Selector = EVERYTHING


def _ours(kind: str, plural: str, *, namespaced: bool) -> _Dumped:
    return _Dumped(plural, Resource(GROUP, VERSION, kind, plural, _Whole, namespaced=namespaced))


def _dumped(namespace: str) -> list[_Dumped]:
    """Returns what is dumped; `namespace` is that of the installation."""
    installation = Selector(namespace=namespace)
    of_pods = Selector(fields="involvedObject.kind=Pod,type=Warning")
    events = Resource("", "v1", "Event", "events", _Whole)
    return [
        _ours("ContrailNode", "contrailnodes", namespaced=False),
        _ours("VirtualNetwork", "virtualnetworks", namespaced=False),
        _ours("AddressBlock", "addressblocks", namespaced=False),
        _ours("VirtualMachine", "virtualmachines", namespaced=True),
        _ours("NetworkSlice", "networkslices", namespaced=True),
        _Dumped(
            "network-attachment-definitions",
            Resource("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", _Whole),
        ),
        _Dumped("nodes", Resource("", "v1", "Node", "nodes", _Whole, namespaced=False)),
        _Dumped("namespaces", Resource("", "v1", "Namespace", "namespaces", _TenantNamespace, namespaced=False)),
        _Dumped("pods", Resource("", "v1", "Pod", "pods", _TenantPod)),
        _Dumped("warnings-of-pods", events, of_pods),
        _Dumped("installation/events", events, installation),
        _Dumped("installation/pods", Resource("", "v1", "Pod", "pods", _Whole), installation),
        _Dumped("installation/configmaps", Resource("", "v1", "ConfigMap", "configmaps", _Whole), installation),
        _Dumped("installation/daemonsets", Resource("apps", "v1", "DaemonSet", "daemonsets", _Whole), installation),
        _Dumped("installation/deployments", Resource("apps", "v1", "Deployment", "deployments", _Whole), installation),
        _Dumped("installation/leases", Resource("coordination.k8s.io", "v1", "Lease", "leases", _Whole), installation),
    ]


async def dump_objects(client: KubeClient, namespace: str, folder: DumpFolder, *, limit: int = MAX_OBJECTS) -> None:
    """Writes one file for each kind, one JSON document per line; what cannot be read is a problem of the folder."""
    for each in _dumped(namespace):
        try:
            await _dump(client, each, folder, limit)
        except KubeError as error:
            folder.problems.append(f"objects/{each.file}: {error}")


async def _dump(client: KubeClient, dumped: _Dumped, folder: DumpFolder, limit: int) -> None:
    written = 0
    with folder.path(f"objects/{dumped.file}.jsonl").open("wb") as file:
        async for page in client.pages(dumped.resource, dumped.selector):
            for item in page.items[: limit - written]:
                file.write(_line(item))
            written += len(page.items)
            if written >= limit and (written > limit or page.following):
                folder.problems.append(f"objects/{dumped.file}: only the first {limit:,} objects")
                return


def _line(item: Any) -> bytes:
    if isinstance(item, UndecodableObject):
        return msgspec.json.encode({"metadata": item.metadata, "undecodable": item.problem}) + b"\n"
    if isinstance(item, (_TenantPod, _TenantNamespace)):
        item = msgspec.structs.replace(item, metadata=_of_tenant(item.metadata))
    return msgspec.json.encode(redacted(msgspec.to_builtins(item))) + b"\n"


def _of_tenant(metadata: CreatedMetadata) -> CreatedMetadata:
    """Returns the metadata with the annotations that concern networks only, and without labels."""
    kept = {
        key: text for key, text in metadata.annotations.items() if any(part in key for part in _NETWORK_ANNOTATIONS)
    }
    return msgspec.structs.replace(metadata, labels={}, annotations=kept)

"""Wire types of the group `opencontrail.org`.

`spec` of each object is a config object. `status` is written together with it and has no further information: it
provides the columns of `kubectl get`, which cannot be computed from a list in the spec.

Objects are replaced as a whole, so metadata that other clients may set, and fields of newer releases, are preserved.

Docstrings of these classes are published: they become the descriptions in the CustomResourceDefinitions.
"""

import dataclasses
import hashlib
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from contrail_config.kube.resource import Metadata, Resource
from contrail_config.kubernetes.network_buckets import network_bucket
from contrail_config.kubernetes.node_buckets import is_node_bucket, node_bucket
from contrail_config.objects import ConfigObject, NetworkRepairs, NetworkSlice, Refusal, VirtualMachine, VirtualNetwork
from contrail_config.port_readings import PodPorts
from contrail_config.unknown_fields import with_unknown_fields

GROUP: Final = "opencontrail.org"
VERSION: Final = "v1alpha1"

NODE_LABEL: Final = f"{GROUP}/node"
NAMESPACE_LABEL: Final = f"{GROUP}/namespace"
POD_LABEL: Final = f"{GROUP}/pod"
NETWORK_LABEL: Final = f"{GROUP}/network"

PROPOSED: Final = f"{GROUP}/proposed"
"""Annotation of a network that is not confirmed yet: only writers take notice of it (see `virtual_networks`)."""

_LONGEST_LABEL: Final = 63  # of Kubernetes label values; names of nodes and pods may have 253 characters


class OwnerReference(ConfigObject, frozen=True):
    """The object with which the garbage collector deletes this one."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class FullMetadata(Metadata, frozen=True):
    """Metadata that is preserved when an object is replaced as a whole."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class UntrackedMetadata(FullMetadata, frozen=True, kw_only=True):
    """Metadata that clears managedFields, so that the server does not track field ownership of a large object.

    That tracking is half of the server's work for an update.
    """

    managed_fields: tuple[dict[str, str], ...]


UNTRACKED: Final[tuple[dict[str, str], ...]] = ({},)
"""The only value that clears managedFields: a list with one empty entry. An empty list leaves them unchanged."""


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object with every field that the server has of it, also those that this release does not know.

    Read before an object is replaced, so that fields of a newer release are preserved.
    """

    metadata: FullMetadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class VirtualMachineSummary(ConfigObject, frozen=True):
    """Columns of a virtual machine in `kubectl get`."""

    interfaces: int
    addresses: str
    networks: str


class VirtualMachineObject(ConfigObject, frozen=True):
    """A virtual machine. The object's name is its uuid, its namespace the bucket of its node."""

    metadata: FullMetadata
    spec: VirtualMachine
    status: VirtualMachineSummary | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether it is in a namespace where only managers write, and under its own uuid."""
        return is_node_bucket(self.metadata.namespace) and self.metadata.name == self.spec.uuid

    @property
    def is_in_place(self) -> bool:
        """Whether it is in the bucket of its node; a virtual machine that changes its node is not for a moment."""
        return self.metadata.namespace == node_bucket(self.spec.node)


class NetworkSummary(ConfigObject, frozen=True):
    """Columns of a network in `kubectl get`."""

    name: str
    subnets: str


class VirtualNetworkObject(ConfigObject, frozen=True):
    """A network. The object's name is its uuid."""

    metadata: FullMetadata
    spec: VirtualNetwork
    status: NetworkSummary | None = None

    @property
    def is_confirmed(self) -> bool:
        """Whether its vni and its name are known to be unique."""
        return PROPOSED not in self.metadata.annotations


class LastAllocation(ConfigObject, frozen=True):
    """The address of the block that was allocated last, and when, in seconds since the epoch."""

    address: str
    at: float


class BlockSpec(ConfigObject, frozen=True):
    """64 addresses of a network from `first` on; `addresses` has one line for each address that is not free.

    `node` is set if the network is routed by block: the node to which the block belongs. A line has the address and its
    owner: the uuid of an interface, or `node/` and the name of the node whose own address it is. For a held address,
    the start and the end of the hold follow, in seconds since the epoch. `@` and a node follow a borrowed address,
    whose owner is on that node, and a held one that may still be in use there. Releases ignore and preserve further
    fields of the form `key=value`.
    """

    network: str
    first: str
    addresses: str = ""
    last_given: LastAllocation | None = None
    node: str | None = None


class BlockSummary(ConfigObject, frozen=True):
    """Columns of a block in `kubectl get`."""

    given: int
    held: int
    borrowed: int = msgspec.field(default_factory=int)  # a factory, so that 0 is written too: `kubectl` shows it


class AddressBlockObject(ConfigObject, frozen=True):
    """A block of addresses. Only managers read it."""

    metadata: FullMetadata
    spec: BlockSpec
    status: BlockSummary | None = None


class SliceSummary(ConfigObject, frozen=True):
    """Columns of a network slice in `kubectl get`."""

    network: str
    tunnel: str
    endpoints: int
    blocks: str


class NetworkSliceObject(ConfigObject, frozen=True):
    """A network slice, named after the network's uuid and the node, in the bucket of its network."""

    metadata: FullMetadata
    spec: NetworkSlice
    status: SliceSummary | None = None


class NodeReport(ConfigObject, frozen=True):
    """Report of an agent on its node, at most every 10 s; the newest items of each list come first.

    `reported_at` is the node's time (RFC 3339), `instance` the reporting process, `versions` maps components to
    versions. `unplugged`: uuids of interfaces whose ports were unplugged after the deletion of their virtual machines,
    listed as long as their addresses may be held for that. `pending_deletes`: number of ports that are still plugged
    although their virtual machines were deleted. `refused`: networks that the node does not connect, and subnets to
    which it has no route. `tunnel_mtu`: the longest packet of a pod that fits into a tunnel of the node, in bytes.
    `datapath`: what connects its pods, `linux` or `none`. `not_ready`: why the agent is not ready, at most 8 reasons.
    `missing_modules`: modules that the node's kernel lacks, so that it takes no pods. `repairs`: how often the datapath
    repaired what other programs had changed, by kind, since the start of the agent. `repaired_networks`: the same by
    network, of the latest. `ports`: those of pods at which somebody looks now; a new request is answered at once.
    """

    reported_at: str
    instance: str
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    unplugged: tuple[str, ...] = ()
    pending_deletes: int = msgspec.field(default_factory=int)  # a factory, so that 0 is written too: `kubectl` shows it
    conflicts: tuple[str, ...] = ()
    last_errors: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    tunnel_mtu: int | None = None
    datapath: str | None = None
    not_ready: tuple[str, ...] = ()
    missing_modules: tuple[str, ...] = ()
    repairs: dict[str, int] = msgspec.field(default_factory=dict)
    repaired_networks: tuple[NetworkRepairs, ...] = ()
    ports: tuple[PodPorts, ...] = ()

    @property
    def time(self) -> datetime | None:
        """When it was written, with a time zone; None if `reported_at` is no time."""
        try:
            time = datetime.fromisoformat(self.reported_at)
        except ValueError:
            return None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class ContrailNodeObject(ConfigObject, frozen=True):
    """Report of a node, named after the node."""

    metadata: FullMetadata
    status: NodeReport


NETWORK_SLICES: Final = Resource(GROUP, VERSION, "NetworkSlice", "networkslices", NetworkSliceObject)
VIRTUAL_MACHINES: Final = Resource(GROUP, VERSION, "VirtualMachine", "virtualmachines", VirtualMachineObject)
VIRTUAL_NETWORKS: Final = Resource(
    GROUP, VERSION, "VirtualNetwork", "virtualnetworks", VirtualNetworkObject, namespaced=False
)
ADDRESS_BLOCKS: Final = Resource(GROUP, VERSION, "AddressBlock", "addressblocks", AddressBlockObject, namespaced=False)
CONTRAIL_NODES: Final = Resource(GROUP, VERSION, "ContrailNode", "contrailnodes", ContrailNodeObject, namespaced=False)


def documents(resource: Resource[Any]) -> Resource[Document]:
    """Returns the resource of the same objects as documents."""
    return dataclasses.replace(resource, type=Document)


VIRTUAL_MACHINE_DOCUMENTS: Final = documents(VIRTUAL_MACHINES)
VIRTUAL_NETWORK_DOCUMENTS: Final = documents(VIRTUAL_NETWORKS)
ADDRESS_BLOCK_DOCUMENTS: Final = documents(ADDRESS_BLOCKS)
CONTRAIL_NODE_DOCUMENTS: Final = documents(CONTRAIL_NODES)
NETWORK_SLICE_DOCUMENTS: Final = documents(NETWORK_SLICES)

KINDS: Final[tuple[Resource[Any], ...]] = (
    VIRTUAL_MACHINES,
    VIRTUAL_NETWORKS,
    ADDRESS_BLOCKS,
    NETWORK_SLICES,
    CONTRAIL_NODES,
)


def label_value(name: str) -> str:
    """Returns the value of a label for a name. A name that is too long for a label is cut and gets a digest."""
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: _LONGEST_LABEL - 13]}-{digest}"


def virtual_machine_object(virtual_machine: VirtualMachine) -> VirtualMachineObject:
    """Returns the object of a virtual machine."""
    labels = {
        NODE_LABEL: label_value(virtual_machine.node),
        NAMESPACE_LABEL: label_value(virtual_machine.namespace),
        POD_LABEL: label_value(virtual_machine.pod),
    }
    metadata = FullMetadata(name=virtual_machine.uuid, namespace=node_bucket(virtual_machine.node), labels=labels)
    addresses = [address.address for interface in virtual_machine.interfaces for address in interface.addresses]
    networks = [interface.network[2] for interface in virtual_machine.interfaces]
    summary = VirtualMachineSummary(len(virtual_machine.interfaces), ",".join(addresses), ",".join(networks))
    return VirtualMachineObject(metadata, virtual_machine, summary)


def virtual_network_object(network: VirtualNetwork) -> VirtualNetworkObject:
    """Returns the object of a network."""
    summary = NetworkSummary(network.name, ",".join(subnet.cidr for subnet in network.subnets))
    return VirtualNetworkObject(FullMetadata(name=network.uuid), network, summary)


def network_slice_name(network_uuid: str, node: str) -> str:
    """Returns the name of the slice's object; a node name that is too long is cut, and gets a digest."""
    return f"{network_uuid}.{label_value(node)}"


def network_slice_object(item: NetworkSlice) -> NetworkSliceObject:
    """Returns the object of a network slice."""
    metadata = UntrackedMetadata(
        name=network_slice_name(item.network_uuid, item.node),
        namespace=network_bucket(item.network_uuid),
        labels={NETWORK_LABEL: item.network_uuid, NODE_LABEL: label_value(item.node)},
        managed_fields=UNTRACKED,
    )
    blocks = ",".join([*item.blocks, *item.borrowed])
    summary = SliceSummary(item.network[2], ",".join(item.tunnel), len(item.endpoints), blocks)
    return NetworkSliceObject(metadata, item, summary)


def replacement(found: Document, wanted: VirtualMachineObject | VirtualNetworkObject) -> Document:
    """Returns the wanted object with the existing metadata, the wanted labels, and all unknown fields."""
    labels = {**found.metadata.labels, **wanted.metadata.labels}
    return Document(
        msgspec.structs.replace(found.metadata, labels=labels),
        with_unknown_fields(wanted.spec, found.spec),
        {} if wanted.status is None else with_unknown_fields(wanted.status, found.status),
    )

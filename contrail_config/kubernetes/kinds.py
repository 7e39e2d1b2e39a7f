"""The kinds of the group `opencontrail.org`, as they are on the wire.

Each object holds a config object as its `spec`. `status` is written once with it and holds nothing new: it is what
`kubectl get` shows in a line, which cannot be taken from a list within the spec.

Metadata that others may set is kept, since objects are replaced as a whole.
"""

import hashlib
from typing import Any, Final, TypeVar

import msgspec

from contrail_config.kube.resource import Metadata, Resource
from contrail_config.objects import ConfigObject, VirtualMachine, VirtualNetwork

GROUP: Final = "opencontrail.org"
VERSION: Final = "v1alpha1"

UUID_LABEL: Final = f"{GROUP}/uuid"
NODE_LABEL: Final = f"{GROUP}/node"
NETWORK_LABEL: Final = f"{GROUP}/network"

PROPOSED: Final = f"{GROUP}/proposed"
"""Annotation of a network that is not settled yet: nobody but who settles it takes notice of it (see `networks`)."""

_LONGEST_LABEL: Final = 63


class OwnerReference(ConfigObject, frozen=True):
    """The object with which this one goes, if nobody else removes it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class KeptMetadata(Metadata, frozen=True):
    """Metadata of objects that are replaced as a whole."""

    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class UntrackedMetadata(KeptMetadata, frozen=True, kw_only=True):
    """Metadata that is written of an object with many fields, so that the server does not note who set which of them.

    That takes half of its work for an update; it is what its documentation calls clearing managedFields.
    """

    managed_fields: tuple[dict[str, str], ...]


UNTRACKED: Final[tuple[dict[str, str], ...]] = ({},)
"""The one value that clears them."""


class MachineSummary(ConfigObject, frozen=True):
    """What `kubectl get` shows of a machine."""

    interfaces: int
    addresses: str
    networks: str


class VirtualMachineObject(ConfigObject, frozen=True, forbid_unknown_fields=False):
    """A machine, named as its pod, in its namespace."""

    metadata: KeptMetadata
    spec: VirtualMachine
    status: MachineSummary | None = None


class NetworkSummary(ConfigObject, frozen=True):
    """What `kubectl get` shows of a network."""

    name: str
    subnets: str


class VirtualNetworkObject(ConfigObject, frozen=True, forbid_unknown_fields=False):
    """A network, named by its uuid."""

    metadata: KeptMetadata
    spec: VirtualNetwork
    status: NetworkSummary | None = None

    @property
    def is_settled(self) -> bool:
        """Whether its number and its name are its own for certain."""
        return PROPOSED not in self.metadata.annotations


class LastGiven(ConfigObject, frozen=True):
    """The address of the block that was given last, and when, in seconds since the epoch."""

    address: str
    at: float


class BlockSpec(ConfigObject, frozen=True):
    """64 addresses of a network from `first` on; `addresses` are those that are not free, each in a line.

    A line has the address and its owner; of one that is held back also since when and until when, in seconds since the
    epoch.
    """

    network: str
    first: str
    addresses: str = ""
    last_given: LastGiven | None = None


class BlockSummary(ConfigObject, frozen=True):
    """What `kubectl get` shows of a block."""

    given: int
    held: int


class AddressBlockObject(ConfigObject, frozen=True, forbid_unknown_fields=False):
    """A block of addresses; only managers read it."""

    metadata: KeptMetadata
    spec: BlockSpec
    status: BlockSummary | None = None


class NodeReport(ConfigObject, frozen=True, forbid_unknown_fields=False):
    """What an agent tells of its node, at most every 10 s; the newest of each list come first.

    `reported_at` is by the node's clock (RFC 3339), `instance` the process that reports, `versions` are by the name of
    what runs. `unplugged`: uuids of interfaces whose ports were unplugged after their machines had gone, for as long as
    their addresses may be held back for that; `pending_deletes`: ports still plugged though their machines have gone.
    """

    reported_at: str
    instance: str
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    unplugged: tuple[str, ...] = ()
    pending_deletes: int = msgspec.field(default_factory=int)  # written if 0 too, unlike a default: `kubectl` shows it
    conflicts: tuple[str, ...] = ()
    last_errors: tuple[str, ...] = ()


class ContrailNodeObject(ConfigObject, frozen=True, forbid_unknown_fields=False):
    """A node's report, named as the node."""

    metadata: KeptMetadata
    status: NodeReport


VIRTUAL_MACHINES: Final = Resource(GROUP, VERSION, "VirtualMachine", "virtualmachines", VirtualMachineObject)
VIRTUAL_NETWORKS: Final = Resource(
    GROUP, VERSION, "VirtualNetwork", "virtualnetworks", VirtualNetworkObject, namespaced=False
)
ADDRESS_BLOCKS: Final = Resource(GROUP, VERSION, "AddressBlock", "addressblocks", AddressBlockObject, namespaced=False)
CONTRAIL_NODES: Final = Resource(GROUP, VERSION, "ContrailNode", "contrailnodes", ContrailNodeObject, namespaced=False)

ObjectT = TypeVar("ObjectT", VirtualMachineObject, VirtualNetworkObject)

KINDS: Final[tuple[Resource[Any], ...]] = (VIRTUAL_MACHINES, VIRTUAL_NETWORKS, ADDRESS_BLOCKS, CONTRAIL_NODES)


def node_label(node: str) -> str:
    """Value of the node label; a name that is too long for one is cut, and told apart by a digest."""
    if len(node) <= _LONGEST_LABEL:
        return node
    digest = hashlib.sha256(node.encode()).hexdigest()[:12]
    return f"{node[: _LONGEST_LABEL - 13]}-{digest}"


def virtual_machine_object(machine: VirtualMachine) -> VirtualMachineObject:
    """The machine as it is created; it goes with its pod, if nobody else removes it, but not with a mirror."""
    owners = () if machine.has_mirror_pod else (OwnerReference("v1", "Pod", machine.pod, machine.uuid),)
    labels = {UUID_LABEL: machine.uuid, NODE_LABEL: node_label(machine.node)}
    metadata = KeptMetadata(name=machine.pod, namespace=machine.namespace, labels=labels, owner_references=owners)
    addresses = [address.address for interface in machine.interfaces for address in interface.addresses]
    networks = [interface.network[2] for interface in machine.interfaces]
    summary = MachineSummary(len(machine.interfaces), ",".join(addresses), ",".join(networks))
    return VirtualMachineObject(metadata, machine, summary)


def virtual_network_object(network: VirtualNetwork) -> VirtualNetworkObject:
    """The network as it is created."""
    summary = NetworkSummary(network.name, ",".join(subnet.cidr for subnet in network.subnets))
    return VirtualNetworkObject(KeptMetadata(name=network.uuid), network, summary)


def succeed(found: ObjectT, wanted: ObjectT) -> ObjectT:
    """The wanted object as the successor of the one that was found: what others set in its metadata stays."""
    labels = {**found.metadata.labels, **wanted.metadata.labels}
    return msgspec.structs.replace(wanted, metadata=msgspec.structs.replace(found.metadata, labels=labels))

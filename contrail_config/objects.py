"""Config objects: virtual networks, virtual machines and their interfaces.

A `VirtualMachine` holds everything that an agent answers about a pod (network uuid and name, prefix, gateway, dns,
mtu, routes), so an agent reads no other kind. Objects are frozen: a change creates a new object.

JSON keys are camelCase, as Kubernetes users expect of a custom resource.

Docstrings of these classes are published: they become the descriptions in the CustomResourceDefinitions.
"""

import functools
import uuid
from enum import StrEnum
from typing import NamedTuple

import msgspec

FqName = tuple[str, str, str]
"""domain, project, name"""

# Namespaces of the derived (v5) uuids. Changing one gives every object of its kind a new identity.
_VMI_NAMESPACE = uuid.UUID("5c1e7a52-9d0b-4f5e-8a43-0d6f3c1b7e10")
_POD_NAMESPACE = uuid.UUID("0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94")
_STATIC_NAMESPACE = uuid.UUID("b7c05d4e-63f4-4a0b-9d2c-2f7e8a51c9d3")
_MAC_NAMESPACE = uuid.UUID("9b2f6d1e-0c7a-4e7d-8f55-3b1c2a6e4d08")
_NETWORK_NAMESPACE = uuid.UUID("a1f4d3f6-2b77-4c0e-9f0e-64d1d3c58b21")


class ConfigObject(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of all config objects: frozen, camelCase keys, defaults omitted, unknown fields ignored.

    The first field identifies an item of a list. Writers preserve unknown fields: see `unknown_fields`.
    """

    # gc=False: immutable objects form no reference cycles, and there may be hundreds of thousands of them.


class DefaultGateway(StrEnum):
    """Default routes that the user requests for an interface (`default-gw`); None in the field means no request."""

    BOTH = "true"
    IPV4 = "ipv4"
    IPV6 = "ipv6"
    NONE = "none"

    @property
    def families(self) -> frozenset[int]:
        """Families (4, 6) of the requested routes."""
        return _FAMILIES[self]


_FAMILIES = {
    DefaultGateway.BOTH: frozenset({4, 6}),
    DefaultGateway.IPV4: frozenset({4}),
    DefaultGateway.IPV6: frozenset({6}),
    DefaultGateway.NONE: frozenset[int](),
}


class Route(ConfigObject, frozen=True):
    """A route that every interface of a network gets: `dst` is a CIDR, `gw` an address (None: on-link)."""

    dst: str
    gw: str | None = None


class Subnet(ConfigObject, frozen=True):
    """A subnet of a network. `cidr` is in canonical form; `excluded` addresses and CIDRs are never allocated."""

    cidr: str
    gateway: str | None
    excluded: tuple[str, ...] = ()


class ForwardingMode(StrEnum):
    """How nodes forward packets of a network: by MAC and IP address, or by IP address alone, as in Contrail."""

    L2_L3 = "l2_l3"
    L3 = "l3"


class VirtualNetwork(ConfigObject, frozen=True):
    """A network. `nad` is `namespace/name` of the NAD that defines it, None for pod networks.

    `mtu` is in bytes; None if it is not configured: new pods get the longest that fits the tunnels between nodes.

    `namespace` is set for the pod network of an isolated namespace: only its pods can use the network.
    """

    fq_name: FqName
    uuid: str
    subnets: tuple[Subnet, ...]
    dns: tuple[str, ...] = ()
    mtu: int | None = None
    routes: tuple[Route, ...] = ()
    ip_fabric_snat: bool = False
    ip_fabric_forwarding: bool = False
    vni: int = 0  # 0: not assigned; the store assigns one when it creates the network
    nad: str | None = None
    retired: bool = False  # its NAD was deleted: accepts no new pods, deleted with its last interface
    forwarding_mode: ForwardingMode = ForwardingMode.L2_L3
    namespace: str | None = None

    @property
    def name(self) -> str:
        """`fq_name` as one string, `domain:project:name`."""
        return ":".join(self.fq_name)

    @property
    def has_node_blocks(self) -> bool:
        """Whether its address blocks belong to nodes, so that other nodes need only one route for each."""
        return self.forwarding_mode is ForwardingMode.L3


class InterfaceAddress(ConfigObject, frozen=True):
    """One address of an interface, at most one per family, with its subnet's settings.

    `gateway` is the one that the pod uses, which it may have requested; `subnet_gateway` is the subnet's own.
    """

    address: str
    prefix_length: int
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    subnet_gateway: str | None = None  # nodes answer for it; a requested gateway may be another pod's address

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


class PodNetwork(StrEnum):
    """Kinds of networks whose addresses are those of the cluster pod network: that one, or an isolated namespace's."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"


class VirtualMachineInterface(ConfigObject, frozen=True):
    """One interface of a pod. Its index is its position in the virtual machine's list.

    `nad` is `namespace/name` (at index 0 only if a NAD selects the network), `config_name` the network name that Multus
    passes, `interface` the name that the user requested, `attachment` the CNI_IFNAME that Multus passes.

    `vni` (0: none), `ip_fabric_snat`, `ip_fabric_forwarding` and `forwarding_mode` are those that the network had at
    the assignment.
    `pod_network` is None in a network that has subnets of its own.
    """

    uuid: str
    mac: str
    network_uuid: str
    network: FqName
    addresses: tuple[InterfaceAddress, ...]
    mtu: int = 1500
    routes: tuple[Route, ...] = ()
    nad: str | None = None
    config_name: str | None = None
    interface: str | None = None
    attachment: str | None = None
    default_gw: DefaultGateway | None = None
    vni: int = 0
    ip_fabric_snat: bool = False
    ip_fabric_forwarding: bool = False
    pod_network: PodNetwork | None = None
    forwarding_mode: ForwardingMode = ForwardingMode.L2_L3


class Refusal(ConfigObject, frozen=True):
    """A network that a node does not connect, or only gives no route to `subnet` (a CIDR) if it is `connected`.

    `reason` is a word for programs, `message` names network, subnet, and what is in the way.
    """

    network: FqName
    vni: int
    reason: str
    message: str
    subnet: str | None = None
    connected: bool = False


class NetworkRepairs(ConfigObject, frozen=True):
    """How often a node repaired what other programs had changed of a network, and when last (RFC 3339)."""

    network: FqName
    vni: int
    repairs: int
    latest: str


class Pending(ConfigObject, frozen=True):
    """Why a pod has no interfaces yet: reason and message as in its event. The message may be cut."""

    reason: str
    message: str


class VirtualMachine(ConfigObject, frozen=True):
    """A pod with its ordered list of interfaces. `name` is `cluster__namespace__pod`.

    `uuid` is the pod's UID. For a static pod in a cluster it is derived from the config hash, since the UID of the
    mirror pod may change. `config_hash` is set for static pods: the runtime uses it as UID, the API shows another one.

    `pending` is set if the pod has no interfaces yet. Such a virtual machine only tells the agent why: it holds no
    address, and the complete one replaces it.
    """

    uuid: str
    name: str
    cluster: str
    project: str
    namespace: str
    pod: str
    node: str
    interfaces: tuple[VirtualMachineInterface, ...]
    config_hash: str | None = None
    pending: Pending | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it only says why there are no interfaces. Older releases preserve the field when they add some."""
        return self.pending is not None and not self.interfaces

    @property
    def has_mirror_pod(self) -> bool:
        """Whether this is a static pod of a cluster, shown there as a mirror pod that may be deleted and recreated."""
        config_hash = self.config_hash
        return config_hash is not None and self.uuid == static_pod_uuid(self.namespace, self.pod, config_hash)


class Endpoint(NamedTuple):
    """An interface as other nodes address it: its MAC and its addresses, without prefix length."""

    mac: str
    addresses: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The item of `NetworkSlice.endpoints`; `parse_endpoint` reads it."""
        return " ".join((self.mac, *self.addresses))


def parse_endpoint(text: str) -> Endpoint:
    """Parses an item of `NetworkSlice.endpoints`."""
    mac, *addresses = text.split(" ")
    return Endpoint(mac, tuple(addresses))


class NetworkSlice(ConfigObject, frozen=True):
    """What other nodes need to know of one network on one node. Derived from virtual machines and address blocks.

    `tunnel` are the addresses under which the node is reached, at most one per family. A network with `forwarding_mode`
    l2_l3 lists its `endpoints`. One with l3 lists `blocks`, the CIDRs of the address blocks that belong to the node,
    `borrowed`, single addresses that are on the node although their blocks do not belong to it, and `node_addresses`,
    those of the node itself in its blocks, at most one per family; beside them `endpoints`, as long as any pod has an
    interface that was assigned as l2_l3.

    An endpoint is a text, its MAC and its addresses, separated by spaces: an API server takes three times as long to
    write a slice of 250 endpoints that are objects.
    """

    network_uuid: str
    node: str
    network: FqName
    vni: int
    forwarding_mode: ForwardingMode = ForwardingMode.L2_L3
    tunnel: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    node_addresses: tuple[str, ...] = ()


class EventType(StrEnum):
    """Event types of Kubernetes."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Event(ConfigObject, frozen=True):
    """An event of a pod or a NAD, in the form of Kubernetes events: repetitions increase `count`.

    `kind` is `Pod`, `NetworkAttachmentDefinition` or `Manifest` (then `name` is the path of the file and `namespace` is
    empty). Times are seconds since the epoch.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    type: EventType
    reason: str
    message: str
    count: int
    first_seen: float
    last_seen: float


def virtual_machine_name(cluster: str, namespace: str, pod: str) -> str:
    """Name of a pod's virtual machine: the key of the agent's `/vm-cfg` endpoint."""
    return f"{cluster}__{namespace}__{pod}"


def pod_uuid(uid: str) -> str:
    """A pod's UID in canonical form, lower case with hyphens; a UID that is not a UUID is mapped to one (v5)."""
    try:
        return str(uuid.UUID(uid))
    except ValueError:
        return str(uuid.uuid5(_POD_NAMESPACE, uid))


def static_pod_uuid(namespace: str, name: str, config_hash: str) -> str:
    """Uuid of a static pod, stable when its mirror pod is deleted and kubelet creates another one."""
    return str(uuid.uuid5(_STATIC_NAMESPACE, f"{namespace}/{name}/{config_hash}"))


def interface_name(index: int, interface: str | None) -> str:
    """Name in the sandbox of the interface at `index` in thick mode: the requested name `interface`, or `ethN`."""
    return interface or f"eth{index}"


@functools.lru_cache(maxsize=4096)  # called several times for each pod
def interface_uuid(pod_uid: str, index: int) -> str:
    """Uuid of a pod's interface, derived: stable across restarts."""
    return str(uuid.uuid5(_VMI_NAMESPACE, f"{pod_uid}/{index}"))


def interface_mac(vmi_uuid: str, attempt: int = 0) -> str:
    """Default MAC of an interface, derived from its uuid, with the locally administered bit set (0x02).

    `attempt`: number of MACs derived before, which other interfaces of the network have.
    """
    source = uuid.UUID(vmi_uuid) if attempt == 0 else uuid.uuid5(_MAC_NAMESPACE, f"{vmi_uuid}/{attempt}")
    octets = source.bytes[:5]
    return ":".join(f"{octet:02x}" for octet in (0x02, *octets))


def pod_network_name(cluster: str) -> FqName:
    """Name of the cluster's pod network: that of the network of a NAD `default` in the namespace `default`."""
    return ("default-domain", f"{cluster}-default", f"{cluster}-default-pod-network")


def network_uuid(fq_name: FqName) -> str:
    """Uuid of a network, derived from its name: a recreated network keeps its identity."""
    return str(uuid.uuid5(_NETWORK_NAMESPACE, ":".join(fq_name)))

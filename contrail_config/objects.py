"""The config objects: virtual networks, virtual machines and their interfaces.

A `VirtualMachine` holds everything that an agent answers about a pod (network uuid and name, prefix, gateway, dns,
mtu, routes), so that an agent reads no other kind. Objects are frozen: a change is a new object.

JSON keys are camelCase, as Kubernetes users expect of a custom resource.
"""

import functools
import uuid
from enum import StrEnum

import msgspec

FqName = tuple[str, str, str]
"""domain, project, name"""

_VMI_NAMESPACE = uuid.UUID("5c1e7a52-9d0b-4f5e-8a43-0d6f3c1b7e10")
_POD_NAMESPACE = uuid.UUID("0e5f1bb4-7a41-4d8e-b0d5-9c1c3f2a6d94")
_STATIC_NAMESPACE = uuid.UUID("b7c05d4e-63f4-4a0b-9d2c-2f7e8a51c9d3")
_NETWORK_NAMESPACE = uuid.UUID("a1f4d3f6-2b77-4c0e-9f0e-64d1d3c58b21")


class ConfigObject(
    msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What all config objects have in common.

    Immutable, so never part of a cycle: the garbage collector need not walk through hundreds of thousands of them.
    """


class DefaultGateway(StrEnum):
    """Which default routes an interface takes by request (`default-gw`); without a request the field is None."""

    BOTH = "true"
    IPV4 = "ipv4"
    IPV6 = "ipv6"
    NONE = "none"

    @property
    def families(self) -> frozenset[int]:
        """The families, 4 and 6, of those routes."""
        return _ROUTED[self]


_ROUTED = {
    DefaultGateway.BOTH: frozenset({4, 6}),
    DefaultGateway.IPV4: frozenset({4}),
    DefaultGateway.IPV6: frozenset({6}),
    DefaultGateway.NONE: frozenset[int](),
}


class Route(ConfigObject, frozen=True):
    """A route that every interface of a network gets: `dst` a CIDR, `gw` an address (None: on the link)."""

    dst: str
    gw: str | None = None


class Subnet(ConfigObject, frozen=True):
    """A subnet of a network: `cidr` in canonical form, its gateway, and addresses and CIDRs that are never given."""

    cidr: str
    gateway: str | None
    excluded: tuple[str, ...] = ()


class VirtualNetwork(ConfigObject, frozen=True):
    """A network. `mtu` in bytes; `nad` is `namespace/name` of the NAD that it came from, None for the pod network."""

    fq_name: FqName
    uuid: str
    subnets: tuple[Subnet, ...]
    dns: tuple[str, ...] = ()
    mtu: int = 1500
    routes: tuple[Route, ...] = ()
    ip_fabric_snat: bool = False
    ip_fabric_forwarding: bool = False
    vni: int = 0  # 0: not allotted yet; the store chooses one when it takes the network
    nad: str | None = None
    retired: bool = False  # its NAD is gone: takes no new pods, goes with its last interface

    @property
    def name(self) -> str:
        """The fq_name as one string, `domain:project:name`."""
        return ":".join(self.fq_name)


class InterfaceAddress(ConfigObject, frozen=True):
    """One address of an interface, at most one per family, with what its subnet says."""

    address: str
    prefix_length: int
    gateway: str | None = None
    dns: tuple[str, ...] = ()

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


class VirtualMachineInterface(ConfigObject, frozen=True):
    """One interface of a pod. Its index is its position in the machine's list.

    `nad` is `namespace/name` (at index 0 only if a NAD chose the network), `config_name` what Multus passes as the
    network's name, `interface` the name that the user asked for, `attachment` the CNI_IFNAME that Multus gives it.
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


class VirtualMachine(ConfigObject, frozen=True):
    """A pod with its whole ordered list of interfaces. `name` is `cluster__namespace__pod`.

    `uuid` is the pod's UID; that of a cluster's static pod is derived from its hash, since its mirror's UID may change.
    `config_hash` is set for static pods: the UID that the runtime knows, where the API shows another one.
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

    @property
    def has_mirror_pod(self) -> bool:
        """Whether it belongs to a static pod of a cluster: what shows there is a mirror, which comes and goes."""
        hashed = self.config_hash
        return hashed is not None and self.uuid == static_pod_uuid(self.namespace, self.pod, hashed)


class EventType(StrEnum):
    """As in Kubernetes events."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Event(ConfigObject, frozen=True):
    """What happened to a pod or a NAD, as Kubernetes events tell it: equal ones are counted, not repeated.

    `kind` is `Pod`, `NetworkAttachmentDefinition` or `Manifest` (then `name` is the file's path and `namespace` is
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
    """Name of a pod's virtual machine, by which `/vm-cfg` is asked."""
    return f"{cluster}__{namespace}__{pod}"


def pod_uuid(uid: str) -> str:
    """A pod's UID as the uuid of its machine: lower-case with hyphens; one that is no UUID is mapped to one (v5)."""
    try:
        return str(uuid.UUID(uid))
    except ValueError:
        return str(uuid.uuid5(_POD_NAMESPACE, uid))


def static_pod_uuid(namespace: str, name: str, config_hash: str) -> str:
    """The uuid of a static pod's machine, by what stays when its mirror is deleted and kubelet makes another one."""
    return str(uuid.uuid5(_STATIC_NAMESPACE, f"{namespace}/{name}/{config_hash}"))


def interface_name(index: int, interface: str | None) -> str:
    """Name in the sandbox of the interface at `index` in thick mode; `interface` is what the user asked for, if any."""
    return interface or f"eth{index}"


@functools.lru_cache(maxsize=4096)  # asked for several times while a pod is served
def interface_uuid(pod_uid: str, index: int) -> str:
    """Uuid of a pod's interface: the same after a restart, since it is derived."""
    return str(uuid.uuid5(_VMI_NAMESPACE, f"{pod_uid}/{index}"))


def interface_mac(vmi_uuid: str) -> str:
    """Locally administered MAC of an interface that asked for none, from its uuid."""
    octets = uuid.UUID(vmi_uuid).bytes[:5]
    return ":".join(f"{octet:02x}" for octet in (0x02, *octets))


def network_uuid(fq_name: FqName) -> str:
    """Uuid of a network: derived from its name, so a network that is made again is the same one."""
    return str(uuid.uuid5(_NETWORK_NAMESPACE, ":".join(fq_name)))

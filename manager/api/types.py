"""Response types of the manager's read-only API.

Served as `{"items": [...]}` by `/v1/networks`, `/v1/pods`, `/v1/interfaces` and `/v1/events` (the items of the last are
`contrail_config.objects.Event`), `/v1/pod-networks`, `/v1/addresses`, `/v1/nodes`, `/v1/network-slices` and
`/v1/ports`; `?namespace=` and `?name=` filter items. `/v1/watch` sends `WatchMessage`.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from contrail_config.default_routes import DefaultRoute
from contrail_config.kubernetes.compared_slice import SliceState
from contrail_config.kubernetes.kinds import NodeReport
from contrail_config.objects import (
    ConfigObject,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_name,
)
from contrail_config.pod_timeline import Step
from contrail_config.port_readings import PortCounters, PortDrops


class PodState(StrEnum):
    """Progress of the manager with a pod."""

    READY = "Ready"  # its interfaces are written
    WAITING = "Waiting"  # an object is missing; it continues when that object appears
    REFUSED = "Refused"  # its request is invalid; it continues when the request is corrected
    HOST_NETWORK = "HostNetwork"  # it gets no interfaces
    EXCLUDED = "Excluded"  # its node has no agent of ours: it gets no interfaces


class Summary(ConfigObject, frozen=True):
    """Numbers of objects, of the pods by state, and `store.kind`, empty from a manager of an earlier version."""

    networks: int
    interfaces: int
    pods: dict[PodState, int]
    store: str = ""


class NetworkView(ConfigObject, frozen=True):
    """A network and the number of its interfaces.

    `ipv4_capacity` and `ipv6_capacity` are the numbers of addresses that interfaces can have, at most 2^53; 0 without a
    subnet of the family.
    """

    network: VirtualNetwork
    interfaces: int
    ipv4_capacity: int = 0
    ipv6_capacity: int = 0


class PodView(ConfigObject, frozen=True):
    """A pod; `reason` and `message` say why it is not ready. `names` are those of its interfaces in the sandbox.

    `default_routes`: at most one per family, with the index of the interface that carries it.
    """

    namespace: str
    name: str
    uid: str
    node: str
    state: PodState
    reason: str | None = None
    message: str | None = None
    machine: VirtualMachine | None = None
    names: tuple[str, ...] = ()
    default_routes: tuple[DefaultRoute, ...] = ()


class PodNetworks(ConfigObject, frozen=True):
    """A pod with the uuids of the networks of its interfaces, in their order: what shows thousands of pods at once."""

    namespace: str
    name: str
    node: str
    state: PodState
    reason: str | None = None
    message: str | None = None
    networks: tuple[str, ...] = ()


class AddressState(StrEnum):
    """Whether an interface has the address, or had it and it is not allocated again yet."""

    USED = "Used"
    HELD = "Held"


class AddressView(ConfigObject, frozen=True):
    """An address of a network that is not free. `namespace` and `pod` are those of its interface, if the pod is known.

    `until`: when the hold of a held address ends, in seconds since the epoch.
    """

    network_uuid: str
    address: str
    state: AddressState
    namespace: str | None = None
    pod: str | None = None
    until: float | None = None


class NodeView(ConfigObject, frozen=True):
    """A node and the latest report of its agent."""

    name: str
    report: NodeReport


class SliceView(ConfigObject, frozen=True):
    """What a node tells the others of a network; `state` says whether the API server has it. `endpoints` is a number.

    A superfluous one has nothing but its state.
    """

    network_uuid: str
    node: str
    state: SliceState
    tunnel: tuple[str, ...] = ()
    endpoints: int = 0
    blocks: tuple[str, ...] = ()
    borrowed: tuple[str, ...] = ()
    node_addresses: tuple[str, ...] = ()


class PortView(ConfigObject, frozen=True):
    """The port of an interface, `name` in the sandbox, whose host end is `link`. `condition` and `reason`: its state.

    `condition` is `Connected`, `Missing`, `Problem`, `Unknown` or `NotPlugged`. `link_namespace` is the network
    namespace of the host end, missing for the node's own. `counters` and `drops` are missing where the datapath has not
    reported them; `counted_at` is when the counters of the node were, by its clock.
    """

    namespace: str
    pod: str
    index: int
    name: str
    interface: str
    condition: str
    reason: str | None = None
    link: str | None = None
    link_namespace: str | None = None
    container: str | None = None
    counters: PortCounters | None = None
    drops: PortDrops | None = None
    counted_at: str | None = None


class PodTrace(ConfigObject, frozen=True):
    """The start of a pod: its steps by their beginnings, without those of ADD, which the node's daemon knows.

    `longest` is one of the steps.
    """

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    steps: tuple[Step, ...]
    longest: Step | None = None


class InterfaceView(ConfigObject, frozen=True):
    """One interface of a pod; `name` is its name in the sandbox."""

    namespace: str
    pod: str
    pod_uid: str
    node: str
    index: int
    name: str
    interface: VirtualMachineInterface


class WatchedKind(StrEnum):
    """Kinds of objects that can be watched, named as their lists."""

    NETWORKS = "networks"
    PODS = "pods"
    EVENTS = "events"
    POD_NETWORKS = "pod-networks"
    NODES = "nodes"


DEFAULT_KINDS = (WatchedKind.NETWORKS, WatchedKind.PODS, WatchedKind.EVENTS)
"""What is watched without `kind`."""


class WatchMessageType(StrEnum):
    """What a message of a watch says."""

    RESET = "RESET"  # the whole state follows, up to SYNCED; objects that are not in it do not exist
    APPLIED = "APPLIED"  # the object is new, has changed, or belongs to the state that is sent
    DELETED = "DELETED"  # the object does not exist any more; this is its last state
    SYNCED = "SYNCED"  # the state is complete; changes follow
    CLOSED = "CLOSED"  # the last message: `message` says why the watch ends


class WatchMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a watch. `kind` and `object` are those of APPLIED and DELETED, `object` as in the kind's list."""

    type: WatchMessageType
    kind: WatchedKind | None = None
    object: msgspec.Raw = msgspec.Raw()
    message: str | None = None


def network_key(view: NetworkView) -> tuple[str, str]:
    """Returns namespace and name by which a network is found: those of its NAD, else none and its own name."""
    namespace, _, name = (view.network.nad or f"/{view.network.fq_name[2]}").partition("/")
    return namespace, name


def thick_names(virtual_machine: VirtualMachine) -> tuple[str, ...]:
    """Returns the names of the interfaces in the sandbox without a meta plugin."""
    return tuple(
        interface_name(index, interface.interface) for index, interface in enumerate(virtual_machine.interfaces)
    )


def interface_views(virtual_machine: VirtualMachine, names: Sequence[str]) -> list[InterfaceView]:
    """Returns the interfaces of a virtual machine in order; `names` are those in the sandbox."""
    return [
        InterfaceView(
            namespace=virtual_machine.namespace,
            pod=virtual_machine.pod,
            pod_uid=virtual_machine.uuid,
            node=virtual_machine.node,
            index=index,
            name=name,
            interface=interface,
        )
        for index, (name, interface) in enumerate(zip(names, virtual_machine.interfaces, strict=True))
    ]

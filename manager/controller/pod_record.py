"""Record of a pod: the minimum kept in memory, since there may be a hundred thousand; the store has the rest."""

import sys
from typing import NamedTuple

import msgspec

from contrail_config.encoded_virtual_machines import decode_virtual_machine, encode_virtual_machine
from contrail_config.objects import VirtualMachine, interface_uuid
from contrail_config.store import AddressRequest
from manager.api.types import PodState
from manager.dependencies import Dependency
from manager.reasons import Reason
from manager.source import Pod


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """What the store holds for a pod: uuid, name and node of its virtual machine, networks of its interfaces.

    `addresses` is their number. `has_mirror_pod`: the pod is a static pod, whose mirror pod may come back.
    `foreign_interfaces` are the uuids of interfaces that another program wrote; empty if they are derived from `uuid`.
    """

    uuid: str
    name: str
    node: str
    networks: tuple[str, ...]
    addresses: int
    has_mirror_pod: bool
    foreign_interfaces: tuple[str, ...] = ()

    @property
    def interfaces(self) -> list[str]:
        """Uuids of the interfaces."""
        if self.foreign_interfaces:
            return list(self.foreign_interfaces)
        return [interface_uuid(self.uuid, index) for index in range(len(self.networks))]

    @property
    def holder(self) -> str:
        """Name under which its claims are held while another virtual machine has the pod's name."""
        return f"{self.name} {self.uuid}"


class Outcome(NamedTuple):
    """Result of the last reconciliation: state of the pod, reason and message if it is not ready, and dependencies."""

    state: PodState
    reason: Reason | None = None
    message: str = ""
    dependencies: tuple[Dependency, ...] = ()


class UnconfirmedAssignment(NamedTuple):
    """Addresses requested, and perhaps allocated, for the virtual machine of this uuid.

    `written`: the virtual machine itself may be in the store too.
    """

    uuid: str
    requests: tuple[AddressRequest, ...]
    written: bool = False

    @property
    def owners(self) -> dict[str, str]:
        """The interfaces, each with the uuid of its network."""
        return {request.owner: request.network_uuid for request in self.requests}


UNTRIED = Outcome(PodState.WAITING)
READY = Outcome(PodState.READY)
HOST_NETWORK = Outcome(PodState.HOST_NETWORK)
EXCLUDED = Outcome(PodState.EXCLUDED)


class PodRecord:
    """State of one pod key (`namespace/name`): the pod of that name, and what the store holds for it or a predecessor.

    `others`: further virtual machines of this name in the store, if a former leader wrote one too late or a backup was
    restored; the pod's own is kept.
    `unverified`: a virtual machine that this manager did not write, or whose write was not confirmed, until it was
    compared with its pod; kept encoded, since a start has one for each pod.
    `deleted`: last state of a virtual machine that somebody else deleted, until it is restored.
    `unconfirmed`: an assignment in progress that the store did not confirm. `ended_uid`: uid of a pod whose sandbox is
    known to be removed. `first_seen`: monotonic seconds. `failures`: errors of the store since the last success.
    `failing_since`: when the first of them began, in monotonic seconds.
    """

    __slots__ = (
        "_unverified",
        "assignment",
        "deleted",
        "ended_uid",
        "failing_since",
        "failures",
        "first_seen",
        "others",
        "outcome",
        "pod",
        "unconfirmed",
    )

    def __init__(self, pod: Pod | None, *, first_seen: float) -> None:
        self.pod = pod
        self.first_seen = first_seen
        self.assignment: Assignment | None = None
        self.others: tuple[Assignment, ...] = ()
        self._unverified: bytes | None = None
        self.deleted: VirtualMachine | None = None
        self.unconfirmed: UnconfirmedAssignment | None = None
        self.ended_uid: str | None = None
        self.failures = 0
        self.failing_since = 0.0
        self.outcome = UNTRIED

    @property
    def state(self) -> PodState | None:
        """State of the pod; None if the source has no such pod."""
        return None if self.pod is None else self.outcome.state

    @property
    def unverified(self) -> VirtualMachine | None:
        """A virtual machine that was not compared with its pod."""
        return None if self._unverified is None else decode_virtual_machine(self._unverified)

    @unverified.setter
    def unverified(self, vm: VirtualMachine | None) -> None:
        self._unverified = None if vm is None else encode_virtual_machine(vm)

    @property
    def uuids(self) -> set[str]:
        """Uuids of the virtual machines that the store holds or may get, and of the pod."""
        known = (self.pod, self.unconfirmed, self.assignment, *self.others)
        return {each.uid if isinstance(each, Pod) else each.uuid for each in known if each is not None}

    @property
    def interface_count(self) -> int:
        """Number of interfaces that the store holds."""
        return 0 if self.assignment is None else len(self.assignment.networks)

    @property
    def address_count(self) -> int:
        """Number of addresses that the store holds."""
        return 0 if self.assignment is None else self.assignment.addresses

    def set_assignment(self, vm: VirtualMachine) -> None:
        """Records that the store holds this virtual machine."""
        self.deleted = None
        self.assignment = assignment_of(vm)

    def prefer(self, uuid: str) -> None:
        """Makes the other virtual machine of this uuid, if there is one, the assignment."""
        preferred = next((other for other in self.others if other.uuid == uuid), None)
        if preferred is not None and self.assignment is not None:
            self.others = (*(other for other in self.others if other is not preferred), self.assignment)
            self.assignment, self.unverified, self.deleted = preferred, None, None


def assignment_of(vm: VirtualMachine) -> Assignment:
    """Returns the assignment that a virtual machine is."""
    uuids = tuple(interface.uuid for interface in vm.interfaces)
    is_derived = uuids == tuple(interface_uuid(vm.uuid, index) for index in range(len(uuids)))
    return Assignment(
        uuid=vm.uuid,
        name=vm.name,
        node=sys.intern(vm.node),  # few nodes and networks, many pods
        networks=tuple(sys.intern(interface.network_uuid) for interface in vm.interfaces),
        addresses=sum(len(interface.addresses) for interface in vm.interfaces),
        has_mirror_pod=vm.has_mirror_pod,
        foreign_interfaces=() if is_derived else uuids,
    )

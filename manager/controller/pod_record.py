"""What the manager keeps of a pod: little, since there may be a hundred thousand; the rest is in the store."""

from typing import NamedTuple

from contrail_config.objects import VirtualMachine, interface_mac, interface_uuid
from contrail_config.store import AddressRequest
from manager.api.types import PodState
from manager.dependencies import Dependency, mac_dependency
from manager.reasons import Reason
from manager.source import Pod


class Held(NamedTuple):
    """What the store holds for a pod: its machine's uuid and name, the network of each interface, and addresses.

    `is_mirrored`: what shows of the pod is a mirror, which may come back.
    """

    uuid: str
    name: str
    networks: tuple[str, ...]
    addresses: int
    has_mirror_pod: bool

    @property
    def interfaces(self) -> list[str]:
        """Uuids of the interfaces."""
        return [interface_uuid(self.uuid, index) for index in range(len(self.networks))]


class Outcome(NamedTuple):
    """How far the manager got with a pod, why no further, and what it waits for."""

    state: PodState
    reason: Reason | None = None
    message: str = ""
    needs: tuple[Dependency, ...] = ()


class Unfinished(NamedTuple):
    """What was asked for, and maybe given, for a machine of this uuid; `sent`: the machine itself may be there, too."""

    uuid: str
    requests: tuple[AddressRequest, ...]
    sent: bool = False

    @property
    def owners(self) -> dict[str, str]:
        """The interfaces, each with the uuid of its network."""
        return {request.owner: request.network_uuid for request in self.requests}


UNTRIED = Outcome(PodState.WAITING)
READY = Outcome(PodState.READY)
HOST_NETWORK = Outcome(PodState.HOST_NETWORK)


class PodRecord:
    """A pod's place (`namespace/name`): who is there now, and what the store holds for it or for who was there before.

    `found` is a machine that this manager did not write, or was not told that it did, until its pod was compared with
    it. `lost` is the last state of one that somebody else removed, until it is put back. `unfinished` is what was begun
    for a machine of which it is not known that it is written. `ended` is the uid of a pod of which it is known that its
    sandbox has ended.
    """

    __slots__ = ("ended", "found", "held", "lost", "outcome", "pod", "since", "unfinished")

    def __init__(self, pod: Pod | None, *, since: float) -> None:
        self.pod = pod
        self.since = since
        self.held: Held | None = None
        self.found: VirtualMachine | None = None
        self.lost: VirtualMachine | None = None
        self.unfinished: Unfinished | None = None
        self.ended: str | None = None
        self.outcome = UNTRIED

    def take_over(self, machine: VirtualMachine) -> None:
        """Notes that the store holds this machine."""
        self.lost = None
        self.held = Held(
            uuid=machine.uuid,
            name=machine.name,
            networks=tuple(interface.network_uuid for interface in machine.interfaces),
            addresses=sum(len(interface.addresses) for interface in machine.interfaces),
            has_mirror_pod=machine.has_mirror_pod,
        )


def requested_macs(machine: VirtualMachine) -> list[Dependency]:
    """The MACs of a machine that were asked for; the others are derived, and nobody else's."""
    return [
        mac_dependency(interface.network_uuid, interface.mac)
        for interface in machine.interfaces
        if interface.mac != interface_mac(interface.uuid)
    ]

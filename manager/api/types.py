"""What the manager's read-only API answers: the objects with what an operator asks about them.

Served as `{"items": [...]}` by `/v1/networks`, `/v1/pods`, `/v1/interfaces` and `/v1/events` (the items of the last are
`contrail_config.objects.Event`); `?namespace=` and `?name=` choose items of one namespace, or one name in it.
"""

from enum import StrEnum

from contrail_config.objects import (
    ConfigObject,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_name,
)


class PodState(StrEnum):
    """How far the manager got with a pod."""

    READY = "Ready"  # its list of interfaces is written
    WAITING = "Waiting"  # something is missing, and it proceeds by itself when that appears
    REFUSED = "Refused"  # its request is wrong: it proceeds when that is mended
    HOST_NETWORK = "HostNetwork"  # it gets no interface


class NetworkView(ConfigObject, frozen=True):
    """A network and the number of interfaces in it."""

    network: VirtualNetwork
    interfaces: int


class PodView(ConfigObject, frozen=True):
    """A pod that the manager knows; `reason` and `message` say why it is not ready."""

    namespace: str
    name: str
    uid: str
    node: str
    state: PodState
    reason: str | None = None
    message: str | None = None
    machine: VirtualMachine | None = None


class InterfaceView(ConfigObject, frozen=True):
    """One interface of a pod; `name` is what thick mode calls it in the sandbox."""

    namespace: str
    pod: str
    pod_uid: str
    node: str
    index: int
    name: str
    interface: VirtualMachineInterface


def interface_views(machine: VirtualMachine) -> list[InterfaceView]:
    """The interfaces of a machine, in their order."""
    return [
        InterfaceView(
            namespace=machine.namespace,
            pod=machine.pod,
            pod_uid=machine.uuid,
            node=machine.node,
            index=index,
            name=interface_name(index, interface.interface),
            interface=interface,
        )
        for index, interface in enumerate(machine.interfaces)
    ]

r"""The annotations of an interface, as `/vm-cfg` tells them: a list of `"{key:value}"`, all strings.

They are formed from the stored machine when it is served, so nothing can be stored twice and differ. Upstream's keys
come first and in upstream's order, since its clients find them there; ours follow.

Upstream's client strips the braces, splits at every colon and pastes the two first parts into a JSON text. A value
that holds one of `: { } " \` or a control character would reach it cut, or end its parsing; such a machine is not
served at all, since a client that reads half of a value makes the wrong interface. The manager gives no such values.
"""

import re
from collections.abc import Iterator

from agent_api.errors import MachineUnservableError
from contrail_config.objects import VirtualMachine, VirtualMachineInterface

_UNREADABLE = re.compile(r'[:{}"\\\x00-\x1f\x7f]')


def interface_annotations(machine: VirtualMachine, index: int) -> list[str]:
    """Returns the annotations of the machine's interface at `index`. Raises MachineUnservableError."""
    interface = machine.interfaces[index]
    pairs = [*_upstream_pairs(machine, index), *_own_pairs(interface)]
    for key, value in pairs:
        if _UNREADABLE.search(value):
            raise MachineUnservableError(
                f"interface {interface.uuid} of {machine.name}: annotation {key} cannot be told: {value!r}"
            )
    return [f"{{{key}:{value}}}" for key, value in pairs]


def _upstream_pairs(machine: VirtualMachine, index: int) -> Iterator[tuple[str, str]]:
    interface = machine.interfaces[index]
    yield "kind", "Pod"
    yield "owner", "k8s"
    yield "cluster", machine.cluster
    yield "project", machine.project
    yield "namespace", machine.namespace
    yield "name", machine.pod
    yield "index", f"{index}/{len(machine.interfaces)}"
    yield "network", _network(interface, index)
    if interface.interface is not None:
        yield "interface", interface.interface


def _network(interface: VirtualMachineInterface, index: int) -> str:
    """`default` at index 0, whatever network was chosen for it; else the bare name of the NAD, as upstream has it."""
    if index == 0 or interface.nad is None:
        return "default"
    return interface.nad.rpartition("/")[2]


def _own_pairs(interface: VirtualMachineInterface) -> Iterator[tuple[str, str]]:
    if interface.nad is not None:
        yield "nad", interface.nad
    if interface.config_name is not None:
        yield "config-name", interface.config_name
    if interface.attachment is not None:
        yield "attachment", interface.attachment
    if interface.default_gw is not None:
        yield "default-gw", interface.default_gw.value

r"""Annotations of an interface as Contrail has them, in the order of its vrouter agent, and then our own.

Contrail's CNI plugin gets them as `{key:value}`, splits at every colon and pastes the first two parts into a JSON text.
A value that contains one of `: { } " \` or a control character would be truncated or break its parser. Its clients
rely on the positions of the vrouter agent's keys.
"""

import re
from collections.abc import Iterator

from contrail_config.objects import VirtualMachine, VirtualMachineInterface

_FORBIDDEN = re.compile(r'[:{}"\\\x00-\x1f\x7f]')


def annotation_pairs(virtual_machine: VirtualMachine, index: int) -> list[tuple[str, str]]:
    """Returns keys and values for the interface at `index`. Raises ValueError for a value that clients cannot read."""
    interface = virtual_machine.interfaces[index]
    pairs = [*_vrouter_annotations(virtual_machine, index), *_own_annotations(interface)]
    for key, value in pairs:
        if _FORBIDDEN.search(value):
            raise ValueError(
                f"virtual machine {virtual_machine.name}: interface {interface.uuid}: annotation {key}: "
                f"forbidden character in {value!r}"
            )
    return pairs


def _vrouter_annotations(virtual_machine: VirtualMachine, index: int) -> Iterator[tuple[str, str]]:
    interface = virtual_machine.interfaces[index]
    yield "kind", "Pod"
    yield "owner", "k8s"
    yield "cluster", virtual_machine.cluster
    yield "project", virtual_machine.project
    yield "namespace", virtual_machine.namespace
    yield "name", virtual_machine.pod
    yield "index", f"{index}/{len(virtual_machine.interfaces)}"
    yield "network", _network(interface, index)
    if interface.interface is not None:
        yield "interface", interface.interface


def _network(interface: VirtualMachineInterface, index: int) -> str:
    """Returns `default` at index 0, whatever its network, else the NAD's name without namespace: wire compatibility."""
    if index == 0 or interface.nad is None:
        return "default"
    return interface.nad.rpartition("/")[2]


def _own_annotations(interface: VirtualMachineInterface) -> Iterator[tuple[str, str]]:
    if interface.nad is not None:
        yield "nad", interface.nad
    if interface.config_name is not None:
        yield "config-name", interface.config_name
    if interface.attachment is not None:
        yield "attachment", interface.attachment
    if interface.default_gw is not None:
        yield "default-gw", interface.default_gw.value

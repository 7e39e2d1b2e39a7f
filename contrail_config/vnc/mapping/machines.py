"""Virtual machines and their interfaces.

The annotation `machine` holds our whole object, and is the commit marker: it is written last, so nobody who needs it
acts on half a pod. The virtual machine is created without it, with the annotations that upstream's manager reads.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from contrail_config.interface_annotations import annotation_pairs
from contrail_config.objects import VirtualMachine, VirtualMachineInterface
from contrail_config.unknown_fields import with_unknown_fields
from contrail_config.vnc.mapping import annotations, networks
from contrail_config.vnc.reference import Reference

KIND: Final = "virtual-machine"
INTERFACE: Final = "virtual-machine-interface"

FIELDS: Final = ("annotations", "id_perms")
"""Fields of a virtual machine that are read."""

INTERFACE_FIELDS: Final = ("annotations", "virtual_machine_refs", "virtual_network_refs")
"""Fields of an interface that are read."""

_MACS: Final = "virtual_machine_interface_mac_addresses"

WRITTEN_FIELDS: Final = (*INTERFACE_FIELDS, _MACS)
"""Fields of an interface that `is_as_wanted` compares."""

DOMAIN: Final = "default-domain"


def machine_reference(machine: VirtualMachine) -> Reference:
    """Returns the virtual machine as the target of a reference."""
    return Reference(KIND, machine.uuid, (machine.name,))


def machine_body(machine: VirtualMachine) -> dict[str, Any]:
    """Returns the create of a virtual machine, not committed yet."""
    pairs = {
        "kind": "Pod",
        "owner": "k8s",
        annotations.CLUSTER: machine.cluster,
        "project": machine.project,
        "namespace": machine.namespace,
        "name": machine.pod,
        "k8s_uuid": machine.uuid,
        annotations.MANAGER: annotations.OURS,
    }
    return {
        "uuid": machine.uuid,
        "fq_name": [machine.name],
        "server_type": "container",
        "annotations": annotations.to_map(pairs),
    }


def interface_bodies(machine: VirtualMachine) -> list[dict[str, Any]]:
    """Returns the creates of all interfaces, each complete. Raises ValueError for text that upstream cannot read."""
    return [_interface_body(machine, index) for index in range(len(machine.interfaces))]


def machine_annotation(machine: VirtualMachine, stored: Mapping[str, Any] | None = None) -> str:
    """Returns the commit marker, with the fields of a newer release that are `stored`."""
    return msgspec.json.encode(with_unknown_fields(machine, stored or {})).decode()


def takeover_annotations(machine: VirtualMachine) -> dict[str, str]:
    """Returns what makes a virtual machine that another program wrote one of ours, in one write."""
    return {annotations.MANAGER: annotations.OURS, annotations.MACHINE: machine_annotation(machine)}


def read_machine(item: Mapping[str, Any], cluster: str) -> VirtualMachine | None:
    """Returns the virtual machine in an object; None if it is not this cluster's, or not committed, or being deleted.

    Raises ValueError, which names the object, if its annotation cannot be read or is that of another one.
    """
    pairs = annotations.from_object(item)
    if pairs.get(annotations.CLUSTER) != cluster or annotations.MACHINE not in pairs:
        return None
    try:
        machine = msgspec.json.decode(pairs[annotations.MACHINE], type=VirtualMachine)
    except msgspec.DecodeError as error:
        raise ValueError(f"virtual-machine {item['uuid']}: annotation {annotations.MACHINE}: {error}") from error
    if (machine.uuid, [machine.name]) != (item["uuid"], list(item["fq_name"])):
        raise ValueError(f"virtual-machine {item['uuid']}: the annotation is that of {machine.name}")
    return machine


def is_uncommitted(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is a virtual machine of ours that does not exist for our readers: not yet, or no more."""
    pairs = annotations.from_object(item)
    is_ours = pairs.get(annotations.MANAGER) == annotations.OURS and pairs.get(annotations.CLUSTER) == cluster
    return is_ours and annotations.MACHINE not in pairs


def hold_end(item: Mapping[str, Any]) -> float | None:
    """Returns until when the addresses of a virtual machine that is being deleted are held; None if it is not.

    In seconds since the epoch; 0 if its annotation cannot be read.
    """
    text = annotations.from_object(item).get(annotations.DELETING)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def is_own_interface(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether an interface of the server was written by a manager of ours, for this cluster."""
    pairs = annotations.from_object(item)
    return pairs.get(annotations.CLUSTER) == cluster and annotations.FAMILIES in pairs


def machine_of(item: Mapping[str, Any]) -> str:
    """Returns the uuid of the virtual machine to which an interface of the server refers; empty if it has none."""
    return next((str(reference["uuid"]) for reference in item.get("virtual_machine_refs") or ()), "")


def is_interface_of(
    item: Mapping[str, Any] | None, machine: VirtualMachine, interface: VirtualMachineInterface
) -> bool:
    """Whether an interface of the server is the virtual machine's, of its index, and in its network and no other."""
    if item is None:
        return False
    networks_of_it = [reference["uuid"] for reference in item.get("virtual_network_refs") or ()]
    index = f"{machine.interfaces.index(interface)}/{len(machine.interfaces)}"
    is_its_own = machine_of(item) == machine.uuid and networks_of_it == [interface.network_uuid]
    return is_its_own and annotations.from_object(item).get("index") == index


def equal_interfaces(one: VirtualMachine, other: VirtualMachine) -> set[VirtualMachineInterface]:
    """Returns the interfaces that both have, and that are written alike: an index tells the number of interfaces, too.

    Raises ValueError, see `interface_bodies`.
    """
    before, after = (zip(each.interfaces, interface_bodies(each), strict=True) for each in (one, other))
    bodies = dict(after)
    return {interface for interface, body in before if bodies.get(interface) == body}


def is_as_wanted(item: Mapping[str, Any], body: Mapping[str, Any] | None) -> bool:
    """Whether an interface of the server is as this create would make it; None: there is to be none."""
    if body is None:
        return False
    networks_of_both = [[each["uuid"] for each in one.get("virtual_network_refs") or ()] for one in (item, body)]
    return (
        networks_of_both[0] == networks_of_both[1]
        and item.get(_MACS) == body[_MACS]
        and annotations.from_object(item) == annotations.from_object(body)
    )


def is_of_another_program(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether another program wrote this virtual machine for a pod of the cluster, as Contrail's kube-manager does."""
    pairs = annotations.from_object(item)
    is_pod = pairs.get(annotations.CLUSTER) == cluster and pairs.get("owner") == "k8s"
    return is_pod and pairs.get(annotations.MANAGER) != annotations.OURS


def _interface_body(machine: VirtualMachine, index: int) -> dict[str, Any]:
    interface = machine.interfaces[index]
    pairs = {**dict(annotation_pairs(machine, index)), annotations.FAMILIES: _families(interface)}
    return {
        "uuid": interface.uuid,
        "fq_name": [DOMAIN, machine.project, f"{machine.pod}__{interface.uuid}"],
        "parent_type": "project",
        "port_security_enabled": True,
        _MACS: {"mac_address": [interface.mac]},
        "virtual_network_refs": [Reference(networks.KIND, interface.network_uuid, interface.network).json()],
        "virtual_machine_refs": [machine_reference(machine).json()],
        "annotations": annotations.to_map(pairs),
    }


def _families(interface: VirtualMachineInterface) -> str:
    return ",".join(str(family) for family in sorted(address.family for address in interface.addresses))

"""Addresses: instance-ips, linked to an interface or held.

Their names say for whom they were allocated, so two managers cannot allocate twice for one owner: a name without a
uuid in the create is unique.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from contrail_config.addressing.notation import family_of
from contrail_config.objects import FqName
from contrail_config.vnc.mapping import annotations, networks
from contrail_config.vnc.reference import Reference

KIND: Final = "instance-ip"

FIELDS: Final = (
    "annotations",
    "id_perms",
    "instance_ip_address",
    "virtual_machine_interface_refs",
    "virtual_network_refs",
)
"""Fields of an instance-ip that are read."""


class AddressRecord(NamedTuple):
    """An instance-ip of ours. `held_until` is in seconds since the epoch, None while it is allocated to the owner."""

    uuid: str
    name: str
    network_uuid: str
    address: str
    owner: str
    held_until: float | None = None

    @property
    def family(self) -> int:
        """4 or 6."""
        return family_of(self.address)


class AddressClaim(NamedTuple):
    """An address chosen for an owner. `generation` is 1, or more while held instance-ips have the names before."""

    network_uuid: str
    network: FqName
    address: str
    owner: str
    generation: int = 1

    @property
    def name(self) -> str:
        """Name of the instance-ip."""
        return instance_ip_name(self.owner, self.network_uuid, family_of(self.address), self.generation)


def instance_ip_name(owner: str, network_uuid: str, family: int, generation: int = 1) -> str:
    """Returns the name of an owner's instance-ip in a network and family."""
    suffix = "" if generation == 1 else f"__{generation}"
    return f"{owner}__{network_uuid}__v{family}{suffix}"


def claim_body(claim: AddressClaim, cluster: str) -> dict[str, Any]:
    """Returns the create of an instance-ip, without uuid: only then are name and address unique."""
    return {
        "fq_name": [claim.name],
        "virtual_network_refs": [Reference(networks.KIND, claim.network_uuid, claim.network).json()],
        "instance_ip_family": f"v{family_of(claim.address)}",
        "instance_ip_address": claim.address,
        "annotations": annotations.to_map(owner_annotations(claim.owner, cluster)),
    }


def owner_annotations(owner: str, cluster: str) -> dict[str, str]:
    """Returns what makes an instance-ip the record of an address of ours."""
    return {annotations.CLUSTER: cluster, annotations.OWNER: owner}


def held_annotations(record: AddressRecord, until: float, cluster: str) -> dict[str, Any]:
    """Returns the annotations of a released instance-ip, as a map: an update replaces it as a whole."""
    return annotations.to_map({**owner_annotations(record.owner, cluster), annotations.HELD_UNTIL: f"{until:.3f}"})


def is_own(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether a manager of ours made this instance-ip for the cluster."""
    pairs = annotations.from_object(item)
    return pairs.get(annotations.CLUSTER) == cluster and annotations.OWNER in pairs


def read_address(item: Mapping[str, Any], cluster: str) -> AddressRecord | None:
    """Returns the record in an object; None if it is not this cluster's, or has lost its network.

    Raises ValueError, which names the object, if its annotations cannot be read.
    """
    if not is_own(item, cluster):
        return None
    pairs = annotations.from_object(item)
    references = item.get("virtual_network_refs") or []
    if not references or not item.get("instance_ip_address"):
        return None
    held_until = None if annotations.HELD_UNTIL not in pairs else _seconds(pairs[annotations.HELD_UNTIL], item["uuid"])
    return AddressRecord(
        uuid=item["uuid"],
        name=item["fq_name"][-1],
        network_uuid=references[0]["uuid"],
        address=item["instance_ip_address"],
        owner=pairs[annotations.OWNER],
        held_until=held_until,
    )


def linked_interfaces(items: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Returns the addresses of the instance-ips that are linked to interfaces, by the interface's uuid."""
    linked: dict[str, set[str]] = {}
    for item in items:
        for reference in item.get("virtual_machine_interface_refs") or ():
            linked.setdefault(reference["uuid"], set()).add(str(item.get("instance_ip_address")))
    return linked


def _seconds(text: str, uuid: str) -> float:
    try:
        seconds = float(text)
    except ValueError as error:
        raise ValueError(f"instance-ip {uuid}: annotation {annotations.HELD_UNTIL}: {error}") from error
    if not math.isfinite(seconds):
        raise ValueError(f"instance-ip {uuid}: annotation {annotations.HELD_UNTIL}: {text!r} is no time")
    return seconds

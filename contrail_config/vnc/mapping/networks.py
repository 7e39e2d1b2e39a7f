"""Virtual networks: project, IPAM and network of the server, and back.

The annotation `network` holds our whole object, which has more than the server can: excluded addresses, DNS servers,
routes, the NAD. Only the vni is the server's. A network without the annotation was made by others: `adopted_network`
reads what the server knows of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from contrail_config.objects import ForwardingMode, VirtualNetwork, network_uuid
from contrail_config.unknown_fields import with_unknown_fields
from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.mapping.subnets import Ranges, flat_subnets, link_attributes, linked_ranges, linked_subnets

KIND: Final = "virtual-network"
IPAM: Final = "network-ipam"
PROJECT: Final = "project"

IPAM_FIELDS: Final = ("ipam_subnet_method", "ipam_subnets")
"""Fields of an IPAM that are read."""

FIELDS: Final = (
    "annotations",
    "fabric_snat",
    "id_perms",
    "mtu",
    "network_ipam_refs",
    "virtual_network_network_id",
    "virtual_network_properties",
)
"""Fields of a network that are read."""

LARGEST_MTU: Final = 9216
"""Of the server. A larger one is only in our annotation."""

_NETWORK_SUFFIX: Final = "-network"
_IPAM_SUFFIX: Final = "-ipam"


def project_body(network: VirtualNetwork) -> dict[str, Any]:
    """Returns the create of the network's project."""
    return {"fq_name": list(network.fq_name[:2]), "parent_type": "domain"}


def ipam_name(network: VirtualNetwork) -> tuple[str, str, str]:
    """Returns the name of the network's IPAM, as upstream forms it: `...-pod-ipam` of `...-pod-network`."""
    domain, project, name = network.fq_name
    return domain, project, f"{name.removesuffix(_NETWORK_SUFFIX)}{_IPAM_SUFFIX}"


def networks_of_ipam(name: Sequence[str]) -> list[str]:
    """Returns the names of the networks for which an IPAM of this name may be made."""
    stem = ":".join(name).removesuffix(_IPAM_SUFFIX)
    return [stem, f"{stem}{_NETWORK_SUFFIX}"]


def ipam_body(network: VirtualNetwork, cluster: str) -> dict[str, Any]:
    """Returns the create of the network's IPAM, which says that it is ours."""
    pairs = {annotations.CLUSTER: cluster, annotations.MANAGER: annotations.OURS}
    return {
        "fq_name": list(ipam_name(network)),
        "parent_type": "project",
        "annotations": annotations.to_map(pairs),
    }


def is_own_ipam(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is an IPAM that we made for this cluster."""
    pairs = annotations.from_object(item)
    return pairs.get(annotations.MANAGER) == annotations.OURS and pairs.get(annotations.CLUSTER) == cluster


def is_unused_ipam(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is an IPAM that we made for this cluster, and that no network uses."""
    return is_own_ipam(item, cluster) and not item.get("virtual_network_back_refs")


def is_own(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is a network of ours, which exists for our readers."""
    pairs = annotations.from_object(item)
    return pairs.get(annotations.CLUSTER) == cluster and annotations.NETWORK in pairs


def is_hidden(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is a network of ours that is deleted for our readers."""
    pairs = annotations.from_object(item)
    return pairs.get(annotations.CLUSTER) == cluster and annotations.HIDDEN in pairs


def is_retired(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether this is a network of ours that takes no new pods, and is to be deleted with the last one."""
    return is_own(item, cluster) and annotations.json_in(item, annotations.NETWORK).get("retired") is True


def is_foreign(item: Mapping[str, Any], cluster: str) -> bool:
    """Whether others made this network, and not for another cluster."""
    pairs = annotations.from_object(item)
    is_ours = annotations.NETWORK in pairs or annotations.HIDDEN in pairs
    return not is_ours and pairs.get(annotations.CLUSTER, cluster) == cluster


def network_body(network: VirtualNetwork, cluster: str) -> dict[str, Any]:
    """Returns the create of a network. The vni is left out: the server assigns it."""
    return {
        "uuid": network.uuid,
        "fq_name": list(network.fq_name),
        "parent_type": "project",
        "address_allocation_mode": "user-defined-subnet-only",
        "annotations": annotations.to_map(
            {annotations.CLUSTER: cluster, annotations.NETWORK: network_annotation(network)}
        ),
        **properties(network),
        "network_ipam_refs": ipam_links(network),
    }


def stand_in_body(uuid: str) -> dict[str, Any]:
    """Returns the create of a network that exists only while what refers to its uuid is deleted."""
    return {"uuid": uuid, "fq_name": ["default-domain", "default-project", f"deleted-{uuid}"], "parent_type": PROJECT}


def properties(network: VirtualNetwork) -> dict[str, Any]:
    """Returns the properties that can change."""
    mtu = {} if network.mtu is None or network.mtu > LARGEST_MTU else {"mtu": network.mtu}
    forwarding = {"forwarding_mode": str(network.forwarding_mode)}
    return {"fabric_snat": network.ip_fabric_snat, "virtual_network_properties": forwarding, **mtu}


def ipam_links(network: VirtualNetwork) -> list[dict[str, Any]]:
    """Returns the links to the network's IPAM: one, with all subnets."""
    return [{"to": list(ipam_name(network)), "attr": link_attributes(network.uuid, network.subnets)}]


def network_annotation(network: VirtualNetwork, stored: Mapping[str, Any] | None = None) -> str:
    """Returns the annotation, with the fields of a newer release that are `stored`; without the vni."""
    own = msgspec.structs.replace(network, vni=0)
    return msgspec.json.encode(with_unknown_fields(own, stored or {})).decode()


def read_network(item: Mapping[str, Any], cluster: str) -> VirtualNetwork | None:
    """Returns the network in an object; None if it is not ours or not this cluster's.

    Raises ValueError, which names the object, if its annotation cannot be read or is that of another network.
    """
    pairs = annotations.from_object(item)
    if pairs.get(annotations.CLUSTER) != cluster or annotations.NETWORK not in pairs:
        return None
    try:
        network = msgspec.json.decode(pairs[annotations.NETWORK], type=VirtualNetwork)
    except msgspec.DecodeError as error:
        raise ValueError(f"virtual-network {item['uuid']}: annotation {annotations.NETWORK}: {error}") from error
    if (network.uuid, list(network.fq_name)) != (item["uuid"], list(item["fq_name"])):
        raise ValueError(f"virtual-network {item['uuid']}: the annotation is that of network {network.name}")
    return msgspec.structs.replace(network, vni=item.get("virtual_network_network_id", 0))


def adopted_network(
    item: Mapping[str, Any], *, nad: str | None, ipams: Mapping[str, Mapping[str, Any]] | None = None
) -> VirtualNetwork:
    """Returns a network that others made, such as upstream's kube-manager, for the NAD that names it.

    `ipams` are those to which it is linked, by uuid: flat-subnet ones have its subnets.
    """
    domain, project, name = item["fq_name"]
    modes = {str(mode): mode for mode in ForwardingMode}
    mode = (item.get("virtual_network_properties") or {}).get("forwarding_mode")
    links = item.get("network_ipam_refs") or []
    flat = (subnet for link in links for subnet in flat_subnets((ipams or {}).get(link.get("uuid", ""), {})))
    return VirtualNetwork(
        fq_name=(domain, project, name),
        uuid=item["uuid"],
        subnets=(*linked_subnets(links), *flat),
        mtu=item.get("mtu") or 1500,
        ip_fabric_snat=bool(item.get("fabric_snat")),
        vni=item.get("virtual_network_network_id", 0),
        nad=nad,
        forwarding_mode=modes.get(mode or "", ForwardingMode.L2_L3),
    )


def flat_ipam(item: Mapping[str, Any]) -> str | None:
    """Returns the uuid of the IPAM from which a network has all its subnets; None if it has any of its own."""
    links = item.get("network_ipam_refs") or []
    return None if linked_subnets(links) or len(links) != 1 else str(links[0]["uuid"])


def allocation_pools(item: Mapping[str, Any]) -> Ranges:
    """Returns the allocation pools that the network has itself. Raises ValueError."""
    return linked_ranges(item.get("network_ipam_refs") or [])


def has_flat_subnets(links: Iterable[Mapping[str, Any]], ipams: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether one of the links is to a flat-subnet IPAM."""
    return any(flat_subnets(ipams.get(link.get("uuid", ""), {})) for link in links)


def was_adopted(network: VirtualNetwork) -> bool:
    """Whether others made this network of ours: its uuid is not the one that follows from its name."""
    return network.uuid != network_uuid(network.fq_name)

"""Pods as Contrail's kube-manager wrote them, read as virtual machines of ours.

It writes a virtual machine, one interface for each network and one instance-ip for each interface, annotates each in a
request of its own, and links the virtual machine to a virtual router last. A pod that it did not finish is rejected: no
vrouter agent serves it.
"""

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from contrail_config.objects import (
    FqName,
    InterfaceAddress,
    PodNetwork,
    Subnet,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    pod_network_name,
)
from contrail_config.vnc.mapping import annotations, machines, networks

Item = Mapping[str, Any]

INTERFACE_FIELDS: Final = (
    *machines.INTERFACE_FIELDS,
    "virtual_machine_interface_mac_addresses",
    "virtual_machine_interface_properties",
)
"""Fields of an interface that are read."""

_DEFAULT: Final = "default"
"""Value of the annotation `network` of an interface that no NAD selects."""


class UpstreamObjects(NamedTuple):
    """Objects of the server: interfaces by virtual machine, addresses by interface, the rest by uuid.

    `nodes` are the names of the virtual routers that refer to a virtual machine.
    """

    interfaces: Mapping[str, Sequence[Item]]
    addresses: Mapping[str, Sequence[Item]]
    networks: Mapping[str, Item]
    ipams: Mapping[str, Item]
    nodes: Mapping[str, Sequence[str]]

    def addresses_of(self, machine: VirtualMachine) -> list[tuple[str, str]]:
        """Returns the uuids of its interfaces' instance-ips, each with that of the interface."""
        return [
            (item["uuid"], interface.uuid)
            for interface in machine.interfaces
            for item in self.addresses.get(interface.uuid, ())
        ]


def group(
    interfaces: Iterable[Item],
    addresses: Iterable[Item],
    *,
    networks: Iterable[Item],
    ipams: Iterable[Item],
    routers: Iterable[Item],
) -> UpstreamObjects:
    """Returns the objects of lists."""
    by_machine, by_interface = defaultdict[str, list[Item]](list), defaultdict[str, list[Item]](list)
    for item in interfaces:
        by_machine[machines.machine_of(item)].append(item)
    for item in addresses:
        for reference in item.get("virtual_machine_interface_refs") or ():
            by_interface[reference["uuid"]].append(item)
    nodes = defaultdict[str, list[str]](list)
    for router in routers:
        for reference in router.get("virtual_machine_refs") or ():
            nodes[reference["uuid"]].append(router["fq_name"][-1])
    return UpstreamObjects(
        by_machine,
        by_interface,
        {item["uuid"]: item for item in networks},
        {item["uuid"]: item for item in ipams},
        nodes,
    )


def upstream_pod(item: Item, objects: UpstreamObjects) -> VirtualMachine:
    """Returns the virtual machine of a pod. Raises ValueError, which says why it cannot be taken over."""
    pairs = annotations.from_object(item)
    for key in ("project", "namespace", "name"):
        if not pairs.get(key):
            raise ValueError(f"has no annotation {key}")
    cluster, namespace, pod = pairs[annotations.CLUSTER], pairs["namespace"], pairs["name"]
    name = f"{cluster}__{namespace}__{pod}"
    if list(item["fq_name"]) != [name]:
        raise ValueError(f"its annotations are those of {name}")
    ordered = _in_order(objects.interfaces.get(item["uuid"], ()))
    nodes = objects.nodes.get(item["uuid"], ())
    if len(nodes) != 1:
        raise ValueError(
            f"virtual routers {', '.join(nodes)} refer to it" if nodes else "no virtual router refers to it"
        )
    return VirtualMachine(
        uuid=item["uuid"],
        name=name,
        cluster=cluster,
        project=pairs["project"],
        namespace=namespace,
        pod=pod,
        node=nodes[0],
        interfaces=tuple(_interface(each, objects, cluster=cluster, namespace=namespace) for each in ordered),
    )


def _in_order(items: Sequence[Item]) -> list[Item]:
    """Returns the interfaces of a pod by index. Raises ValueError if they are not all there, each once."""
    indexes = [annotations.from_object(item).get("index", "") for item in items]
    expected = [f"{index}/{len(items)}" for index in range(len(items))]
    if not items:
        raise ValueError("has no interfaces")
    if sorted(indexes) != sorted(expected):
        raise ValueError(_describe(indexes))
    by_index = dict(zip(indexes, items, strict=True))
    return [by_index[index] for index in expected]


def _describe(indexes: Sequence[str]) -> str:
    pairs = [index.partition("/") for index in sorted(indexes)]
    counts = ", ".join(sorted({count for _, _, count in pairs if count})) or "an unknown number"
    return f"has the interfaces {', '.join(index or '?' for index, _, _ in pairs)} of {counts}"


def _interface(item: Item, objects: UpstreamObjects, *, cluster: str, namespace: str) -> VirtualMachineInterface:
    where, pairs = f"interface {item['uuid']}", annotations.from_object(item)
    if (item.get("virtual_machine_interface_properties") or {}).get("sub_interface_vlan_tag"):
        raise ValueError(f"{where} is nested in that of a host")
    network = _network(item, objects, cluster=cluster)
    macs = (item.get("virtual_machine_interface_mac_addresses") or {}).get("mac_address")
    if not macs:
        raise ValueError(f"{where} has no MAC address")
    label = pairs.get("network", _DEFAULT)
    is_first = pairs["index"].startswith("0/")
    return VirtualMachineInterface(
        uuid=item["uuid"],
        mac=macs[0],
        network_uuid=network.uuid,
        network=network.fq_name,
        addresses=_addresses(where, objects.addresses.get(item["uuid"], ()), network),
        mtu=network.mtu or 1500,
        nad=None if is_first else _nad(label, network.fq_name, cluster=cluster, namespace=namespace),
        config_name=None if is_first else label,  # by which its plugin finds the interface, too, if Multus calls it
        interface=pairs.get("interface"),
        vni=network.vni,
        ip_fabric_snat=network.ip_fabric_snat,
        pod_network=_kind(network.fq_name, cluster=cluster, is_flat=_is_flat(item, objects)),
        forwarding_mode=network.forwarding_mode,
    )


def _kind(name: FqName, *, cluster: str, is_flat: bool) -> PodNetwork | None:
    """Returns which pod network has this name: that of a NAD may have the name of an isolated namespace's, too."""
    if name == pod_network_name(cluster):
        return PodNetwork.CLUSTER
    domain, project, network = name
    is_named = (domain, network) == (machines.DOMAIN, f"{project}-pod-network") and project.startswith(f"{cluster}-")
    return PodNetwork.NAMESPACE if is_flat and is_named else None


def _is_flat(item: Item, objects: UpstreamObjects) -> bool:
    """Whether the network of an interface has the subnets of a flat-subnet IPAM."""
    (reference,) = item["virtual_network_refs"]
    links = objects.networks[reference["uuid"]].get("network_ipam_refs") or []
    return networks.has_flat_subnets(links, objects.ipams)


def _network(item: Item, objects: UpstreamObjects, *, cluster: str) -> VirtualNetwork:
    references = item.get("virtual_network_refs") or []
    found = [objects.networks[each["uuid"]] for each in references if each["uuid"] in objects.networks]
    if len(references) != 1 or not found:
        raise ValueError(f"interface {item['uuid']} is not in exactly one network")
    network = networks.adopted_network(found[0], nad=None, ipams=objects.ipams)
    if _is_flat(item, objects) and _kind(network.fq_name, cluster=cluster, is_flat=True) is None:
        problem = "is a pod network in a project that is no namespace's, as with cluster_project"
        raise ValueError(f"network {network.name} {problem}")
    return network


def _addresses(where: str, items: Sequence[Item], network: VirtualNetwork) -> tuple[InterfaceAddress, ...]:
    found = [_address(where, str(item.get("instance_ip_address")), network) for item in items]
    if not found:
        raise ValueError(f"{where} has no address")
    if len({address.family for address in found}) != len(found):
        raise ValueError(f"{where} has several addresses of one family")
    return tuple(sorted(found, key=lambda address: address.family))


def _address(where: str, text: str, network: VirtualNetwork) -> InterfaceAddress:
    address = ipaddress.ip_address(text)
    subnet = next((each for each in network.subnets if address in ipaddress.ip_network(each.cidr)), None)
    if subnet is None:
        raise ValueError(f"{where}: address {text} is in no subnet of network {network.name}")
    return _in_subnet(str(address), subnet)


def _in_subnet(address: str, subnet: Subnet) -> InterfaceAddress:
    length = ipaddress.ip_network(subnet.cidr).prefixlen
    return InterfaceAddress(address, length, subnet.gateway, subnet_gateway=subnet.gateway)


def _nad(label: str, network: FqName, *, cluster: str, namespace: str) -> str:
    """Returns the NAD of an interface: that of the network, or one that refers to it, in the pod's namespace."""
    _, project, name = network
    is_own = name == f"{cluster}-{label}-pod-network" and project.startswith(f"{cluster}-")
    return f"{project.removeprefix(f'{cluster}-') if is_own else namespace}/{label}"

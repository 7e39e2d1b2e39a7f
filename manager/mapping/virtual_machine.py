"""Second half of the mapping: builds the virtual machine from interface specs and their allocated addresses."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from contrail_config.addressing.notation import family_of
from contrail_config.objects import (
    InterfaceAddress,
    Pending,
    PodNetwork,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_mac,
    interface_uuid,
    network_uuid,
    virtual_machine_name,
)
from contrail_config.store import AddressRequest
from manager.mapping.fq_names import pod_network_name, project_name
from manager.mapping.interface_spec import InterfaceSpec
from manager.mapping.network_addressing import families, same_subnet
from manager.mapping.unsatisfiable import unsatisfiable
from manager.parsing.netconf import MIN_IPV6_MTU
from manager.reasons import Reason
from manager.source import Pod

MAX_PENDING_MESSAGE = 512
"""Characters of the message in a pending virtual machine."""


def address_requests(pod: Pod, specs: Sequence[InterfaceSpec], *, cluster: str) -> list[AddressRequest]:
    """Returns one request per interface and address family of its network.

    Requests for a specific address come first; otherwise an interface without one could be allocated that address.
    Addresses in the network of an isolated namespace are reserved in the cluster pod network, whose subnets it has:
    nodes have one route to an address.
    """
    requests = [
        AddressRequest(
            spec.network.uuid,
            family,
            interface_uuid(pod.uid, index),
            _requested_address(spec, family),
            pod.node,
            pod_network_uuid(cluster) if spec.network.namespace is not None else None,
        )
        for index, spec in enumerate(specs)
        for family in families(spec.network)
    ]
    # sorted() is stable, so requests otherwise keep the order of the interfaces.
    return sorted(requests, key=lambda request: request.address is None)


def pod_network_uuid(cluster: str) -> str:
    """Returns the uuid of the cluster pod network."""
    return network_uuid(pod_network_name(cluster))


def reserving_networks(vm: VirtualMachine) -> set[str]:
    """Returns the uuids of the virtual machine's networks whose addresses are reserved in the cluster pod network."""
    return {interface.network_uuid for interface in vm.interfaces if interface.pod_network is PodNetwork.NAMESPACE}


def reserved_in(vm: VirtualMachine, interface: VirtualMachineInterface) -> str | None:
    """Returns the uuid of the network in which the interface's addresses are reserved, None if there is none."""
    return pod_network_uuid(vm.cluster) if interface.pod_network is PodNetwork.NAMESPACE else None


class WithReservations:
    """Virtual machines, and those that have addresses in the cluster pod network by reservation once more with these.

    They are read anew whenever this is iterated.
    """

    def __init__(self, virtual_machines: Iterable[VirtualMachine]) -> None:
        self._virtual_machines = virtual_machines

    def __iter__(self) -> Iterator[VirtualMachine]:
        for vm in self._virtual_machines:
            yield vm
            if reserved := _reservations(vm):
                yield msgspec.structs.replace(vm, interfaces=reserved)


def _reservations(vm: VirtualMachine) -> tuple[VirtualMachineInterface, ...]:
    return tuple(
        msgspec.structs.replace(interface, network_uuid=pod_network_uuid(vm.cluster))
        for interface in vm.interfaces
        if interface.pod_network is PodNetwork.NAMESPACE
    )


def build_virtual_machine(
    pod: Pod,
    specs: Sequence[InterfaceSpec],
    allocated: Iterable[tuple[str, InterfaceAddress]],
    *,
    cluster: str,
    default_mtu: int,
) -> VirtualMachine:
    """Returns the virtual machine; `allocated` are pairs of owner and address.

    `default_mtu` is that of interfaces in networks for which none is configured.
    Raises PodWaitsError if a requested gateway does not fit the address.
    """
    # The owner of an address is the uuid of its interface.
    addresses = defaultdict[str, list[InterfaceAddress]](list)
    for owner, address in allocated:
        addresses[owner].append(address)
    interfaces = tuple(
        _interface(pod, spec, vmi_uuid, addresses[vmi_uuid], cluster=cluster, default_mtu=default_mtu)
        for spec, vmi_uuid in ((spec, interface_uuid(pod.uid, index)) for index, spec in enumerate(specs))
    )
    return _virtual_machine(pod, interfaces, cluster=cluster)


def build_pending_virtual_machine(pod: Pod, reason: Reason, message: str, *, cluster: str) -> VirtualMachine:
    """Returns the virtual machine that says why the pod has no interfaces yet; the message is cut."""
    cut = message if len(message) <= MAX_PENDING_MESSAGE else f"{message[: MAX_PENDING_MESSAGE - 1]}…"
    return _virtual_machine(pod, (), cluster=cluster, pending=Pending(reason, cut))


def summarize_virtual_machine(virtual_machine: VirtualMachine, names: Sequence[str]) -> str:
    """Returns one line for people: `eth0 10.32.0.2 (k8s-default-pod-network), eth1 10.1.1.2 fd00::2 (blue/net-a)`.

    `names` are those of the interfaces in the sandbox.
    """
    return ", ".join(
        f"{name} {' '.join(address.address for address in interface.addresses)}"
        f" ({interface.nad or interface.network[2]})"
        for name, interface in zip(names, virtual_machine.interfaces, strict=True)
    )


def _virtual_machine(
    pod: Pod, interfaces: tuple[VirtualMachineInterface, ...], *, cluster: str, pending: Pending | None = None
) -> VirtualMachine:
    return VirtualMachine(
        uuid=pod.uid,
        name=virtual_machine_name(cluster, pod.namespace, pod.name),
        cluster=cluster,
        project=project_name(cluster, pod.namespace),
        namespace=pod.namespace,
        pod=pod.name,
        node=pod.node,
        interfaces=interfaces,
        config_hash=pod.config_hash,
        pending=pending,
    )


def _requested_address(spec: InterfaceSpec, family: int) -> str | None:
    return next((address for address in spec.requested_addresses if family_of(address) == family), None)


def _interface(
    pod: Pod,
    spec: InterfaceSpec,
    vmi_uuid: str,
    addresses: Sequence[InterfaceAddress],
    *,
    cluster: str,
    default_mtu: int,
) -> VirtualMachineInterface:
    return VirtualMachineInterface(
        uuid=vmi_uuid,
        mac=spec.mac or interface_mac(vmi_uuid),
        network_uuid=spec.network.uuid,
        network=spec.network.fq_name,
        addresses=tuple(_with_gateway(pod, spec, address) for address in sorted(addresses, key=_family)),
        mtu=_mtu(spec.network, default_mtu),
        routes=spec.network.routes,
        nad=spec.nad,
        config_name=spec.config_name,
        interface=spec.interface,
        attachment=spec.attachment,
        default_gw=spec.default_gw,
        vni=spec.network.vni,
        ip_fabric_snat=spec.network.ip_fabric_snat,
        ip_fabric_forwarding=spec.network.ip_fabric_forwarding,
        pod_network=_pod_network(spec.network, cluster),
        forwarding_mode=spec.network.forwarding_mode,
    )


def _mtu(network: VirtualNetwork, default: int) -> int:
    """Returns the MTU of new interfaces: at least that which IPv6 needs, even if it does not fit the tunnels."""
    if network.mtu is not None:
        return network.mtu
    return max(default, MIN_IPV6_MTU) if 6 in families(network) else default


def _pod_network(network: VirtualNetwork, cluster: str) -> PodNetwork | None:
    if network.namespace is not None:
        return PodNetwork.NAMESPACE
    return PodNetwork.CLUSTER if network.fq_name == pod_network_name(cluster) else None


def _family(address: InterfaceAddress) -> int:
    return address.family


def _with_gateway(pod: Pod, spec: InterfaceSpec, address: InterfaceAddress) -> InterfaceAddress:
    """Returns the address with the subnet's gateway and the requested one, another address in the same subnet."""
    subnet_gateway = address.gateway
    requested = next((gateway for gateway in spec.default_route or () if family_of(gateway) == address.family), None)
    if requested is None:
        return msgspec.structs.replace(address, subnet_gateway=subnet_gateway)
    # The kernel rejects a gateway that is not on-link.
    if requested == address.address or not same_subnet(address.address, requested, prefix_length=address.prefix_length):
        own = f"{address.address}/{address.prefix_length}"
        message = f"default-route: {requested} cannot be the gateway of {spec.nad}, whose address is {own}"
        raise unsatisfiable(Reason.ANNOTATION_INVALID, message, spec, pod=pod)
    return msgspec.structs.replace(address, gateway=requested, subnet_gateway=subnet_gateway)

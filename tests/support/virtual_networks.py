"""Virtual networks as a manager writes them, and pods in them: addresses first, then the virtual machine."""

import uuid
from collections.abc import Sequence
from typing import Any

from contrail_config.addressing.notation import family_of
from contrail_config.addressing.subnet import default_gateway
from contrail_config.objects import (
    InterfaceAddress,
    Subnet,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_mac,
    interface_uuid,
    network_uuid,
)
from contrail_config.store import AddressRequest, Store
from tests.support.virtual_machines import NODE, make_virtual_machine


def make_network(name: str = "left", *cidrs: str, excluded: tuple[str, ...] = (), **fields: Any) -> VirtualNetwork:
    """A network with the default gateway in each subnet, by default with the subnet 10.1.0.0/24."""
    fq_name = ("default-domain", "k8s-default", name)
    subnets = tuple(
        Subnet(
            cidr=cidr,
            gateway=default_gateway(cidr),
            excluded=tuple(each for each in excluded if family_of(each) == family_of(cidr)),
        )
        for cidr in cidrs or ("10.1.0.0/24",)
    )
    return VirtualNetwork(**{"fq_name": fq_name, "uuid": network_uuid(fq_name), "subnets": subnets, **fields})


def new_owner() -> str:
    """Uuid of a new interface."""
    return str(uuid.uuid4())


def request(
    network: VirtualNetwork,
    owner: str | None = None,
    *,
    family: int = 4,
    address: str | None = None,
    node: str | None = None,
) -> AddressRequest:
    """An address request, by default for a new owner."""
    return AddressRequest(network.uuid, family, owner or new_owner(), address, node)


async def allocate_one(store: Store, network: VirtualNetwork, owner: str | None = None, **fields: Any) -> str:
    """Allocates one address and returns it as text."""
    (address,) = await store.allocate([request(network, owner, **fields)])
    return address.address


async def start_pod(
    store: Store, networks: Sequence[VirtualNetwork], pod: str = "p1", *, uid: str | None = None, node: str = NODE
) -> VirtualMachine:
    """Allocates one IPv4 address per network, writes the pod's virtual machine and returns it."""
    uid = uid or str(uuid.uuid4())
    owners = [interface_uuid(uid, index) for index in range(len(networks))]
    pairs = list(zip(networks, owners, strict=True))
    addresses = await store.allocate([request(network, owner, node=node) for network, owner in pairs])
    interfaces = tuple(
        interface_in(network, owner, address) for (network, owner), address in zip(pairs, addresses, strict=True)
    )
    virtual_machine = make_virtual_machine(pod, uid=uid, node=node, interfaces=interfaces)
    await store.put_virtual_machine(virtual_machine)
    return virtual_machine


def interface_in(network: VirtualNetwork, owner: str, *addresses: InterfaceAddress) -> VirtualMachineInterface:
    """An interface with these addresses in the network."""
    return VirtualMachineInterface(
        uuid=owner,
        mac=interface_mac(owner),
        network_uuid=network.uuid,
        network=network.fq_name,
        addresses=addresses,
        mtu=network.mtu or 1500,
        routes=network.routes,
        forwarding_mode=network.forwarding_mode,
    )

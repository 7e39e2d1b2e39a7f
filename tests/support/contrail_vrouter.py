"""What a Contrail vrouter agent of a node knows of its pods: what the node's virtual router refers to on the server.

The path is that of the control-node: virtual router, virtual machine, its interfaces, their instance-ips and networks.
"""

import ipaddress
from typing import Any

from contrail_config.vnc.mapping import annotations
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.stored import Stored
from tests.support.scripted_agents import Subnet, Vmi

MACHINE = "virtual-machine"
INTERFACE = "virtual-machine-interface"


def pods_of(database: Database, router: str) -> dict[str, list[Vmi]]:
    """Returns the interfaces of each pod of the node, by name of its virtual machine."""
    machines = [database.objects[uuid] for uuid in database.objects[router].references.get(MACHINE, ())]
    return {machine.fq_name[-1]: _interfaces(database, machine) for machine in machines}


def _interfaces(database: Database, machine: Stored) -> list[Vmi]:
    return [_interface(database, machine, found) for found in database.referrers(machine.uuid, INTERFACE)]


def _interface(database: Database, machine: Stored, interface: Stored) -> Vmi:
    (network,) = (database.objects[uuid] for uuid in interface.references["virtual-network"])
    addresses = [each.properties["instance_ip_address"] for each in database.referrers(interface.uuid, "instance-ip")]
    return Vmi(
        uuid=interface.uuid,
        vm_uuid=machine.uuid,
        mac=interface.properties["virtual_machine_interface_mac_addresses"]["mac_address"][0],
        annotations=annotations.from_object(interface.properties),  # in the server's order
        subnets=tuple(_subnet(network, address) for address in sorted(addresses, key=lambda text: ":" in text)),
        network=network.uuid,
    )


def _subnet(network: Stored, address: str) -> Subnet:
    """Returns the address with what the network's link to its IPAM says of its subnet."""
    subnets: list[dict[str, Any]] = [
        subnet for link in network.references["network-ipam"].values() for subnet in link["ipam_subnets"]
    ]
    for each in subnets:
        cidr = ipaddress.ip_network(f"{each['subnet']['ip_prefix']}/{each['subnet']['ip_prefix_len']}")
        if ipaddress.ip_address(address) in cidr:
            return Subnet(address, cidr.prefixlen, each["default_gateway"], each["dns_server_address"])
    raise ValueError(f"{address} is in no subnet of {network.fq_name}")

"""Double of a Contrail API server as a process: `python -m tests.bench.contrail_server LATENCY PODS`.

It has a network and virtual machines with three interfaces, as a manager writes them. Prints its URL once they are
there, and exits at the end of stdin. `LATENCY` is in seconds, of each request.
"""

import asyncio
import ipaddress
import sys
import uuid
from collections.abc import Iterator
from typing import Any

from contrail_config.objects import (
    InterfaceAddress,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    interface_mac,
    interface_uuid,
)
from contrail_config.vnc.client import VncAccess, connect
from contrail_config.vnc.mapping import addresses, annotations, machines
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import serve_contrail_api
from tests.support.contrail_api.stored import Stored, common_properties
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import make_network

INTERFACES = 3
NODES = 20
CIDR = "10.64.0.0/10"

Body = dict[str, Any]


async def main(latency: float, pods: int) -> None:
    """Serves until stdin ends."""
    async with serve_contrail_api() as server:
        async with connect(VncAccess((server.url,)), deadline=30) as client:
            parent = {"parent_type": "global-system-config"}
            for number in range(NODES):
                name = ["default-global-system-config", node_name(number)]
                await client.create("virtual-router", {"fq_name": name, **parent})
            store = await VncStore.open(client, cluster="k8s")
            network = await store.put_network(make_network("bench", CIDR))
            await store.close()
        fill(server.database, network, pods)
        server.faults.latency = latency
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def node_name(number: int) -> str:
    """Returns the name of a node."""
    return f"node-{number % NODES}"


def fill(database: Database, network: VirtualNetwork, pods: int) -> None:
    """Writes virtual machines as if a manager had written them."""
    routers = {each.fq_name[-1]: each for each in database.of_kind(KINDS["virtual-router"]).values()}
    free = ipaddress.ip_network(CIDR).hosts()
    next(free)  # the gateway
    for number in range(pods):
        machine = virtual_machine(f"old-{number}", network, node_name(number), free)
        body = machines.machine_body(machine)
        marker = {"key": annotations.MACHINE, "value": machines.machine_annotation(machine)}
        body["annotations"]["key_value_pair"].append(marker)
        write(database, machines.KIND, body)
        for interface, interface_body in zip(machine.interfaces, machines.interface_bodies(machine), strict=True):
            write(database, machines.INTERFACE, interface_body)
            text = interface.addresses[0].address
            claim = addresses.AddressClaim(network.uuid, network.fq_name, text, interface.uuid)
            linked = [{"uuid": interface.uuid, "to": []}]
            claimed = {**addresses.claim_body(claim, "k8s"), "virtual_machine_interface_refs": linked}
            write(database, addresses.KIND, {**claimed, "uuid": str(uuid.uuid4())})
        database.refer(routers[machine.node], machines.KIND, machine.uuid, None)


def virtual_machine(name: str, network: VirtualNetwork, node: str, free: Iterator[Any]) -> VirtualMachine:
    """Returns a pod in the network."""
    uid = str(uuid.uuid4())
    owners = [interface_uuid(uid, index) for index in range(INTERFACES)]
    interfaces = tuple(
        VirtualMachineInterface(
            uuid=owner,
            mac=interface_mac(owner),
            network_uuid=network.uuid,
            network=network.fq_name,
            addresses=(InterfaceAddress(str(next(free)), 10),),
            vni=network.vni,
        )
        for owner in owners
    )
    return make_virtual_machine(name, uid=uid, node=node, interfaces=interfaces)


def write(database: Database, kind: str, body: Body) -> None:
    """Writes an object: what is no property is its name, or a list of references."""
    references = {
        key.removesuffix("_refs").replace("_", "-"): {each["uuid"]: None for each in value}
        for key, value in body.items()
        if key.endswith("_refs")
    }
    own = {"uuid", "fq_name", "parent_type"}
    stated = {key: value for key, value in body.items() if key not in own and not key.endswith("_refs")}
    properties = {**common_properties(body["uuid"], body, body["fq_name"][-1]), **stated}
    database.write(
        Stored(KINDS[kind], body["uuid"], tuple(body["fq_name"]), properties=properties, references=references)
    )


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), int(sys.argv[2])))

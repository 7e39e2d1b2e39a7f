"""Upstream's Python client of the Contrail API server, run as a program against the server whose port is given.

It creates, reads, lists, refers, changes and deletes the objects of a pod, and prints what it found as JSON. A process
of its own, since the client blocks, patches the standard library's aliases and warns about its own syntax.
"""

import json
import sys

from vnc_api.exceptions import NoIdError, RefsExistError
from vnc_api.vnc_api import (
    InstanceIp,
    IpamSubnetType,
    KeyValuePair,
    KeyValuePairs,
    NetworkIpam,
    Project,
    SubnetType,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    VncApi,
    VnSubnetsType,
)

_POD_UID = "0a000000-0000-4000-8000-000000000001"


def main(port: str) -> None:
    client = VncApi(api_server_host="127.0.0.1", api_server_port=port, auth_type="noauth", timeout=20)
    project = Project("k8s-shop", parent_obj=None, fq_name=["default-domain", "k8s-shop"])
    client.project_create(project)
    project = client.project_read(fq_name=["default-domain", "k8s-shop"])
    ipam = NetworkIpam("k8s-blue-pod-ipam", parent_obj=project)
    client.network_ipam_create(ipam)
    network = VirtualNetwork("k8s-blue-pod-network", parent_obj=project)
    network.add_network_ipam(ipam, VnSubnetsType([IpamSubnetType(subnet=SubnetType("10.10.0.0", 24))]))
    client.virtual_network_create(network)
    machine = VirtualMachine("k8s__shop__web", fq_name=["k8s__shop__web"])
    machine.uuid = _POD_UID
    client.virtual_machine_create(machine)
    interface = VirtualMachineInterface("web__0", parent_obj=project)
    interface.set_virtual_network(network)
    interface.set_virtual_machine(machine)
    interface.set_annotations(KeyValuePairs([KeyValuePair("index", "0/1")]))
    client.virtual_machine_interface_create(interface)
    address = InstanceIp("web__0")
    address.set_virtual_network(network)
    client.instance_ip_create(address)
    client.ref_update("instance-ip", address.uuid, "virtual-machine-interface", interface.uuid, None, "ADD")
    listed = client.virtual_networks_list(parent_id=project.uuid, detail=True)
    found = {
        "uuid": client.virtual_machine_read(fq_name=["k8s__shop__web"]).uuid,
        "address": client.instance_ip_read(id=address.uuid).get_instance_ip_address(),
        "annotations": _annotations(client.virtual_machine_interface_read(id=interface.uuid)),
        "interfaces": [
            item["fq_name"][-1]
            for item in client.virtual_machine_interfaces_list(back_ref_id=[machine.uuid])["virtual-machine-interfaces"]
        ],
        "detailed": [item.get_fq_name_str() for item in listed],
    }
    try:
        client.virtual_machine_delete(id=machine.uuid)
    except RefsExistError:
        found["refused"] = True
    client.instance_ip_delete(id=address.uuid)
    client.virtual_machine_interface_delete(id=interface.uuid)
    client.virtual_machine_delete(id=machine.uuid)
    try:
        client.virtual_machine_read(id=machine.uuid)
    except NoIdError:
        found["gone"] = True
    client.virtual_network_delete(id=network.uuid)
    client.network_ipam_delete(id=ipam.uuid)
    client.project_delete(id=project.uuid)
    sys.stdout.write(json.dumps(found))


def _annotations(item: VirtualMachineInterface) -> dict[str, str]:
    return {pair.key: pair.value for pair in item.get_annotations().key_value_pair}


if __name__ == "__main__":
    main(sys.argv[1])

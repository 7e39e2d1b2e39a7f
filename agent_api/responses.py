"""What `GET /vm-cfg`, `GET /vm` and `GET /port` answer, item by item, in the key order of upstream's agent.

`/vm-cfg` tells a pod's interfaces as configured, the others those that are plugged. Upstream tells addresses only in
the latter; here `/vm-cfg` has them too, so that one request answers everything. An interface without an address of a
family has no key of that family. `dns-server` is one address by contract: without any it is the unspecified one.
"""

import time
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from agent_api.annotations import interface_annotations
from agent_api.authorship import AUTHOR, upstream_time
from agent_api.ports.instance import NO_VLAN, InstancePort
from agent_api.ports.port import Port
from agent_api.values import NIL_UUID
from contrail_config.objects import InterfaceAddress, Route, VirtualMachine, VirtualMachineInterface

_NO_DNS = {4: "0.0.0.0", 6: "::"}


class ConfiguredInterface(msgspec.Struct, kw_only=True, rename="kebab"):
    """One interface as configured; `mtu` in bytes, a route without `gw` is on the link."""

    id: str
    vm_uuid: str
    vn_id: str
    vn_name: str
    mac_address: str
    sub_interface: bool = False
    vlan_id: int = NO_VLAN
    annotations: list[str]
    ip_address: str | UnsetType = UNSET
    plen: int | UnsetType = UNSET
    dns_server: str | UnsetType = UNSET
    gateway: str | UnsetType = UNSET
    v6_ip_address: str | UnsetType = UNSET
    v6_plen: int | UnsetType = UNSET
    v6_dns_server: str | UnsetType = UNSET
    v6_gateway: str | UnsetType = UNSET
    mtu: int
    routes: tuple[Route, ...]


class PluggedInterface(msgspec.Struct, kw_only=True, rename="kebab"):
    """One plugged interface; `time` is the moment of the answer."""

    id: str
    instance_id: str
    vn_id: str
    vm_project_id: str = NIL_UUID
    mac_address: str
    system_name: str
    rx_vlan_id: int = NO_VLAN
    tx_vlan_id: int = NO_VLAN
    vhostuser_mode: int = 0
    ip_address: str | UnsetType = UNSET
    plen: int | UnsetType = UNSET
    dns_server: str | UnsetType = UNSET
    gateway: str | UnsetType = UNSET
    v6_ip_address: str | UnsetType = UNSET
    v6_plen: int | UnsetType = UNSET
    v6_dns_server: str | UnsetType = UNSET
    v6_gateway: str | UnsetType = UNSET
    author: str = AUTHOR
    time: str


def vm_cfg(machine: VirtualMachine) -> list[ConfiguredInterface]:
    """Returns all interfaces of a machine, in index order. Raises MachineUnservableError."""
    return [
        ConfiguredInterface(
            id=interface.uuid,
            vm_uuid=machine.uuid,
            vn_id=interface.network_uuid,
            vn_name=":".join(interface.network),
            mac_address=interface.mac,
            annotations=interface_annotations(machine, index),
            mtu=interface.mtu,
            routes=interface.routes,
            **_address_keys(interface),
        )
        for index, interface in enumerate(machine.interfaces)
    ]


def plugged_interface(machine: VirtualMachine, interface: VirtualMachineInterface, port: Port) -> PluggedInterface:
    """Returns one plugged interface of a machine."""
    return PluggedInterface(
        id=interface.uuid,
        instance_id=machine.uuid,
        vn_id=interface.network_uuid,
        mac_address=interface.mac,
        system_name=port.host_ifname,
        time=upstream_time(time.time()),
        **_instance_keys(port),
        **_address_keys(interface),
    )


def _instance_keys(port: Port) -> dict[str, Any]:
    """What only an instance's port has; a container's has the values that stand for none."""
    if not isinstance(port, InstancePort):
        return {}
    return {
        "vm_project_id": port.project_uuid,
        "rx_vlan_id": port.rx_vlan_id,
        "tx_vlan_id": port.tx_vlan_id,
        "vhostuser_mode": port.vhostuser_mode,
    }


def _address_keys(interface: VirtualMachineInterface) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for address in interface.addresses:
        keys |= _keys_of(address)
    return keys


def _keys_of(address: InterfaceAddress) -> dict[str, Any]:
    prefix = "v6_" if address.family == 6 else ""
    return {
        f"{prefix}ip_address": address.address,
        f"{prefix}plen": address.prefix_length,
        f"{prefix}dns_server": next(iter(address.dns), _NO_DNS[address.family]),
        f"{prefix}gateway": UNSET if address.gateway is None else address.gateway,
    }

"""Response bodies of `GET /vm-cfg`, `GET /vm` and `GET /port`, in the key order of the Contrail vrouter agent.

`/vm-cfg` lists a pod's interfaces as configured, the others list plugged interfaces. The vrouter agent includes
addresses only in the latter; here `/vm-cfg` includes them too, so that one request is enough. An interface without an
address of a family has no keys of that family. `dns-server` is mandatory in the wire format: without a server it is the
unspecified address.

Annotations are a list of `"{key:value}"` strings, derived from the stored VirtualMachine on each response, so that no
second copy can diverge. A VirtualMachine with a value that clients cannot read is not served at all, since a truncated
value makes the plugin configure the wrong interface. The manager never writes such values.
"""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, UnsetType

from agent_api.datapath.index_0 import isolated_network
from agent_api.datapath.names import BRIDGE, network_namespace
from agent_api.errors import UnservableVirtualMachineError
from agent_api.field_types import AUTHOR, NIL_UUID, format_vrouter_time
from agent_api.ports.instance import NO_VLAN, InstancePort
from agent_api.ports.port import Port
from contrail_config.interface_annotations import annotation_pairs
from contrail_config.objects import ForwardingMode, InterfaceAddress, Route, VirtualMachine, VirtualMachineInterface

NOTHING_REFUSED: Mapping[int, str] = MappingProxyType({})
_NO_DNS = {4: "0.0.0.0", 6: "::"}


# The order of the fields is the order of the keys on the wire.
class ConfiguredInterface(msgspec.Struct, kw_only=True, rename="kebab"):
    """One interface as configured; `mtu` is in bytes, a route without `gw` is on-link.

    With a Linux datapath, `network_namespace` and `bridge` say where the host end belongs; without them it belongs in
    the node's own namespace, and reaches only the isolated network `isolated_network`, if any. `routed` are the
    gateways of the pod's subnets by which it reaches even these. `refused`: why it must not be connected.
    """

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
    network_namespace: str | UnsetType = UNSET
    bridge: str | UnsetType = UNSET
    routed: tuple[str, ...] | UnsetType = UNSET
    isolated_network: int | UnsetType = UNSET
    refused: str | UnsetType = UNSET


class DatapathKeys(Protocol):
    """The part of `LinuxDatapath` that is used here."""

    def refused_interfaces(self, virtual_machine: VirtualMachine) -> dict[int, str]:
        """Returns why interfaces must not be connected now, by index."""


class PluggedInterface(msgspec.Struct, kw_only=True, rename="kebab"):
    """One plugged interface; `time` is the time of the response.

    `vm_ifname`, the name in the container, is a key that a Contrail vrouter agent does not serve.
    """

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
    vm_ifname: str | UnsetType = UNSET


def configured_interfaces(
    virtual_machine: VirtualMachine, datapath: DatapathKeys | None = None, refused: Mapping[int, str] = NOTHING_REFUSED
) -> list[ConfiguredInterface]:
    """Returns all interfaces in index order. Raises UnservableVirtualMachineError.

    `refused` says by index why an interface is not connected.
    """
    return [
        ConfiguredInterface(
            id=interface.uuid,
            vm_uuid=virtual_machine.uuid,
            vn_id=interface.network_uuid,
            vn_name=":".join(interface.network),
            mac_address=interface.mac,
            annotations=interface_annotations(virtual_machine, index),
            mtu=interface.mtu,
            routes=interface.routes,
            **_address_keys(interface),
            **({} if datapath is None else _datapath_keys(interface, index, refused.get(index))),
        )
        for index, interface in enumerate(virtual_machine.interfaces)
    ]


def plugged_interface(
    virtual_machine: VirtualMachine, interface: VirtualMachineInterface, port: Port
) -> PluggedInterface:
    """Returns one plugged interface."""
    return PluggedInterface(
        id=interface.uuid,
        instance_id=virtual_machine.uuid,
        vn_id=interface.network_uuid,
        mac_address=interface.mac,
        system_name=port.host_ifname,
        time=format_vrouter_time(time.time()),
        **_type_keys(port),
        **_address_keys(interface),
    )


def interface_annotations(virtual_machine: VirtualMachine, index: int) -> list[str]:
    """Returns the annotations of the interface at `index`. Raises UnservableVirtualMachineError."""
    try:
        pairs = annotation_pairs(virtual_machine, index)
    except ValueError as error:
        raise UnservableVirtualMachineError(str(error)) from error
    return [f"{{{key}:{value}}}" for key, value in pairs]


def _type_keys(port: Port) -> dict[str, Any]:
    """Returns the keys that only ports of one type have; the others keep the defaults, which mean none."""
    if not isinstance(port, InstancePort):
        return {"vm_ifname": port.vm_ifname} if port.vm_ifname else {}
    return {
        "vm_project_id": port.project_uuid,
        "rx_vlan_id": port.rx_vlan_id,
        "tx_vlan_id": port.tx_vlan_id,
        "vhostuser_mode": port.vhostuser_mode or 0,
    }


def _datapath_keys(interface: VirtualMachineInterface, index: int, refused: str | None) -> dict[str, Any]:
    if refused is not None:
        return {"refused": refused}
    gateways = tuple(each.subnet_gateway for each in interface.addresses if each.subnet_gateway)
    if index == 0:
        return {"routed": gateways, "isolated_network": isolated_network(interface) or UNSET}
    is_routed = interface.forwarding_mode is ForwardingMode.L3 and gateways
    bridged = {"network_namespace": network_namespace(interface.vni), "bridge": BRIDGE}
    return {**bridged, "routed": gateways} if is_routed else bridged


def _address_keys(interface: VirtualMachineInterface) -> dict[str, Any]:
    keys: dict[str, Any] = {}  # unset fields are omitted from the response
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

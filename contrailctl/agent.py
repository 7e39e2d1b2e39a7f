"""Client of a node agent's API: the interfaces that the agent serves to the CNI plugin for one pod.

A Contrail vrouter agent is supported too; it returns no addresses until a port is plugged.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from cni_contrail.datapath.namespaces import vni_of
from cni_contrail.link.host_side import is_network_name
from contrail_config.objects import (
    DefaultGateway,
    InterfaceAddress,
    Route,
    VirtualMachine,
    VirtualMachineInterface,
    virtual_machine_name,
)
from contrailctl.datapath import DatapathStatus
from contrailctl.endpoint import Endpoint
from contrailctl.errors import NotFoundError, ResponseError
from manager.api.types import thick_names

# The agent serves these if there is no name server.
_DNS_UNKNOWN = ("0.0.0.0", "::")


class _ConfiguredInterface(msgspec.Struct, rename="kebab"):
    """An item of `/vm-cfg`, reduced to the keys that are used."""

    id: str
    vm_uuid: str
    vn_id: str
    vn_name: str
    mac_address: str
    annotations: list[str] = []
    ip_address: str | None = None
    plen: int = 0
    dns_server: str = _DNS_UNKNOWN[0]
    gateway: str | None = None
    v6_ip_address: str | None = None
    v6_plen: int = 64
    v6_dns_server: str = _DNS_UNKNOWN[1]
    v6_gateway: str | None = None
    mtu: int = 1500
    routes: tuple[Route, ...] = ()
    network_namespace: str | None = None


class Port(msgspec.Struct, rename="kebab"):
    """A plugged interface: an item of `/vm`. `system_name` is the device at its host end.

    `vm_ifname` is its name in the container, None if the agent does not know it.
    """

    id: str
    system_name: str
    vm_ifname: str | None = None
    mac_address: str = ""
    ip_address: str | None = None
    plen: int = 0
    v6_ip_address: str | None = None
    v6_plen: int = 64  # a Contrail vrouter agent omits it


def interface_names(virtual_machine: VirtualMachine, ports: Mapping[str, Port]) -> tuple[str, ...]:
    """Returns the names of interfaces in the container; those without a port get the names of thick mode."""
    plugged = (ports.get(interface.uuid) for interface in virtual_machine.interfaces)
    thick = thick_names(virtual_machine)
    return tuple((port and port.vm_ifname) or name for port, name in zip(plugged, thick, strict=True))


Item = TypeVar("Item", bound=msgspec.Struct)


class AgentApi:
    """API of one agent. Methods raise ContrailctlError."""

    def __init__(self, endpoint: Endpoint, *, cluster: str) -> None:
        self._endpoint = endpoint
        self._cluster = cluster

    def virtual_machine(self, namespace: str, pod: str) -> VirtualMachine:
        """Returns a pod's virtual machine, without the fields that the agent does not serve. Raises NotFoundError."""
        name = virtual_machine_name(self._cluster, namespace, pod)
        try:
            items = self._decode(f"/vm-cfg/{name}", _ConfiguredInterface)
        except NotFoundError as error:
            message = f"pod {namespace}/{pod} not found at {self._endpoint.url} (virtual machine {name})"
            raise NotFoundError(message) from error
        annotated = sorted(((_annotations(item), item) for item in items), key=lambda pair: _index(pair[0]))
        if not annotated:
            raise ResponseError(f"{self._endpoint.url}/vm-cfg/{name}: no interfaces")
        first, item = annotated[0]
        return VirtualMachine(
            # The agent does not serve the node; every other identity is in the first item.
            uuid=item.vm_uuid,
            name=name,
            cluster=self._cluster,
            project=first.get("project", ""),
            namespace=namespace,
            pod=pod,
            node="",
            interfaces=tuple(_interface(item, annotations) for annotations, item in annotated),
        )

    def datapath(self) -> DatapathStatus:
        """Returns the state of the node's datapath. Raises NotFoundError if it is not the Linux kernel's."""
        path = "/datapath/report"
        try:
            return msgspec.json.decode(self._endpoint.get(path), type=DatapathStatus)
        except NotFoundError as error:
            raise NotFoundError(f"{self._endpoint.url}: the node has no Linux datapath") from error
        except msgspec.DecodeError as error:
            raise ResponseError(f"{self._endpoint.url}{path}: invalid response of an agent: {error}") from error

    def plugged(self, virtual_machine: VirtualMachine) -> dict[str, Port]:
        """Returns the ports of its plugged interfaces by interface uuid."""
        found = (self._port(virtual_machine.uuid, interface.uuid) for interface in virtual_machine.interfaces)
        return {port.id: port for ports in found for port in ports}

    def _port(self, vm_uuid: str, vmi_uuid: str) -> list[Port]:
        """Requests one interface: a request for all fails unless every interface is plugged."""
        try:
            return self._decode(f"/vm/{vm_uuid}/{vmi_uuid}", Port)
        except NotFoundError:
            return []

    def _decode(self, path: str, item_type: type[Item]) -> list[Item]:
        body = self._endpoint.get(path)
        try:
            items = msgspec.json.decode(body, type=list[msgspec.Raw])
            return [msgspec.json.decode(item, type=item_type) for item in items]
        except msgspec.DecodeError as error:
            raise ResponseError(f"{self._endpoint.url}{path}: invalid response of an agent: {error}") from error


def _annotations(item: _ConfiguredInterface) -> dict[str, str]:
    """Parses `{key:value}` texts."""
    pairs = (text.strip("{}").partition(":") for text in item.annotations)
    return {key: value for key, _, value in pairs}


def _index(annotations: Mapping[str, str]) -> int:
    """Parses `<index>/<number>`; an item without a valid index sorts last."""
    index = annotations.get("index", "").partition("/")[0]
    return int(index) if index.isdecimal() else sys.maxsize


def _interface(item: _ConfiguredInterface, annotations: Mapping[str, str]) -> VirtualMachineInterface:
    domain, _, rest = item.vn_name.partition(":")
    project, _, network = rest.partition(":")
    default_gw = annotations.get("default-gw")
    return VirtualMachineInterface(
        uuid=item.id,
        mac=item.mac_address,
        network_uuid=item.vn_id,
        network=(domain, project, network),
        addresses=tuple(_addresses(item)),
        mtu=item.mtu,
        routes=item.routes,
        vni=_vni(item.network_namespace),
        nad=annotations.get("nad"),
        config_name=annotations.get("config-name"),
        interface=annotations.get("interface"),
        attachment=annotations.get("attachment"),
        # Values of other agents that are unknown here are ignored.
        default_gw=DefaultGateway(default_gw) if default_gw in set(DefaultGateway) else None,
    )


def _vni(network_namespace: str | None) -> int:
    """Returns the VNI in the name of a network's namespace, 0 without one."""
    return vni_of(network_namespace) if network_namespace and is_network_name(network_namespace) else 0


def _addresses(item: _ConfiguredInterface) -> Iterator[InterfaceAddress]:
    if item.ip_address is not None:
        yield InterfaceAddress(item.ip_address, item.plen, item.gateway, _dns(item.dns_server))
    if item.v6_ip_address is not None:
        yield InterfaceAddress(item.v6_ip_address, item.v6_plen, item.v6_gateway, _dns(item.v6_dns_server))


def _dns(server: str) -> tuple[str, ...]:
    return () if server in _DNS_UNKNOWN else (server,)

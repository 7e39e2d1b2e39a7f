"""Asks a node's agent directly: what it serves to the CNI plugin about one pod.

A stock agent of Contrail answers too, without addresses until a port is plugged.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from contrail_config.objects import (
    DefaultGateway,
    InterfaceAddress,
    Route,
    VirtualMachine,
    VirtualMachineInterface,
    virtual_machine_name,
)
from contrailctl.endpoint import Endpoint
from contrailctl.errors import NotFoundError, ResponseError

_DNS_UNKNOWN = ("0.0.0.0", "::")


class _ConfiguredItem(msgspec.Struct, rename="kebab"):
    """An item of `/vm-cfg`, as far as it is read."""

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


class Port(msgspec.Struct, rename="kebab"):
    """A plugged interface: an item of `/vm`, as far as it is read. `system_name` is the device of its host end."""

    id: str
    system_name: str
    mac_address: str = ""
    ip_address: str | None = None
    plen: int = 0
    v6_ip_address: str | None = None
    v6_plen: int = 64  # a stock agent does not tell it


Item = TypeVar("Item", bound=msgspec.Struct)


class AgentApi:
    """The API of one agent. Methods raise ContrailctlError."""

    def __init__(self, endpoint: Endpoint, *, cluster: str) -> None:
        self._endpoint = endpoint
        self._cluster = cluster

    def machine(self, namespace: str, pod: str) -> VirtualMachine:
        """A pod's machine with all its interfaces, as far as the agent tells. Raises NotFoundError."""
        name = virtual_machine_name(self._cluster, namespace, pod)
        try:
            items = self._decode(f"/vm-cfg/{name}", _ConfiguredItem)
        except NotFoundError as error:
            raise NotFoundError(f"pod {namespace}/{pod} is not known to {self._endpoint.url} (as {name})") from error
        annotated = sorted(((_annotations(item), item) for item in items), key=lambda pair: _index(pair[0]))
        if not annotated:
            raise ResponseError(f"{self._endpoint.url}/vm-cfg/{name}: has no interfaces")
        first, item = annotated[0]
        return VirtualMachine(
            uuid=item.vm_uuid,
            name=name,
            cluster=self._cluster,
            project=first.get("project", ""),
            namespace=namespace,
            pod=pod,
            node="",
            interfaces=tuple(_interface(item, annotations) for annotations, item in annotated),
        )

    def plugged(self, machine: VirtualMachine) -> dict[str, Port]:
        """Those of its interfaces that are plugged, by their uuid."""
        found = (self._plugged_one(machine.uuid, interface.uuid) for interface in machine.interfaces)
        return {port.id: port for ports in found for port in ports}

    def _plugged_one(self, vm_uuid: str, vmi_uuid: str) -> list[Port]:
        """Asks for one interface: of a machine whose interfaces are not all plugged, an agent tells none together."""
        try:
            return self._decode(f"/vm/{vm_uuid}/{vmi_uuid}", Port)
        except NotFoundError:
            return []

    def _decode(self, path: str, item: type[Item]) -> list[Item]:
        body = self._endpoint.get(path)
        try:
            return [msgspec.json.decode(each, type=item) for each in msgspec.json.decode(body, type=list[msgspec.Raw])]
        except msgspec.DecodeError as error:
            raise ResponseError(f"{self._endpoint.url}{path}: is no agent's answer: {error}") from error


def _annotations(item: _ConfiguredItem) -> dict[str, str]:
    """Reads `{key:value}` texts."""
    pairs = (text.strip("{}").partition(":") for text in item.annotations)
    return {key: value for key, _, value in pairs}


def _index(annotations: Mapping[str, str]) -> int:
    """Reads `<index>/<number>`; what says nothing comes last."""
    index = annotations.get("index", "").partition("/")[0]
    return int(index) if index.isdecimal() else sys.maxsize


def _interface(item: _ConfiguredItem, annotations: Mapping[str, str]) -> VirtualMachineInterface:
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
        nad=annotations.get("nad"),
        config_name=annotations.get("config-name"),
        interface=annotations.get("interface"),
        attachment=annotations.get("attachment"),
        default_gw=DefaultGateway(default_gw) if default_gw in set(DefaultGateway) else None,
    )


def _addresses(item: _ConfiguredItem) -> Iterator[InterfaceAddress]:
    if item.ip_address is not None:
        yield InterfaceAddress(item.ip_address, item.plen, item.gateway, _dns(item.dns_server))
    if item.v6_ip_address is not None:
        yield InterfaceAddress(item.v6_ip_address, item.v6_plen, item.v6_gateway, _dns(item.v6_dns_server))


def _dns(server: str) -> tuple[str, ...]:
    return () if server in _DNS_UNKNOWN else (server,)

"""The annotation `k8s.v1.cni.cncf.io/network-status`: the networks that a pod is attached to.

Follows the multi-network standard v1.3 (section 3), in the form that its readers accept in practice: addresses without
a prefix, and the gateways of default routes under `gateway`.
"""

import msgspec

from contrail_config.default_routes import default_routes
from contrail_config.objects import VirtualMachine, VirtualMachineInterface, interface_name

_PRIMARY = "eth0"  # the name that container runtimes give to the interface that they request


class Dns(msgspec.Struct, frozen=True):
    """Name servers."""

    nameservers: list[str]


class NetworkStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attachment; `default` is true only for index 0, the attachment to the cluster's default network."""

    name: str
    interface: str
    ips: list[str]
    mac: str
    default: bool
    mtu: int
    gateway: list[str] = []
    dns: Dns | None = None


def network_status(vm: VirtualMachine) -> str:
    """Returns the annotation value of a pod whose interfaces are all created by the Contrail plugin."""
    gateways: dict[int, list[str]] = {}
    for route in default_routes(vm.interfaces):
        gateways.setdefault(route.index, []).append(route.gateway)
    attachments = [
        _attachment(index, interface, gateways.get(index, [])) for index, interface in enumerate(vm.interfaces)
    ]
    return msgspec.json.encode(attachments).decode()


def _attachment(index: int, interface: VirtualMachineInterface, gateways: list[str]) -> NetworkStatus:
    servers = list(dict.fromkeys(server for address in interface.addresses for server in address.dns))
    return NetworkStatus(
        name=interface.nad or interface.network[2],
        interface=interface_name(index, interface.interface) if index else _PRIMARY,
        ips=[address.address for address in interface.addresses],
        mac=interface.mac,
        default=index == 0,
        mtu=interface.mtu,
        gateway=gateways,
        dns=Dns(servers) if servers else None,
    )

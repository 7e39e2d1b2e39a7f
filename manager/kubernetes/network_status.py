"""The annotation `k8s.v1.cni.cncf.io/network-status`: what a pod was attached to, for those who read it.

As the multi-network standard v1.3 (section 3) says, in the form that its readers take in fact: addresses without
prefix, and the gateways of default routes under `gateway`.
"""

import msgspec

from contrail_config.objects import DefaultGateway, VirtualMachine, VirtualMachineInterface, thick_name

_PRIMARY = "eth0"  # what runtimes call the interface that they ask for
_ASKED = {
    4: (DefaultGateway.BOTH, DefaultGateway.IPV4),
    6: (DefaultGateway.BOTH, DefaultGateway.IPV6),
}


class Dns(msgspec.Struct, frozen=True):
    """Name servers."""

    nameservers: list[str]


class Attachment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attachment; `default` is true of the first alone, that to the cluster's default network."""

    name: str
    interface: str
    ips: list[str]
    mac: str
    default: bool
    mtu: int
    gateway: list[str] = []
    dns: Dns | None = None


def network_status(machine: VirtualMachine) -> str:
    """The annotation's text for a pod whose interfaces are all made by us."""
    attachments = [_attachment(machine, index) for index in range(len(machine.interfaces))]
    return msgspec.json.encode(attachments).decode()


def _attachment(machine: VirtualMachine, index: int) -> Attachment:
    interface = machine.interfaces[index]
    servers = list(dict.fromkeys(server for address in interface.addresses for server in address.dns))
    return Attachment(
        name=interface.nad or interface.network[2],
        interface=thick_name(index, interface.interface) if index else _PRIMARY,
        ips=[address.address for address in interface.addresses],
        mac=interface.mac,
        default=index == 0,
        mtu=interface.mtu,
        gateway=[gateway for family in (4, 6) if (gateway := _default_gateway(machine, index, family))],
        dns=Dns(servers) if servers else None,
    )


def _default_gateway(machine: VirtualMachine, index: int, family: int) -> str | None:
    """The gateway of the pod's default route of the family, if that goes here.

    It goes where it was asked for, else to the lowest index that has a gateway, unless index 0 says `none`.
    """
    gateways = [_gateway(interface, family) for interface in machine.interfaces]
    able = [at for at, gateway in enumerate(gateways) if gateway is not None]
    asked = [at for at in able if machine.interfaces[at].default_gw in _ASKED[family]]
    refused = machine.interfaces[0].default_gw is DefaultGateway.NONE
    takers = asked or ([] if refused else able)
    return gateways[index] if takers[:1] == [index] else None


def _gateway(interface: VirtualMachineInterface, family: int) -> str | None:
    return next((address.gateway for address in interface.addresses if address.family == family), None)

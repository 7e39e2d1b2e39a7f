"""The annotation `k8s.v1.cni.cncf.io/network-status`: what a pod was attached to, for those who read it.

As the multi-network standard v1.3 (section 3) says, in the form that its readers take in fact: addresses without
prefix, and the gateways of default routes under `gateway`.
"""

from collections.abc import Sequence

import msgspec

from contrail_config.objects import DefaultGateway, VirtualMachine, VirtualMachineInterface, thick_name

_PRIMARY = "eth0"  # what runtimes call the interface that they ask for


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
    gateways = _default_gateways(machine.interfaces)
    attachments = [
        _attachment(index, interface, gateways.get(index, [])) for index, interface in enumerate(machine.interfaces)
    ]
    return msgspec.json.encode(attachments).decode()


def _attachment(index: int, interface: VirtualMachineInterface, gateways: list[str]) -> Attachment:
    servers = list(dict.fromkeys(server for address in interface.addresses for server in address.dns))
    return Attachment(
        name=interface.nad or interface.network[2],
        interface=thick_name(index, interface.interface) if index else _PRIMARY,
        ips=[address.address for address in interface.addresses],
        mac=interface.mac,
        default=index == 0,
        mtu=interface.mtu,
        gateway=gateways,
        dns=Dns(servers) if servers else None,
    )


def _default_gateways(interfaces: Sequence[VirtualMachineInterface]) -> dict[int, list[str]]:
    """The gateways of the pod's default routes, by the index of the interface that they go to, IPv4 first."""
    found: dict[int, list[str]] = {}
    for family in (4, 6):
        if (taker := _taker(interfaces, family)) is not None:
            index, gateway = taker
            found.setdefault(index, []).append(gateway)
    return found


def _taker(interfaces: Sequence[VirtualMachineInterface], family: int) -> tuple[int, str] | None:
    """Index and gateway of the interface that takes the default route of the family; None if none does.

    It goes where it was asked for, else to the lowest index that has a gateway, unless index 0 says `none`.
    """
    able = [(index, gateway) for index, one in enumerate(interfaces) if (gateway := _gateway(one, family)) is not None]
    asked = (taker for taker in able if _asks(interfaces[taker[0]], family))
    unasked = None if not able or interfaces[0].default_gw is DefaultGateway.NONE else able[0]
    return next(asked, unasked)


def _asks(interface: VirtualMachineInterface, family: int) -> bool:
    return interface.default_gw is not None and family in interface.default_gw.families


def _gateway(interface: VirtualMachineInterface, family: int) -> str | None:
    return next((address.gateway for address in interface.addresses if address.family == family), None)

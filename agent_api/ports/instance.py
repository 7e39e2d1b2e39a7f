"""Instance port, as in the body of `POST /port`: for virtual machines of nova and vCenter, and for namespaces.

Its file has the format and path (`<ports>/<vmi-uuid>`) of the Contrail vrouter agent and `vrouter-port-control`. Values
that mean "none" are normalized as there: vlan -1 becomes 65535, an empty or `None` address the unspecified address, an
empty uuid the nil uuid. Text that is neither an address nor a uuid, which the vrouter agent also takes for none, is
rejected.
"""

import ipaddress
import time
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from agent_api.field_types import (
    AUTHOR,
    NIL_UUID,
    NO_ADDRESS,
    IPv4OrNone,
    IPv6OrNone,
    Mac,
    Text,
    Uuid,
    UuidOrNone,
    format_vrouter_time,
    is_device_name,
    validation_error,
)
from agent_api.request_decoding import decode_body, validate_items

VIRTUAL_MACHINE, NAMESPACE, REMOTE = 0, 1, 2
"""Values of `type`; a remote port, on an ESXi host, has no device on this host."""

NO_VLAN = 65535

Vlan = Annotated[int, msgspec.Meta(ge=-1, le=NO_VLAN)]


class InstancePortRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A port in a request; as by the Contrail vrouter agent, unknown keys are ignored and null is taken as absent."""

    vmi_uuid: Uuid = msgspec.field(name="id")
    vm_uuid: Uuid = msgspec.field(name="instance-id")
    vm_name: Text = msgspec.field(name="display-name")
    ip_address: IPv4OrNone
    ip6_address: IPv6OrNone
    vn_uuid: UuidOrNone = msgspec.field(name="vn-id")
    project_uuid: UuidOrNone = msgspec.field(name="vm-project-id")
    mac_address: Mac
    host_ifname: Text = msgspec.field(name="system-name")
    kind: Literal[0, 1, 2] = msgspec.field(name="type")
    rx_vlan_id: Vlan
    tx_vlan_id: Vlan
    vhostuser_mode: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = 0  # null in each add of vrouter-port-control
    link_state: Literal[0, 1] | UnsetType | None = UNSET


class InstancePort(InstancePortRequest, frozen=True, kw_only=True):
    """A persisted port. Only a remote port has a link state; the others have that of their device."""

    author: str = AUTHOR
    time: str = ""


_decoder: msgspec.json.Decoder[InstancePortRequest | list[InstancePortRequest]] = msgspec.json.Decoder(
    InstancePortRequest | list[InstancePortRequest]
)


def parse_instance_ports(body: bytes) -> list[InstancePort]:
    """Returns the ports in a body, with the current time. Raises BadRequestError."""
    requests = validate_items(decode_body(body, _decoder), unique="vmi_uuid", validate=instance_validation_error)
    now = format_vrouter_time(time.time())
    return [normalize(InstancePort(**msgspec.structs.asdict(request), author=AUTHOR, time=now)) for request in requests]


def instance_validation_error(port: InstancePortRequest) -> str | None:
    """Returns the error of the first invalid or contradictory value, None if the port is valid."""
    return validation_error(port) or _contradiction(port)


def normalize(port: InstancePort) -> InstancePort:
    """Returns a validated port with its "none" values in normalized form."""
    return msgspec.structs.replace(
        port,
        ip_address=_address(port.ip_address, none="0.0.0.0"),
        ip6_address=_address(port.ip6_address, none="::"),
        vn_uuid=port.vn_uuid or NIL_UUID,
        project_uuid=port.project_uuid or NIL_UUID,
        rx_vlan_id=_vlan(port.rx_vlan_id),
        tx_vlan_id=_vlan(port.tx_vlan_id),
        vhostuser_mode=port.vhostuser_mode or 0,
        # A remote port is down until it is enabled, as in the vrouter agent.
        link_state=(port.link_state or 0) if port.kind == REMOTE else UNSET,
    )


def _contradiction(port: InstancePortRequest) -> str | None:
    if port.kind == VIRTUAL_MACHINE and port.vn_uuid in {"", NIL_UUID}:
        return "vn-id: Invalid VN uuid: a port of type 0 needs a network"
    if port.kind != REMOTE and not is_device_name(port.host_ifname):
        return f"system-name: {port.host_ifname[:80]!r} is not a valid device name"
    # The texts of the VN and VLAN errors begin as those of the Contrail vrouter agent.
    if _vlan(port.rx_vlan_id) != NO_VLAN == _vlan(port.tx_vlan_id):
        return "tx-vlan-id: Invalid request. RX (isolated) vlan set, but TX vlan not set"
    return None


def _address(text: str, *, none: str) -> str:
    return none if text in NO_ADDRESS else str(ipaddress.ip_address(text))


def _vlan(number: int) -> int:
    return NO_VLAN if number == -1 else number

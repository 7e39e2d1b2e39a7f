"""The port of an instance, as `POST /port` plugs it: for virtual machines of nova and vCenter, and for namespaces.

Its file is the one that upstream's agent and `vrouter-port-control` write, at `<ports>/<vmi-uuid>`. What says "none" in
a request has one form afterwards, as upstream has it: vlan -1 is 65535, an address that is empty or `None` the
unspecified one, an empty uuid the nil one. Text that is no address or no uuid, which upstream takes for none as well,
is an error.
"""

import ipaddress
import time
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from agent_api.authorship import AUTHOR, upstream_time
from agent_api.request_bodies import check_items, decode_body
from agent_api.values import (
    NIL_UUID,
    NO_ADDRESS,
    IPv4OrNone,
    IPv6OrNone,
    Mac,
    Text,
    Uuid,
    UuidOrNone,
    is_device_name,
    wrong_value,
)

VIRTUAL_MACHINE, NAMESPACE, REMOTE = 0, 1, 2
"""The types of ports; a remote one, of an ESXi host, has no device on this host."""

NO_VLAN = 65535

Vlan = Annotated[int, msgspec.Meta(ge=-1, le=NO_VLAN)]


class InstancePortRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a client says of a port; keys that are not named here are ignored, as upstream ignores them."""

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
    vhostuser_mode: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    link_state: Literal[0, 1] | UnsetType = UNSET


class InstancePort(InstancePortRequest, frozen=True, kw_only=True):
    """A port as kept: only a remote one has a link state, since that of the others is their device's."""

    author: str = AUTHOR
    time: str = ""


_decoder: msgspec.json.Decoder[InstancePortRequest | list[InstancePortRequest]] = msgspec.json.Decoder(
    InstancePortRequest | list[InstancePortRequest]
)


def parse_instance_ports(body: bytes) -> list[InstancePort]:
    """Returns the ports that a body holds, marked with the present time. Raises BadRequestError."""
    requests = check_items(decode_body(body, _decoder), unique="vmi_uuid", find_wrong=wrong_instance)
    moment = upstream_time(time.time())
    return [
        in_kept_form(InstancePort(**msgspec.structs.asdict(request), author=AUTHOR, time=moment))
        for request in requests
    ]


def wrong_instance(port: InstancePortRequest) -> str | None:
    """Returns what is wrong with a port's first wrong value, or with two of them together; None: nothing."""
    return wrong_value(port) or _contradiction(port)


def in_kept_form(port: InstancePort) -> InstancePort:
    """Returns a checked port with everything that says "none" in the form in which it is kept."""
    return msgspec.structs.replace(
        port,
        ip_address=_address(port.ip_address, none="0.0.0.0"),
        ip6_address=_address(port.ip6_address, none="::"),
        vn_uuid=port.vn_uuid or NIL_UUID,
        project_uuid=port.project_uuid or NIL_UUID,
        rx_vlan_id=_vlan(port.rx_vlan_id),
        tx_vlan_id=_vlan(port.tx_vlan_id),
        link_state=(port.link_state or 0) if port.kind == REMOTE else UNSET,
    )


def _contradiction(port: InstancePortRequest) -> str | None:
    if port.kind == VIRTUAL_MACHINE and port.vn_uuid in {"", NIL_UUID}:
        return "vn-id: Invalid VN uuid: a port of type 0 is in a network"
    if port.kind != REMOTE and not is_device_name(port.host_ifname):
        return f"system-name: {port.host_ifname[:80]!r} is no device name"
    if _vlan(port.rx_vlan_id) != NO_VLAN == _vlan(port.tx_vlan_id):
        return "tx-vlan-id: Invalid request. RX (isolated) vlan set, but TX vlan not set"
    return None


def _address(text: str, *, none: str) -> str:
    return none if text in NO_ADDRESS else str(ipaddress.ip_address(text))


def _vlan(number: int) -> int:
    return NO_VLAN if number == -1 else number

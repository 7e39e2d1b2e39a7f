"""Container port, as in the body of `POST /vm` and in its file.

Keys and their order are those of the Contrail vrouter agent. Contrail's CNI plugin writes the same keys in another
order and without `author`; both forms are read.
"""

import time

import msgspec

from agent_api.errors import BadRequestError
from agent_api.field_types import (
    AUTHOR,
    ContainerDeviceName,
    ContainerId,
    DeviceName,
    Path,
    Uuid,
    VirtualMachineName,
    format_vrouter_time,
)
from agent_api.request_decoding import decode_body, validate_items


class ContainerPortRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A port in a request; as by the Contrail vrouter agent, unknown keys are ignored and null is taken as absent."""

    vm_uuid: Uuid
    vn_uuid: Uuid
    vmi_uuid: Uuid
    vm_id: ContainerId | None = None  # owner
    vm_name: VirtualMachineName
    host_ifname: DeviceName  # device on the host
    vm_ifname: ContainerDeviceName | None = None  # name in the container
    vm_namespace: Path | None = None  # path of the network namespace


class ContainerPort(ContainerPortRequest, frozen=True, kw_only=True):
    """A persisted port; `time` is the time of its POST, in the vrouter agent's form."""

    vm_id: ContainerId = ""  # empty: no owner
    vm_ifname: ContainerDeviceName = ""
    vm_namespace: Path = ""
    author: str = AUTHOR
    time: str = ""


_decoder: msgspec.json.Decoder[ContainerPortRequest | list[ContainerPortRequest]] = msgspec.json.Decoder(
    ContainerPortRequest | list[ContainerPortRequest]
)


def parse_container_ports(body: bytes) -> list[ContainerPort]:
    """Returns the ports in a body, at least one, with the current time. Raises BadRequestError."""
    requests = validate_items(decode_body(body, _decoder), unique="vmi_uuid")
    if not requests:
        raise BadRequestError("body: array without ports")
    _check_names(requests)
    now = format_vrouter_time(time.time())
    return [ContainerPort(**_present(request), time=now) for request in requests]


def _present(request: ContainerPortRequest) -> dict[str, str]:
    return {key: value for key, value in msgspec.structs.asdict(request).items() if value is not None}


def _check_names(requests: list[ContainerPortRequest]) -> None:
    # The name is the directory of the file: two names of one VirtualMachine would scatter its ports.
    names: dict[str, str] = {}
    for position, request in enumerate(requests):
        name = names.setdefault(request.vm_uuid, request.vm_name)
        if request.vm_name != name:
            raise BadRequestError(
                f"[{position}].vm-name: {request.vm_name!r} differs from {name!r} of the same vm-uuid"
            )

"""The port of a container, as `POST /vm` plugs it: what the request says of one interface, and what its file holds.

The keys and their order are those of upstream's agent; upstream's CNI plugin writes the same keys in another order
and without `author`, and both are read.
"""

import time

import msgspec

from agent_api.authorship import AUTHOR, upstream_time
from agent_api.errors import BadRequestError
from agent_api.request_bodies import check_items, decode_body
from agent_api.values import ContainerId, DeviceName, InnerName, MachineName, Path, Uuid


class ContainerPortRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a client says of a port; keys that are not named here are ignored, as upstream ignores them."""

    vm_uuid: Uuid
    vn_uuid: Uuid
    vmi_uuid: Uuid
    vm_id: ContainerId = ""  # empty: nobody's
    vm_name: MachineName
    host_ifname: DeviceName  # the device at the host's end
    vm_ifname: InnerName = ""  # the name in the container
    vm_namespace: Path = ""  # of the network namespace


class ContainerPort(ContainerPortRequest, frozen=True, kw_only=True):
    """A port as kept; `time` is the moment of its POST, in upstream's form."""

    author: str = AUTHOR
    time: str = ""


_decoder: msgspec.json.Decoder[ContainerPortRequest | list[ContainerPortRequest]] = msgspec.json.Decoder(
    ContainerPortRequest | list[ContainerPortRequest]
)


def parse_container_ports(body: bytes) -> list[ContainerPort]:
    """Returns the ports that a body holds, at least one, marked with the present time. Raises BadRequestError."""
    requests = check_items(decode_body(body, _decoder), unique="vmi_uuid")
    if not requests:
        raise BadRequestError("the array holds no port")
    _check_agreement(requests)
    moment = upstream_time(time.time())
    return [ContainerPort(**msgspec.structs.asdict(request), time=moment) for request in requests]


def _check_agreement(requests: list[ContainerPortRequest]) -> None:
    names: dict[str, str] = {}
    for position, request in enumerate(requests):
        name = names.setdefault(request.vm_uuid, request.vm_name)
        if request.vm_name != name:
            raise BadRequestError(f"[{position}].vm-name: {request.vm_name!r}, but {name!r} before of the same vm-uuid")

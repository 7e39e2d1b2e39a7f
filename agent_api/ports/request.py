"""Reads the body of `POST /vm`: one port as upstream's plugin posts it, or an array of them.

Upstream answers 500 to what it cannot parse and takes a wrong uuid for the nil one; here every wrong value is one
error that names its key, in an array with its position (`[1].vmi-uuid: ...`). Nothing is done of a body that is wrong
in part.
"""

import time

import msgspec

from agent_api.authorship import upstream_time
from agent_api.errors import BadRequestError
from agent_api.ports.port import Port, PortRequest, wrong_value

_decoder: msgspec.json.Decoder[PortRequest | list[PortRequest]] = msgspec.json.Decoder(PortRequest | list[PortRequest])


def parse_ports(body: bytes) -> list[Port]:
    """Returns the ports that a body holds, at least one, marked with the present time. Raises BadRequestError."""
    decoded = _decode(body)
    requests = decoded if isinstance(decoded, list) else [decoded]
    if not requests:
        raise BadRequestError("the array holds no port")
    for position, request in enumerate(requests):
        if wrong := wrong_value(request):
            raise BadRequestError(f"[{position}].{wrong}" if isinstance(decoded, list) else wrong)
    _check_agreement(requests)
    moment = upstream_time(time.time())
    return [Port(**msgspec.structs.asdict(request), time=moment) for request in requests]


def _decode(body: bytes) -> PortRequest | list[PortRequest]:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise BadRequestError(_key_first(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    except RecursionError as error:
        raise BadRequestError("the body is nested too deeply") from error


def _key_first(message: str) -> str:
    """Turns msgspec's `Expected ... - at `$[0].vm-uuid`` into `[0].vm-uuid: Expected ...`."""
    what, _, path = message.partition(" - at `$")
    return f"{path.strip('`.')}: {what}" if path else what


def _check_agreement(requests: list[PortRequest]) -> None:
    seen: set[str] = set()
    names: dict[str, str] = {}
    for position, request in enumerate(requests):
        if request.vmi_uuid in seen:
            raise BadRequestError(f"[{position}].vmi-uuid: {request.vmi_uuid} comes twice")
        seen.add(request.vmi_uuid)
        name = names.setdefault(request.vm_uuid, request.vm_name)
        if request.vm_name != name:
            raise BadRequestError(f"[{position}].vm-name: {request.vm_name!r}, but {name!r} before of the same vm-uuid")

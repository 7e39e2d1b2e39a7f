"""A plugged port: what `POST /vm` says of one interface, and what its file holds.

The keys and their order are those of upstream's agent; upstream's CNI plugin writes the same keys in another order
and without `author`, and both are read. Every value is checked, in a request as in a file: names become parts of
paths.
"""

import json
import re
from collections.abc import Callable

import msgspec

from agent_api.authorship import AUTHOR

_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NIL_UUID = "00000000-0000-0000-0000-000000000000"
_DEVICE_NAME = re.compile(r"[^/:\s\x00-\x1f]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_LONGEST_MACHINE_NAME = 512  # bytes; Kubernetes allows 63 for a namespace and 253 for a pod, the cluster's comes on top
_LONGEST_DEVICE_NAME = 15
_LONGEST_TEXT = 4096  # the longest of them is the path of a namespace


class PortRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a client says of a port; keys that are not named here are ignored, as upstream ignores them."""

    vm_uuid: str
    vn_uuid: str
    vmi_uuid: str
    vm_id: str = ""  # the container; empty: nobody's
    vm_name: str
    host_ifname: str  # the device at the host's end
    vm_ifname: str = ""  # the name in the container
    vm_namespace: str = ""  # path of the network namespace


class Port(PortRequest, frozen=True, kw_only=True):
    """A port as kept; `time` is the moment of its POST, in upstream's form."""

    author: str = AUTHOR
    time: str = ""


def is_uuid(text: str) -> bool:
    """Tells whether it is a uuid as upstream takes it in paths: lower case, with dashes."""
    return _UUID.fullmatch(text) is not None


def wrong_value(port: PortRequest) -> str | None:
    """Returns what is wrong with a port's first wrong value (`vmi-uuid: 'x' is no uuid`), None if all are right."""
    for key, is_right, kind in _CHECKS:
        value: str = getattr(port, key.replace("-", "_"))
        if not is_right(value):
            return f"{key}: {value[:80]!r} is no {kind}"
    return None


def encode_port(port: Port) -> bytes:
    """Returns the contents of a port's file: JSON, indented by tabs."""
    return json.dumps(msgspec.to_builtins(port), indent="\t").encode()


def _is_own_uuid(text: str) -> bool:
    return is_uuid(text) and text != _NIL_UUID


def _is_machine_name(text: str) -> bool:
    return text not in {"", ".", ".."} and "/" not in text and _is_text(text, longest=_LONGEST_MACHINE_NAME)


def _is_device_name(text: str) -> bool:
    return (
        text not in {".", ".."}
        and _DEVICE_NAME.fullmatch(text) is not None
        and len(text.encode()) <= _LONGEST_DEVICE_NAME
    )


def _is_text(text: str, *, longest: int = _LONGEST_TEXT) -> bool:
    return _CONTROL.search(text) is None and len(text.encode()) <= longest


_CHECKS: tuple[tuple[str, Callable[[str], bool], str], ...] = (
    ("vm-uuid", _is_own_uuid, "uuid (lower case, with dashes, not the nil one)"),
    ("vn-uuid", _is_own_uuid, "uuid (lower case, with dashes, not the nil one)"),
    ("vmi-uuid", _is_own_uuid, "uuid (lower case, with dashes, not the nil one)"),
    ("vm-id", _is_text, "container id"),
    ("vm-name", _is_machine_name, "name of a virtual machine"),
    ("host-ifname", _is_device_name, "device name"),
    ("vm-ifname", _is_text, "device name"),
    ("vm-namespace", _is_text, "path"),
)

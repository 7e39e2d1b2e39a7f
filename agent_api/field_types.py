"""Validated text types of request fields and files, and the wire form of author and time.

A struct's field is annotated with its type once. Request validation, file validation and `/openapi.json` are all
derived from that annotation. Names become parts of file paths, so every one is validated.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

NIL_UUID = "00000000-0000-0000-0000-000000000000"
UUID_PATTERN = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
"""A uuid as the Contrail vrouter agent accepts it in paths: lower case, with dashes."""

NO_ADDRESS = frozenset({"", "None"})
"""Values by which Contrail's clients say that an instance has no address of a family."""

AUTHOR = "contrail-agent"
"""Value of the key `author` in port files and responses."""

_UUID = re.compile(UUID_PATTERN)
# As dev_valid_name() of the kernel, and without control characters, which would corrupt logs.
_DEVICE_NAME = re.compile(r"[^/:\s\x00-\x1f\x7f]+")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")
_NO_MAC = "00:00:00:00:00:00"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_MAX_VM_NAME = 512  # bytes; `<cluster>__<namespace>__<pod>`: Kubernetes allows 63 for a namespace, 253 for a pod
_MAX_DEVICE_NAME = 15  # bytes; IFNAMSIZ without the terminating zero
_MAX_TEXT = 4096  # bytes; PATH_MAX, as the longest field is the path of a network namespace


def validation_error(struct: msgspec.Struct) -> str | None:
    """Returns the error of the first invalid field (`vmi-uuid: 'x' is not a valid uuid`), None if all are valid."""
    return next(_validation_errors(struct, ""), None)


def wire_key(struct: msgspec.Struct, attribute: str) -> str:
    """Returns the wire key of an attribute."""
    return next(field.key for field in _fields(type(struct)) if field.attribute == attribute)


def format_vrouter_time(seconds: float) -> str:
    """Returns a time, in seconds since the epoch, in the vrouter agent's form: hours first, `426404:56:19.863169`."""
    whole, microseconds = divmod(round(seconds * 1_000_000), 1_000_000)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:02d}:{minute:02d}:{second:02d}.{microseconds:06d}"


def is_uuid(text: str) -> bool:
    """Returns whether the text is a uuid in lower case with dashes."""
    return _UUID.fullmatch(text) is not None


def is_device_name(text: str) -> bool:
    """Returns whether the text is a valid name of a Linux network device."""
    return (
        text not in {".", ".."}
        and _DEVICE_NAME.fullmatch(text) is not None
        and _is_text(text, max_bytes=_MAX_DEVICE_NAME)
    )


def _is_non_nil_uuid(text: str) -> bool:
    return is_uuid(text) and text != NIL_UUID


def _is_uuid_or_none(text: str) -> bool:
    return text == "" or is_uuid(text)


def _is_vm_name(text: str) -> bool:
    return text not in {"", ".", ".."} and "/" not in text and _is_text(text, max_bytes=_MAX_VM_NAME)


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and text != _NO_MAC


def _is_text(text: str, *, max_bytes: int = _MAX_TEXT) -> bool:
    return _CONTROL.search(text) is None and len(text.encode()) <= max_bytes


def _is_non_empty_text(text: str) -> bool:
    return text != "" and _is_text(text)


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None  # fe80::1%eth0 is valid for Python only
    except ValueError:
        return False


def _is_ipv4_or_none(text: str) -> bool:
    return text in NO_ADDRESS or _is_ipv4(text)


def _is_ipv6_or_none(text: str) -> bool:
    return text in NO_ADDRESS or _is_ipv6(text)


class _TextType(NamedTuple):
    """A text type: its name in errors, and its validation."""

    name: str
    is_valid: Callable[[str], bool]


def _text_type(name: str, is_valid: Callable[[str], bool], **schema: Any) -> msgspec.Meta:
    return msgspec.Meta(extra={"text_type": _TextType(name, is_valid)}, extra_json_schema=schema)


def _address(family: str) -> list[dict[str, Any]]:
    return [{"format": family}, {"enum": sorted(NO_ADDRESS)}]


Uuid = Annotated[
    str,
    _text_type(
        "uuid (lower case, with dashes, not nil)",
        _is_non_nil_uuid,
        pattern=f"^{UUID_PATTERN}$",
        **{"not": {"const": NIL_UUID}},
    ),
]
UuidOrNone = Annotated[
    str,
    _text_type(
        "uuid (lower case, with dashes; empty or nil for none)", _is_uuid_or_none, pattern=f"^({UUID_PATTERN})?$"
    ),
]
VirtualMachineName = Annotated[str, _text_type("virtual machine name", _is_vm_name, pattern="^[^/\\x00-\\x1f\\x7f]+$")]
DeviceName = Annotated[str, _text_type("device name", is_device_name, pattern="^[^/:\\s\\x00-\\x1f\\x7f]{1,15}$")]
Mac = Annotated[
    str,
    _text_type(
        "MAC address, use xx:xx:xx:xx:xx:xx format, not all zero",
        _is_mac,
        pattern="^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$",
        **{"not": {"const": _NO_MAC}},
    ),
]
IPv4 = Annotated[str, _text_type("IPv4 address", _is_ipv4, format="ipv4")]
IPv4OrNone = Annotated[
    str, _text_type("IPv4 address (empty or None for none)", _is_ipv4_or_none, anyOf=_address("ipv4"))
]
IPv6OrNone = Annotated[
    str, _text_type("IPv6 address (empty or None for none)", _is_ipv6_or_none, anyOf=_address("ipv6"))
]
ContainerId = Annotated[str, _text_type("container id", _is_text, maxLength=_MAX_TEXT)]
ContainerDeviceName = Annotated[str, _text_type("device name", _is_text, maxLength=_MAX_TEXT)]
Path = Annotated[str, _text_type("path", _is_text, maxLength=_MAX_TEXT)]
Text = Annotated[str, _text_type("text (printable, at most 4096 bytes)", _is_text, maxLength=_MAX_TEXT)]
NonEmptyText = Annotated[str, _text_type("text (printable, 1 to 4096 bytes)", _is_non_empty_text, minLength=1)]


class _Field(NamedTuple):
    """A field as validation sees it; `text_type` is None if only msgspec validates it or if it contains structs."""

    attribute: str
    key: str
    text_type: _TextType | None


def _validation_errors(struct: msgspec.Struct, prefix: str) -> Iterator[str]:
    for field in _fields(type(struct)):
        value = getattr(struct, field.attribute)
        if isinstance(value, tuple):
            for position, inner in enumerate(value):
                yield from _validation_errors(inner, f"{prefix}{field.key}[{position}].")
        elif field.text_type is not None and value is not None and not field.text_type.is_valid(value):
            yield f"{prefix}{field.key}: {value[:80]!r} is not a valid {field.text_type.name}"


@cache
def _fields(struct: type[msgspec.Struct]) -> list[_Field]:
    # Cached: resolving annotations is slow, and every POST of the plugin needs the fields.
    hints = get_type_hints(struct, include_extras=True)
    return [
        _Field(each.name, each.encode_name, _text_type_of(hints[each.name])) for each in msgspec.structs.fields(struct)
    ]


def _text_type_of(hint: Any) -> _TextType | None:
    if get_origin(hint) in {Union, UnionType}:  # an optional key, which may be null
        return next(filter(None, map(_text_type_of, get_args(hint))), None)
    metas = (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, msgspec.Meta))
    return next((meta.extra["text_type"] for meta in metas if meta.extra), None)

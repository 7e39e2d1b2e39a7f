"""The kinds of text that clients send: how each is checked, described in errors, and told in `/openapi.json`.

A field of a struct is annotated with its kind, once; the check of a request, that of a file and the description are
made of that annotation. Names become parts of paths, so none passes unchecked.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec

NIL_UUID = "00000000-0000-0000-0000-000000000000"
UUID_PATTERN = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
"""A uuid as upstream takes it in paths: lower case, with dashes."""

NO_ADDRESS = frozenset({"", "None"})
"""What upstream's clients say where an instance has no address of a family."""

_UUID = re.compile(UUID_PATTERN)
_DEVICE_NAME = re.compile(r"[^/:\s\x00-\x1f\x7f]+")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}")
_NO_MAC = "00:00:00:00:00:00"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_LONGEST_MACHINE_NAME = 512  # bytes; Kubernetes allows 63 for a namespace and 253 for a pod, the cluster's comes on top
_LONGEST_DEVICE_NAME = 15
_LONGEST_TEXT = 4096  # the longest of them is the path of a namespace


def wrong_value(struct: msgspec.Struct) -> str | None:
    """Returns what is wrong with a struct's first wrong text (`vmi-uuid: 'x' is no uuid`), None if all are right."""
    return next(_wrong_values(struct, ""), None)


def key_of(struct: msgspec.Struct, attribute: str) -> str:
    """Returns the key by which clients know an attribute."""
    return next(field.key for field in _fields(type(struct)) if field.attribute == attribute)


def is_uuid(text: str) -> bool:
    """Tells whether it is a uuid as upstream takes it in paths."""
    return _UUID.fullmatch(text) is not None


def is_device_name(text: str) -> bool:
    """Tells whether a network device can bear the name."""
    return (
        text not in {".", ".."}
        and _DEVICE_NAME.fullmatch(text) is not None
        and _is_text(text, longest=_LONGEST_DEVICE_NAME)
    )


def _is_own_uuid(text: str) -> bool:
    return is_uuid(text) and text != NIL_UUID


def _is_uuid_or_none(text: str) -> bool:
    return text == "" or is_uuid(text)


def _is_machine_name(text: str) -> bool:
    return text not in {"", ".", ".."} and "/" not in text and _is_text(text, longest=_LONGEST_MACHINE_NAME)


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and text != _NO_MAC


def _is_text(text: str, *, longest: int = _LONGEST_TEXT) -> bool:
    return _CONTROL.search(text) is None and len(text.encode()) <= longest


def _is_some_text(text: str) -> bool:
    return text != "" and _is_text(text)


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.IPv6Address(text).scope_id is None
    except ValueError:
        return False


def _is_ipv4_or_none(text: str) -> bool:
    return text in NO_ADDRESS or _is_ipv4(text)


def _is_ipv6_or_none(text: str) -> bool:
    return text in NO_ADDRESS or _is_ipv6(text)


class _Kind(NamedTuple):
    """A kind of text: what an error calls it, and its check."""

    name: str
    is_right: Callable[[str], bool]


def _kind(name: str, is_right: Callable[[str], bool], **schema: Any) -> msgspec.Meta:
    return msgspec.Meta(extra={"kind": _Kind(name, is_right)}, extra_json_schema=schema)


def _address(family: str) -> list[dict[str, Any]]:
    return [{"format": family}, {"enum": sorted(NO_ADDRESS)}]


Uuid = Annotated[
    str,
    _kind(
        "uuid (lower case, with dashes, not the nil one)",
        _is_own_uuid,
        pattern=f"^{UUID_PATTERN}$",
        **{"not": {"const": NIL_UUID}},
    ),
]
UuidOrNone = Annotated[
    str, _kind("uuid (lower case, with dashes; empty or nil: none)", _is_uuid_or_none, pattern=f"^({UUID_PATTERN})?$")
]
MachineName = Annotated[str, _kind("name of a virtual machine", _is_machine_name, pattern="^[^/\\x00-\\x1f\\x7f]+$")]
DeviceName = Annotated[str, _kind("device name", is_device_name, pattern="^[^/:\\s\\x00-\\x1f\\x7f]{1,15}$")]
Mac = Annotated[
    str,
    _kind(
        "MAC, use xx:xx:xx:xx:xx:xx format, not all zero",
        _is_mac,
        pattern="^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$",
        **{"not": {"const": _NO_MAC}},
    ),
]
IPv4 = Annotated[str, _kind("IPv4 address", _is_ipv4, format="ipv4")]
IPv4OrNone = Annotated[str, _kind("IPv4 address (empty or None: none)", _is_ipv4_or_none, anyOf=_address("ipv4"))]
IPv6OrNone = Annotated[str, _kind("IPv6 address (empty or None: none)", _is_ipv6_or_none, anyOf=_address("ipv6"))]
ContainerId = Annotated[str, _kind("container id", _is_text, maxLength=_LONGEST_TEXT)]
InnerName = Annotated[str, _kind("device name", _is_text, maxLength=_LONGEST_TEXT)]
Path = Annotated[str, _kind("path", _is_text, maxLength=_LONGEST_TEXT)]
Text = Annotated[str, _kind("printable text of 4096 bytes at most", _is_text, maxLength=_LONGEST_TEXT)]
SomeText = Annotated[str, _kind("printable text of 1 to 4096 bytes", _is_some_text, minLength=1)]


class _Field(NamedTuple):
    """A field as the check sees it: `kind` is None where msgspec alone checks it, or where it holds structs."""

    attribute: str
    key: str
    kind: _Kind | None


def _wrong_values(struct: msgspec.Struct, prefix: str) -> Iterator[str]:
    for field in _fields(type(struct)):
        value = getattr(struct, field.attribute)
        if isinstance(value, tuple):
            for position, inner in enumerate(value):
                yield from _wrong_values(inner, f"{prefix}{field.key}[{position}].")
        elif field.kind is not None and not field.kind.is_right(value):
            yield f"{prefix}{field.key}: {value[:80]!r} is no {field.kind.name}"


@cache
def _fields(struct: type[msgspec.Struct]) -> list[_Field]:
    hints = get_type_hints(struct, include_extras=True)
    return [_Field(each.name, each.encode_name, _kind_of(hints[each.name])) for each in msgspec.structs.fields(struct)]


def _kind_of(hint: Any) -> _Kind | None:
    metas = (each for each in getattr(hint, "__metadata__", ()) if isinstance(each, msgspec.Meta))
    return next((meta.extra["kind"] for meta in metas if meta.extra), None)

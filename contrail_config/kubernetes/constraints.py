"""Constraints on the fields of stored objects, from one table: for the CustomResourceDefinitions, and on reading.

The API server enforces all of them. Readers check formats and ranges again, since an object may be older than the
definition, but no lengths: a newer release may permit more.
"""

import copy
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from contrail_config.addressing.notation import family_of, parse_address, parse_cidr
from contrail_config.kubernetes.kinds import BlockSpec, LastAllocation, NodeReport
from contrail_config.objects import (
    InterfaceAddress,
    NetworkRepairs,
    NetworkSlice,
    Pending,
    Refusal,
    Route,
    Subnet,
    VirtualMachine,
    VirtualMachineInterface,
    VirtualNetwork,
    parse_endpoint,
)
from contrail_config.port_readings import PodPorts, PortCounters, PortDrops, PortReading

Schema = dict[str, Any]

_MAX_QUOTED: Final = 200  # characters of a value in a message


class Constraint(NamedTuple):
    """Keywords of a schema, and what readers check: `is_valid` for a value that is not None.

    `expected` completes the sentence "... is not ...". `items` constrains each item of a list or value of a map.
    """

    schema: Mapping[str, Any]
    expected: str = ""
    is_valid: Callable[[Any], bool] | None = None
    items: "Constraint | None" = None


def _pattern(pattern: str, *, expected: str, max_length: int) -> Constraint:
    matches = re.compile(pattern.removesuffix("$") + r"\Z").match  # `$` also matches before a final newline
    return Constraint({"pattern": pattern, "maxLength": max_length}, expected, lambda text: matches(text) is not None)


def _text(max_length: int, *, min_length: int = 0) -> Constraint:
    return Constraint(({"minLength": min_length} if min_length else {}) | {"maxLength": max_length})


def _integer(minimum: int, maximum: int) -> Constraint:
    expected = f"a number from {minimum} to {maximum}"
    return Constraint(
        {"minimum": minimum, "maximum": maximum}, expected, lambda number: bool(minimum <= number <= maximum)
    )


def _list(max_items: int, items: Constraint | None = None) -> Constraint:
    return Constraint({"maxItems": max_items}, items=items)


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return is_valid


def _address(text: str) -> int:
    return parse_address(text, family=family_of(text))


def _check_endpoint(text: str) -> None:
    if _ENDPOINT_FORM.is_valid is None or not _ENDPOINT_FORM.is_valid(text):
        raise ValueError(text)
    for address in parse_endpoint(text).addresses:
        _address(address)


_FORMATS: Final = ({"format": "ipv4"}, {"format": "ipv6"})
_UUID: Final = _pattern(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", expected="a UUID in lower case", max_length=36)
_MAC: Final = _pattern(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$", expected="a MAC address in lower case", max_length=17)
_NAMESPACE: Final = _pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", expected="the name of a namespace", max_length=63)
_OBJECT_NAME: Final = _pattern(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", expected="the name of an object", max_length=253)
_REASON: Final = _pattern(r"^[A-Z][A-Za-z0-9]*$", expected="the reason of an event", max_length=128)
_ADDRESS: Final = Constraint({"anyOf": list(_FORMATS), "maxLength": 45}, "an IP address", _parses(_address))
_CIDR: Final = Constraint({"format": "cidr", "maxLength": 49}, "a CIDR", _parses(parse_cidr))
_ADDRESS_OR_CIDR: Final = Constraint(
    {"anyOf": [*_FORMATS, {"format": "cidr"}], "maxLength": 49}, "an IP address or CIDR", _parses(parse_cidr)
)
_PREFIX_LENGTH: Final = _integer(0, 128)
_MTU: Final = _integer(0, 65535)
_VNI: Final = _integer(0, 2**24 - 1)
_FQ_NAME: Final = Constraint({}, items=_text(512, min_length=1))
_NAD: Final = _pattern(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    expected="the namespace and the name of a NAD",
    max_length=317,
)
_ENDPOINT_FORM: Final = _pattern(
    r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}( [0-9a-f:.]{2,45}){0,2}$",
    expected="a MAC address in lower case, and at most two IP addresses behind it",
    max_length=109,
)
_ENDPOINT: Final = _ENDPOINT_FORM._replace(is_valid=_parses(_check_endpoint))
_SERVERS: Final = _list(1024, _ADDRESS)
_ROUTES: Final = _list(1024)

CONSTRAINTS: Final[Mapping[type[Any], Mapping[str, Constraint]]] = {
    Route: {"dst": _CIDR, "gw": _ADDRESS},
    Subnet: {"cidr": _CIDR, "gateway": _ADDRESS, "excluded": _list(8192, _ADDRESS_OR_CIDR)},
    VirtualNetwork: {
        "fq_name": _FQ_NAME,
        "uuid": _UUID,
        "subnets": _list(1024),
        "dns": _SERVERS,
        "mtu": _MTU,
        "routes": _ROUTES,
        "vni": _VNI,
        "nad": _NAD,
        "namespace": _NAMESPACE,
    },
    InterfaceAddress: {
        "address": _ADDRESS,
        "prefix_length": _PREFIX_LENGTH,
        "gateway": _ADDRESS,
        "dns": _SERVERS,
        "subnet_gateway": _ADDRESS,
    },
    VirtualMachineInterface: {
        "uuid": _UUID,
        "mac": _MAC,
        "network_uuid": _UUID,
        "network": _FQ_NAME,
        "addresses": _list(2),
        "mtu": _MTU,
        "routes": _ROUTES,
        "nad": _NAD,
        "config_name": _text(255),
        "interface": _text(15),
        "attachment": _text(15),
        "vni": _VNI,
    },
    VirtualMachine: {
        "uuid": _UUID,
        "name": _text(600, min_length=1),
        "cluster": _text(253, min_length=1),
        "project": _text(512, min_length=1),
        "namespace": _NAMESPACE,
        "pod": _OBJECT_NAME,
        "node": _OBJECT_NAME,
        "interfaces": _list(257),  # the pod network, and 256 networks that the pod names
        "config_hash": _text(253),
    },
    NetworkSlice: {
        "network_uuid": _UUID,
        "node": _OBJECT_NAME,
        "network": _FQ_NAME,
        "vni": _integer(1, 2**24 - 1),
        "tunnel": _list(2, _ADDRESS),
        "endpoints": _list(16384, _ENDPOINT),
        "blocks": _list(16384, _CIDR),
        "borrowed": _list(16384, _ADDRESS),
        "node_addresses": _list(2, _ADDRESS),
    },
    Refusal: {
        "network": _FQ_NAME,
        "vni": _VNI,
        "reason": _pattern(r"^[a-z][a-z0-9-]*$", expected="a word in lower case", max_length=32),
        "message": _text(1024),
        "subnet": _CIDR,
    },
    NetworkRepairs: {
        "network": _FQ_NAME,
        "vni": _VNI,
        "repairs": _integer(0, 2**53 - 1),
        "latest": _text(64),
    },
    Pending: {"reason": _REASON, "message": _text(1024)},
    LastAllocation: {"address": _ADDRESS},
    BlockSpec: {"network": _UUID, "first": _ADDRESS, "addresses": _text(32768), "node": _OBJECT_NAME},
    PodPorts: {
        "virtual_machine": _UUID,
        "requested": _text(64),
        "counted_at": _text(64),
        "ports": _list(64),  # with 8 pods 400 KiB at most; etcd takes 1.5 MiB
    },
    PortReading: {
        "interface": _UUID,
        "condition": _text(32),
        "reason": _text(256),
        "link": _text(64),
        "link_namespace": _text(64),
        "container": _text(128),
    },
    PortCounters: dict.fromkeys(PortCounters.__struct_fields__, _integer(0, 2**53 - 1)),
    PortDrops: dict.fromkeys(PortDrops.__struct_fields__, _integer(0, 2**53 - 1)),
    NodeReport: {
        "reported_at": _text(64),
        "instance": _text(512),
        "versions": Constraint({"maxProperties": 16}, items=_text(128)),
        "unplugged": _list(1024, _UUID),
        "pending_deletes": _integer(0, 2**31 - 1),
        "conflicts": _list(8, _text(1024)),
        "last_errors": _list(8, _text(1024)),
        "refused": _list(32),
        "tunnel_mtu": _MTU,
        "datapath": _text(32),
        "not_ready": _list(8, _text(1024)),
        "missing_modules": _list(16, _text(64)),
        "repairs": Constraint({"maxProperties": 64}, items=Constraint({"minimum": 0, "maximum": 2**53 - 1})),
        "repaired_networks": _list(32),
        "ports": _list(8),
    },
}


def constrain(schema: Schema, kind: type[Any]) -> Schema:
    """Adds the constraints to the structural schema of a struct, nested ones included, and returns it."""
    for field in msgspec.structs.fields(kind):
        part = schema["properties"][field.encode_name]
        if (constraint := CONSTRAINTS.get(kind, {}).get(field.name)) is not None:
            _constrain(part, constraint)
        for nested in _structs_in(field.type):
            constrain(part["items"] if part["type"] == "array" else part, nested)
    return schema


def problem_of(item: msgspec.Struct) -> str | None:
    """Returns which field of a struct, nested ones included, is not as it should be; None if all are."""
    return next(_problems(item, ""), None)


def _constrain(schema: Schema, constraint: Constraint) -> None:
    schema.update(copy.deepcopy(dict(constraint.schema)))  # the same object twice would become a YAML anchor
    if constraint.items is not None:
        _constrain(schema["items" if schema["type"] == "array" else "additionalProperties"], constraint.items)


def _problems(item: msgspec.Struct, path: str) -> Iterator[str]:
    for attribute, key, constraint, has_structs in _plan(type(item)):
        value = getattr(item, attribute)
        if value is None:
            continue
        if constraint is not None and not _is_met(value, constraint):
            yield from _violations(value, constraint, f"{path}{key}")
        if has_structs:
            for position, nested in enumerate(value) if isinstance(value, tuple) else ((None, value),):
                place = key if position is None else f"{key}[{position}]"
                yield from _problems(nested, f"{path}{place}.")


def _is_met(value: Any, constraint: Constraint) -> bool:
    """Whether there are no violations: in nearly all objects, so this takes no generators."""
    if constraint.is_valid is not None and not constraint.is_valid(value):
        return False
    items = constraint.items
    return items is None or items.is_valid is None or all(map(items.is_valid, value))


def _violations(value: Any, constraint: Constraint, place: str) -> Iterator[str]:
    if constraint.is_valid is not None and not constraint.is_valid(value):
        yield f"{place}: {str(value)[:_MAX_QUOTED]!r} is not {constraint.expected}"
    if constraint.items is not None and constraint.items.is_valid is not None:
        for position, each in enumerate(value):
            yield from _violations(each, constraint.items, f"{place}[{position}]")


@cache
def _plan(kind: type[Any]) -> list[tuple[str, str, Constraint | None, bool]]:
    """Returns what to check of a struct: attribute, key, constraint, and whether the field holds structs."""
    constraints = CONSTRAINTS.get(kind, {})
    fields = [
        (field.name, field.encode_name, _checked(constraints.get(field.name)), bool(_structs_in(field.type)))
        for field in msgspec.structs.fields(kind)
    ]
    return [field for field in fields if field[2] is not None or field[3]]


def _checked(constraint: Constraint | None) -> Constraint | None:
    """Returns the constraint if readers check anything of it."""
    if constraint is None or (constraint.is_valid is None and _checked(constraint.items) is None):
        return None
    return constraint


def _structs_in(kind: Any) -> list[type[Any]]:
    """Returns the struct that a type is, may be, or has as items."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [kind]
    return [struct for part in typing.get_args(kind) for struct in _structs_in(part)]

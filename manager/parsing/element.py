"""One element of the network selection annotation, key by key (multi-network standard v1.3, 4.1).

Keys are matched as Multus's decoder does: without regard to case, null and the empty text as if absent, unknown ones
(vendors' keys with a dot among them) ignored. An address or MAC may also be asked for by `cni-args`, which become the
plugin's `args.cni`, where the CNI conventions have `ips` and `mac`; what the element itself says stands over them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from manager.parsing.addresses import Address, parse_address, parse_unicast, split_cidr
from manager.parsing.errors import BadValueError
from manager.parsing.interface_name import interface_name
from manager.parsing.json_text import json_list, json_object
from manager.parsing.names import namespace_name, object_name
from manager.parsing.network_selection import NetworkSelection
from manager.parsing.quoting import quoted

T = TypeVar("T")

_UNSERVED = ("infiniband-guid", "bandwidth", "portMappings", "deviceID", "ipam-claim-reference")
_MAC = re.compile(
    r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.IGNORECASE
)


def parse_selection(element: Any, *, namespace: str) -> NetworkSelection:
    """What one element asks for; `namespace` is the pod's. Raises BadValueError, which names key and value."""
    items = json_object(element).items()
    fields = {key.lower(): value for key, value in items if value is not None and value != ""}
    stated, name = _network(fields)
    arguments = _read(fields, "cni-args", json_object)
    problems: list[str] = []
    ips = _asked(fields, arguments or {}, "ips", _requested_addresses, problems) or ()
    return NetworkSelection(
        namespace=stated or namespace,
        name=name,
        interface=_read(fields, "interface", interface_name) or _read(fields, "interfaceRequest", interface_name),
        mac=_asked(fields, arguments or {}, "mac", parse_mac, problems),
        ips=tuple(str(address) for address in ips),
        default_route=_read(fields, "default-route", _gateways),
        cni_args=arguments,
        unserved=(*problems, *_unserved_keys(fields), *_unserved_ips(ips)),
    )


def parse_mac(value: Any) -> str:
    """A MAC of 6 bytes, with colons, hyphens or dots, as lower-case with colons.

    Raises BadValueError, for group addresses and zero too: no interface can have them.
    """
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise BadValueError(f"{quoted(value)} is no MAC address of 6 bytes")
    octets = bytes.fromhex(re.sub("[:.-]", "", value))
    if octets[0] & 1 or not any(octets):
        raise BadValueError(f"{quoted(value)} is a group address or zero, which no interface can have")
    return octets.hex(":")


def _read(fields: Mapping[str, Any], key: str, read: Callable[[Any], T]) -> T | None:
    value = fields.get(key.lower())
    try:
        return None if value is None else read(value)
    except BadValueError as error:
        raise BadValueError(f"{key}: {error}") from error


def _asked(
    fields: Mapping[str, Any], arguments: Mapping[str, Any], key: str, read: Callable[[Any], T], problems: list[str]
) -> T | None:
    """What the element says, else what its `cni-args` do: another plugin may read anything else there."""
    if key in fields or not arguments.get(key):
        return _read(fields, key, read)
    try:
        return _read(arguments, key, read)
    except BadValueError as error:
        problems.append(f"cni-args.{error}")
        return None


def _network(fields: Mapping[str, Any]) -> tuple[str | None, str]:
    """Namespace, if one is stated, and name."""
    qualified = _read(fields, "name", _qualified_name)
    if qualified is None:
        raise BadValueError("name is missing")
    prefix, name = qualified
    stated = _read(fields, "namespace", namespace_name)
    if prefix and stated and prefix != stated:
        raise BadValueError(f"name: {quoted(fields['name'])} contradicts namespace {quoted(stated)}")
    return prefix or stated, name


def _qualified_name(value: Any) -> tuple[str | None, str]:
    """`net-a`, or `other-ns/net-c`, which is the multi-network design's own form."""
    prefix, _, name = _text(value).rpartition("/")
    return namespace_name(prefix) if prefix else None, object_name(name)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadValueError(f"{quoted(value)} is no text")
    return value


def _requested_addresses(value: Any) -> tuple[Address, ...]:
    addresses = [split_cidr(item)[0] if "/" in _text(item) else parse_address(item) for item in json_list(value)]
    return tuple(parse_unicast(str(address)) for address in addresses)


def _gateways(value: Any) -> tuple[str, ...]:
    gateways = [parse_unicast(item) for item in json_list(value)]
    for family in (4, 6):
        if sum(gateway.version == family for gateway in gateways) > 1:
            raise BadValueError(f"{quoted(value)} names more than one IPv{family} gateway")
    return tuple(str(gateway) for gateway in gateways)


def _unserved_keys(fields: Mapping[str, Any]) -> list[str]:
    asked = ((key, fields.get(key.lower())) for key in _UNSERVED)
    return [f"{key}: {quoted(value)} is not served" for key, value in asked if value]


def _unserved_ips(ips: Sequence[Address]) -> list[str]:
    return [
        f"ips: more than one IPv{family} address ({', '.join(of_family)}) is not served"
        for family in (4, 6)
        if len(of_family := [str(address) for address in ips if address.version == family]) > 1
    ]

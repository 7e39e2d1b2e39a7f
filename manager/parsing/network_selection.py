"""Network selection elements: one entry of the networks annotation (multi-network standard v1.3, 4.1).

Keys are matched as Multus does: case-insensitive, null and "" count as absent, and unknown keys (vendor keys contain a
dot) are ignored. An address or MAC may also be requested through `cni-args`, which become the plugin's `args.cni`,
where the CNI conventions define `ips` and `mac`. The element's own keys take precedence.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from contrail_config.reserved_macs import reserved_for
from manager.parsing.addresses import Address, parse_address, parse_unicast, split_cidr
from manager.parsing.errors import BadValueError
from manager.parsing.json_text import json_list, json_object
from manager.parsing.names import interface_name, namespace_name, object_name
from manager.parsing.quoting import quoted

T = TypeVar("T")

# Keys of the standard that Contrail networks do not implement.
_UNSUPPORTED = ("infiniband-guid", "bandwidth", "portMappings", "deviceID", "ipam-claim-reference")
_MAC = re.compile(
    r"(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.IGNORECASE
)


class NetworkSelection(msgspec.Struct, frozen=True):
    """One element of the list (multi-network standard v1.3, 4.1).

    `ips` are addresses without prefix in canonical form, `mac` is lower case with colons. `default_route` is None if
    the element lacks the key, else the requested gateways (empty: no default route at all). `unsupported` has one text
    per request that Contrail networks do not support; another plugin's network may.
    """

    namespace: str
    name: str
    interface: str | None = None
    mac: str | None = None
    ips: tuple[str, ...] = ()
    default_route: tuple[str, ...] | None = None
    cni_args: Mapping[str, Any] | None = None
    unsupported: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The NAD, `namespace/name`."""
        return f"{self.namespace}/{self.name}"


def parse_selection(element: Any, *, namespace: str) -> NetworkSelection:
    """Parses one element; `namespace` is the pod's. Raises BadValueError, which names key and value."""
    items = json_object(element).items()
    # Of keys that differ only in case, the last one counts.
    fields = {key.lower(): value for key, value in items if value is not None and value != ""}
    namespace_of_nad, name = _network(fields)
    arguments = _parse(fields, "cni-args", json_object)
    problems: list[str] = []
    ips = _requested(fields, arguments or {}, "ips", _requested_addresses, problems) or ()
    mac = _requested(fields, arguments or {}, "mac", parse_mac, problems)
    return NetworkSelection(
        namespace=namespace_of_nad or namespace,
        name=name,
        # Multus still accepts the deprecated key interfaceRequest.
        interface=_parse(fields, "interface", interface_name) or _parse(fields, "interfaceRequest", interface_name),
        mac=mac,
        ips=tuple(str(address) for address in ips),
        default_route=_parse(fields, "default-route", _gateways),
        cni_args=arguments,
        unsupported=(*problems, *_unsupported_keys(fields), *_unsupported_ips(ips), *_reserved_mac(fields, mac)),
    )


def parse_mac(value: Any) -> str:
    """Parses a MAC address of 6 bytes with colons, hyphens or dots; returns it in lower case with colons.

    Raises BadValueError, also for group addresses and zero, which no interface can have.
    """
    if not isinstance(value, str) or not _MAC.fullmatch(value):
        raise BadValueError(f"{quoted(value)} is not a MAC address of 6 bytes")
    octets = bytes.fromhex(re.sub("[:.-]", "", value))
    # The lowest bit of the first byte marks a group address.
    if octets[0] & 1 or not any(octets):
        raise BadValueError(f"{quoted(value)} is a group address or zero: use a unicast MAC address")
    return octets.hex(":")


def _parse(fields: Mapping[str, Any], key: str, parser: Callable[[Any], T]) -> T | None:
    value = fields.get(key.lower())
    try:
        return None if value is None else parser(value)
    except BadValueError as error:
        raise BadValueError(f"{key}: {error}") from error


def _requested(
    fields: Mapping[str, Any], arguments: Mapping[str, Any], key: str, parser: Callable[[Any], T], problems: list[str]
) -> T | None:
    """Returns the element's value, else that of `cni-args`, whose content another plugin may define differently."""
    if key in fields or not arguments.get(key):
        return _parse(fields, key, parser)
    try:
        return _parse(arguments, key, parser)
    except BadValueError as error:
        problems.append(f"cni-args.{error}")
        return None


def _network(fields: Mapping[str, Any]) -> tuple[str | None, str]:
    """Returns the namespace, if the element has one, and the name of the NAD."""
    qualified = _parse(fields, "name", _qualified_name)
    if qualified is None:
        raise BadValueError("name is missing")
    prefix, name = qualified
    stated = _parse(fields, "namespace", namespace_name)
    if prefix and stated and prefix != stated:
        raise BadValueError(f"name: {quoted(fields['name'])} conflicts with namespace {quoted(stated)}")
    return prefix or stated, name


def _qualified_name(value: Any) -> tuple[str | None, str]:
    """Splits `net-a` or `other-ns/net-c`; the latter is the multi-network design's own form."""
    prefix, _, name = _string(value).rpartition("/")
    return namespace_name(prefix) if prefix else None, object_name(name)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise BadValueError(f"{quoted(value)} is not a string")
    return value


def _requested_addresses(value: Any) -> tuple[Address, ...]:
    addresses = [split_cidr(item)[0] if "/" in _string(item) else parse_address(item) for item in json_list(value)]
    return tuple(parse_unicast(str(address)) for address in addresses)


def _gateways(value: Any) -> tuple[str, ...]:
    gateways = [parse_unicast(item) for item in json_list(value)]
    for family in (4, 6):
        if sum(gateway.version == family for gateway in gateways) > 1:
            raise BadValueError(f"{quoted(value)} has more than one IPv{family} gateway")
    return tuple(str(gateway) for gateway in gateways)


def _unsupported_keys(fields: Mapping[str, Any]) -> list[str]:
    requested = ((key, fields.get(key.lower())) for key in _UNSUPPORTED)
    return [f"{key}: {quoted(value)} is not supported" for key, value in requested if value]


def _unsupported_ips(ips: Sequence[Address]) -> list[str]:
    return [
        f"ips: more than one IPv{family} address ({', '.join(of_family)}) is not supported"
        for family in (4, 6)
        if len(of_family := [str(address) for address in ips if address.version == family]) > 1
    ]


def _reserved_mac(fields: Mapping[str, Any], mac: str | None) -> list[str]:
    owner = None if mac is None else reserved_for(mac)
    key = "mac" if "mac" in fields else "cni-args.mac"
    return [] if owner is None else [f"{key}: {quoted(mac)} is reserved for {owner}: use another MAC address"]

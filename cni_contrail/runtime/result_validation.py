"""Validation of results: types and addresses as in libcni, and indices of interfaces within range.

Runtimes crash on an index out of range. Keys that the specification, or this version of it, does not define are not
checked.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cni_contrail.addresses import canonical_address, canonical_cidr
from cni_contrail.runtime import versions


class _Rule(NamedTuple):
    """A predicate of a value and its description. A value that is not `required` may be absent or null."""

    holds: Callable[[Any], bool]
    description: str
    required: bool = False


_Rules = Mapping[str, _Rule]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_string_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_STRING = _Rule(lambda value: isinstance(value, str), "must be a string")
_STRINGS = _Rule(_is_string_list, "must be a list of strings")
_INTEGER = _Rule(_is_integer, "must be an integer")
_CIDR = _Rule(
    lambda value: canonical_cidr(value) is not None, "must be an address with its prefix length", required=True
)
_ADDRESS = _Rule(lambda value: value == "" or canonical_address(value) is not None, "must be an address")
_OBJECT = _Rule(lambda value: isinstance(value, dict), "must be an object")
_OBJECTS = _Rule(lambda value: isinstance(value, list), "must be a list of objects")

_DNS = {"nameservers": _STRINGS, "domain": _STRING, "search": _STRINGS, "options": _STRINGS}
_ROUTE = {"dst": _CIDR, "gw": _ADDRESS} | dict.fromkeys(("mtu", "advmss", "priority", "table", "scope"), _INTEGER)
_INTERFACE = dict.fromkeys(("name", "mac", "sandbox", "socketPath", "pciID"), _STRING) | {"mtu": _INTEGER}
_IP = {"address": _CIDR, "gateway": _ADDRESS, "interface": _INTEGER, "version": _STRING}
_FAMILY = {"ip": _CIDR, "gateway": _ADDRESS, "routes": _OBJECTS}

_WITH_LISTS = {"interfaces": _OBJECTS, "ips": _OBJECTS, "routes": _OBJECTS, "dns": _OBJECT}
_WITHOUT_LISTS = {"ip4": _OBJECT, "ip6": _OBJECT, "dns": _OBJECT}


def result_problem(result: Mapping[str, Any], version: str) -> str | None:
    """Returns the first problem of a result with its key, None if there is none."""
    problems = _list_problems if versions.at_least(version, versions.CHAINS_SINCE) else _family_problems
    return next(problems(result), None)


def _list_problems(result: Mapping[str, Any]) -> Iterator[str]:
    yield from _key_problems(result, _WITH_LISTS)
    yield from _key_problems(result.get("dns") or {}, _DNS, "dns.")
    for key, rules in {"interfaces": _INTERFACE, "ips": _IP, "routes": _ROUTE}.items():
        yield from _entry_problems(result.get(key) or (), rules, key)
    yield from _index_problems(result)


def _family_problems(result: Mapping[str, Any]) -> Iterator[str]:
    yield from _key_problems(result, _WITHOUT_LISTS)
    yield from _key_problems(result.get("dns") or {}, _DNS, "dns.")
    for key in ("ip4", "ip6"):
        if family := result.get(key):
            yield from _key_problems(family, _FAMILY, f"{key}.")
            yield from _entry_problems(family.get("routes") or (), _ROUTE, f"{key}.routes")


def _entry_problems(entries: Any, rules: _Rules, key: str) -> Iterator[str]:
    for index, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield from _key_problems(entry, rules, f"{key}[{index}].")
        else:
            yield f"{key}[{index}] {_OBJECT.description}, not {entry!r}"


def _key_problems(entry: Mapping[str, Any], rules: _Rules, prefix: str = "") -> Iterator[str]:
    for key, rule in rules.items():
        value = entry.get(key)
        if (value is not None or rule.required) and not rule.holds(value):
            yield f"{prefix}{key} {rule.description}, not {value!r}"


def _index_problems(result: Mapping[str, Any]) -> Iterator[str]:
    count = len(result.get("interfaces") or ())
    for position, entry in enumerate(result.get("ips") or ()):
        index = entry.get("interface")
        if index is not None and not 0 <= index < count:
            yield f"ips[{position}].interface must be an index of {count} interfaces, not {index}"

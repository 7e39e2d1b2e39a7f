"""What a result must look like to be read: types and addresses, as libcni has them, and indices that mean an interface.

Runtimes crash over an index that means none. Keys that the specification does not know, or not in this version, are
left alone.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from cni_contrail.addresses import canonical_address, canonical_cidr
from cni_contrail.runtime import versions


class _Rule(NamedTuple):
    """What a value must be, and how to say so. One that is not `required` may be absent or null."""

    holds: Callable[[Any], bool]
    words: str
    required: bool = False


_Rules = Mapping[str, _Rule]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


_TEXT = _Rule(lambda value: isinstance(value, str), "must be a string")
_TEXTS = _Rule(_is_texts, "must be a list of strings")
_INTEGER = _Rule(_is_integer, "must be an integer")
_CIDR = _Rule(
    lambda value: canonical_cidr(value) is not None, "must be an address with its prefix length", required=True
)
_ADDRESS = _Rule(lambda value: value == "" or canonical_address(value) is not None, "must be an address")
_OBJECT = _Rule(lambda value: isinstance(value, dict), "must be an object")
_OBJECTS = _Rule(lambda value: isinstance(value, list), "must be a list of objects")

_DNS = {"nameservers": _TEXTS, "domain": _TEXT, "search": _TEXTS, "options": _TEXTS}
_ROUTE = {"dst": _CIDR, "gw": _ADDRESS} | dict.fromkeys(("mtu", "advmss", "priority", "table", "scope"), _INTEGER)
_INTERFACE = dict.fromkeys(("name", "mac", "sandbox", "socketPath", "pciID"), _TEXT) | {"mtu": _INTEGER}
_IP = {"address": _CIDR, "gateway": _ADDRESS, "interface": _INTEGER, "version": _TEXT}
_FAMILY = {"ip": _CIDR, "gateway": _ADDRESS, "routes": _OBJECTS}

_WITH_LISTS = {"interfaces": _OBJECTS, "ips": _OBJECTS, "routes": _OBJECTS, "dns": _OBJECT}
_WITHOUT_LISTS = {"ip4": _OBJECT, "ip6": _OBJECT, "dns": _OBJECT}


def result_problem(result: Mapping[str, Any], version: str) -> str | None:
    """Says in one sentence, with the key, what is wrong first; None if nothing is."""
    problems = _of_lists if versions.at_least(version, versions.CHAINS_SINCE) else _of_families
    return next(problems(result), None)


def _of_lists(result: Mapping[str, Any]) -> Iterator[str]:
    yield from _broken(result, _WITH_LISTS)
    yield from _broken(result.get("dns") or {}, _DNS, "dns.")
    for key, rules in {"interfaces": _INTERFACE, "ips": _IP, "routes": _ROUTE}.items():
        yield from _each_broken(result.get(key) or (), rules, key)
    yield from _wrong_indices(result)


def _of_families(result: Mapping[str, Any]) -> Iterator[str]:
    yield from _broken(result, _WITHOUT_LISTS)
    yield from _broken(result.get("dns") or {}, _DNS, "dns.")
    for key in ("ip4", "ip6"):
        if family := result.get(key):
            yield from _broken(family, _FAMILY, f"{key}.")
            yield from _each_broken(family.get("routes") or (), _ROUTE, f"{key}.routes")


def _each_broken(entries: Any, rules: _Rules, key: str) -> Iterator[str]:
    for index, entry in enumerate(entries):
        if isinstance(entry, dict):
            yield from _broken(entry, rules, f"{key}[{index}].")
        else:
            yield f"{key}[{index}] {_OBJECT.words}, not {entry!r}"


def _broken(entry: Mapping[str, Any], rules: _Rules, place: str = "") -> Iterator[str]:
    for key, rule in rules.items():
        value = entry.get(key)
        if (value is not None or rule.required) and not rule.holds(value):
            yield f"{place}{key} {rule.words}, not {value!r}"


def _wrong_indices(result: Mapping[str, Any]) -> Iterator[str]:
    count = len(result.get("interfaces") or ())
    for position, entry in enumerate(result.get("ips") or ()):
        index = entry.get("interface")
        if index is not None and not 0 <= index < count:
            yield f"ips[{position}].interface is {index}, and there are {count} interfaces"

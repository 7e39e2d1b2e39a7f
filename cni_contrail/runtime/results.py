"""Conversion of ADD results between versions of the specification, as libcni converts them.

A plugin receives results in the version of its configuration, while a cached result has the version that the
configuration had at ADD. There are three forms: one address per family (0.1.0, 0.2.0), a list of addresses with their
family (0.3.0 to 0.4.0), and a list without it (1.0.0, 1.1.0). Upgrades lose nothing. Downgrades first lose the fields
of interfaces that 1.1.0 added (MTU, socket, PCI device); in the oldest form there are no interfaces, one address per
family, and only destination and gateway of routes. Keys that no version defines are kept if their parent is.
"""

from collections.abc import Mapping
from typing import Any

from cni_contrail.addresses import family_of
from cni_contrail.runtime import versions
from cni_contrail.runtime.errors import ResultError
from cni_contrail.runtime.result_validation import result_problem

Result = Mapping[str, Any]
"""The JSON object of a result (CNI specification 1.1.0, section 5, "ADD Success")."""

_OF_INTERFACES_SINCE_1_0 = ("mtu", "socketPath", "pciID")


def convert_result(result: Result, version: str) -> dict[str, Any]:
    """Returns the result in the form of another supported version. Raises ResultError."""
    stated = result.get("cniVersion") or versions.UNSTATED
    if stated not in versions.SUPPORTED:
        raise ResultError(f"result: CNI version {stated!r} is not supported")
    if problem := result_problem(result, stated):
        raise ResultError(f"result of CNI version {stated}: malformed: {problem}")
    converted = {**result}
    for form in range(_form(stated), _form(version)):
        converted = _UP[form](converted)
    for form in range(_form(stated), _form(version), -1):
        converted = _DOWN[form](converted)
    return {**converted, "cniVersion": version}


def _form(version: str) -> int:
    return sum(versions.at_least(version, floor) for floor in (versions.CHAINS_SINCE, versions.UNVERSIONED_IPS_SINCE))


def _listed(result: Result) -> dict[str, Any]:
    """Converts `ip4` and `ip6` to lists."""
    # The family is the last character of the key.
    families = [(key[-1], result[key]) for key in ("ip4", "ip6") if result.get(key)]
    ips = [
        {"version": family, "address": entry["ip"], **_present("gateway", entry.get("gateway"))}
        for family, entry in families
    ]
    routes = [route for _, entry in families for route in entry.get("routes") or ()]
    return {**_present("ips", ips), **_present("routes", routes), **_present("dns", result.get("dns"))}


def _without_families(result: Result) -> dict[str, Any]:
    return {**result, **_present("ips", [_without(entry, "version") for entry in result.get("ips") or ()])}


def _with_families(result: Result) -> dict[str, Any]:
    # Derived from the address: plugins omit or mistake the family.
    ips = [{**entry, "version": str(family_of(entry["address"]))} for entry in result.get("ips") or ()]
    interfaces = [_without(entry, *_OF_INTERFACES_SINCE_1_0) for entry in result.get("interfaces") or ()]
    return {**result, **_present("ips", ips), **_present("interfaces", interfaces)}


def _per_family(result: Result) -> dict[str, Any]:
    """Converts the first address of each family and the routes of that family to `ip4` and `ip6`."""
    families = {f"ip{family}": _one_family(result, family) for family in (4, 6)}
    present = {key: entry for key, entry in families.items() if entry}
    if not present:
        raise ResultError(f"result without addresses: not possible before CNI version {versions.CHAINS_SINCE}")
    return {**present, **_present("dns", result.get("dns"))}


def _one_family(result: Result, family: int) -> dict[str, Any]:
    first = next((entry for entry in result.get("ips") or () if family_of(entry["address"]) == family), None)
    if first is None:
        return {}
    routes = [
        {"dst": route["dst"], **_present("gw", route.get("gw"))}
        for route in result.get("routes") or ()
        if family_of(route["dst"]) == family
    ]
    gateway = _present("gateway", first.get("gateway"))
    return {"ip": first["address"], **gateway, **_present("routes", routes)}


def _without(entry: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in keys}


def _present(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}


_UP = {0: _listed, 1: _without_families}
_DOWN = {2: _with_families, 1: _per_family}

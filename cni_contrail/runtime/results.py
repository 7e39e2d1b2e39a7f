"""Results of ADD: read from a plugin's answer, and converted between versions of the specification.

A plugin is given results in the version of its configuration alone, while a cached one has the version that the
configuration had at ADD. Three shapes exist: one address per family (0.1.0, 0.2.0), a list of addresses that bear
their family (0.3.0 to 0.4.0), and the same without it (1.0.0). Conversion goes through the last, and back to the first
loses what that cannot say: interfaces, and further addresses of a family.
"""

from collections.abc import Mapping
from typing import Any

from cni_contrail.protocol.versions import SUPPORTED
from cni_contrail.runtime import versions
from cni_contrail.runtime.errors import ResultError

Result = Mapping[str, Any]
"""The JSON object of a result (CNI specification 1.0.0, section 4, "Success")."""


def convert_result(result: Result, version: str) -> dict[str, Any]:
    """Returns the result in the form of another supported version. Raises ResultError."""
    stated = result.get("cniVersion") or versions.UNSTATED
    if stated not in SUPPORTED:
        raise ResultError(f"a result of CNI version {stated!r} cannot be read")
    try:
        return _from_newest(_to_newest(result, stated), version)
    except (AttributeError, KeyError, TypeError) as error:
        raise ResultError(f"a result of CNI version {stated} is malformed: {error!r}") from error


def _to_newest(result: Result, stated: str) -> dict[str, Any]:
    if not versions.at_least(stated, versions.CHAINS_SINCE):
        return _listed(result)
    return {**result, **_present("ips", [_without(entry, "version") for entry in result.get("ips") or ()])}


def _from_newest(result: dict[str, Any], version: str) -> dict[str, Any]:
    if not versions.at_least(version, versions.CHAINS_SINCE):
        return {"cniVersion": version, **_per_family(result)}
    if not versions.at_least(version, versions.UNVERSIONED_IPS_SINCE):
        ips = [{"version": _family(entry["address"]), **entry} for entry in result.get("ips") or ()]
        result = {**result, **_present("ips", ips)}
    return {**result, "cniVersion": version}


def _listed(result: Result) -> dict[str, Any]:
    """Makes lists of `ip4` and `ip6`."""
    families = [result[key] for key in ("ip4", "ip6") if result.get(key)]
    ips = [{"address": entry["ip"], **_present("gateway", entry.get("gateway"))} for entry in families]
    routes = [route for entry in families for route in entry.get("routes") or ()]
    return {**_present("ips", ips), **_present("routes", routes), **_present("dns", result.get("dns"))}


def _per_family(result: Result) -> dict[str, Any]:
    """Makes `ip4` and `ip6` of the first address of each family and the routes of that family."""
    families = {"ip4": _one_family(result, "4"), "ip6": _one_family(result, "6")}
    present = {key: entry for key, entry in families.items() if entry}
    if not present:
        raise ResultError(f"a result without addresses cannot be told before CNI version {versions.CHAINS_SINCE}")
    return {**present, **_present("dns", result.get("dns"))}


def _one_family(result: Result, family: str) -> dict[str, Any]:
    first = next((entry for entry in result.get("ips") or () if _family(entry["address"]) == family), None)
    if first is None:
        return {}
    routes = [
        {"dst": route["dst"], **_present("gw", route.get("gw"))}
        for route in result.get("routes") or ()
        if _family(route["dst"]) == family
    ]
    gateway = _present("gateway", first.get("gateway"))
    return {"ip": first["address"], **gateway, **_present("routes", routes)}


def _family(cidr: str) -> str:
    return "6" if ":" in cidr else "4"


def _without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def _present(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}

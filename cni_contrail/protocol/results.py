"""Result documents of ADD and of errors, in the format of the configuration's CNI version.

0.1.0 and 0.2.0 have one address per family (`ip4`, `ip6`); 0.3.0 to 0.4.0 have lists, with the family in each address;
1.0.0 has lists without it; 1.1.0 adds an MTU to each interface. A chained call returns the previous result with ours
appended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from cni_contrail.addresses import family_of
from cni_contrail.errors import Code, PluginError
from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.protocol.netconf import NetworkConfig
from cni_contrail.protocol.versions import has_mtu, supports_chaining
from cni_contrail.quoting import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WITH_FAMILY = ("0.3.0", "0.3.1", "0.4.0")
_LISTS = ("interfaces", "ips", "routes")


class ResultAddress(NamedTuple):
    """An address as CIDR, and the gateway of its subnet, None without one."""

    cidr: str
    gateway: str | None


class ResultRoute(NamedTuple):
    """A route: `destination` is a CIDR, `gateway` is None for on-link."""

    destination: str
    gateway: str | None


class AttachmentResult(NamedTuple):
    """The one interface that ADD reports; `sandbox` is CNI_NETNS as the runtime passed it, `mtu` is in bytes.

    `host_name` is empty if it has no host end.
    """

    name: str
    host_name: str
    mac: str
    mtu: int
    sandbox: str
    addresses: tuple[ResultAddress, ...]
    routes: tuple[ResultRoute, ...]
    dns: Mapping[str, Any]


def previous_result(config: NetworkConfig) -> Mapping[str, Any] | None:
    """Returns the `prevResult` of a chained call, CHECK or DEL; raises `PluginError` with code 7 if it is malformed."""
    previous = config.document.get("prevResult")
    if previous is None:
        return None
    if not isinstance(previous, dict):
        raise PluginError(Code.INVALID_CONFIG, "prevResult must be an object")
    version = previous.get("cniVersion", config.version)
    if version != config.version:
        message = f"prevResult is of version {cut(str(version))}, cniVersion is {config.version}"
        raise PluginError(Code.INVALID_CONFIG, message)
    for key in _LISTS:
        if not _is_list_of_objects(previous.get(key)):
            raise PluginError(Code.INVALID_CONFIG, f"prevResult.{key} must be a list of objects")
    return previous


def success_document(config: NetworkConfig, attached: AttachmentResult) -> str:
    """Returns the result of ADD; raises `PluginError` with code 7 if the configuration's version cannot express it."""
    form = _with_lists if supports_chaining(config.version) else _without_lists
    return json.dumps({"cniVersion": config.version, **form(config, attached)})


def error_document(error: PluginError, version: str) -> str:
    """Returns the result of a failed call."""
    document: dict[str, Any] = {"cniVersion": version, "code": int(error.code), "msg": error.message}
    if error.details:
        document["details"] = error.details
    return json.dumps(document)


def _with_lists(config: NetworkConfig, attached: AttachmentResult) -> dict[str, Any]:
    previous = previous_result(config) or {}
    existing = {key: list(previous.get(key) or ()) for key in _LISTS}
    mtu = {"mtu": attached.mtu} if has_mtu(config.version) else {}
    host_ends = [{"name": attached.host_name, **mtu}] if attached.host_name else []
    sandbox_end = {"name": attached.name, "mac": attached.mac, **mtu, "sandbox": attached.sandbox}
    position = len(existing["interfaces"]) + len(host_ends)  # of the sandbox end, behind existing ones and the host end
    ips = [_address(each, position, config.version) for each in attached.addresses]
    document = {
        **previous,
        "interfaces": [*existing["interfaces"], *host_ends, sandbox_end],
        "ips": [*existing["ips"], *ips],
        "routes": [*existing["routes"], *map(_route, attached.routes)],
        "dns": attached.dns or previous.get("dns"),
    }
    # Empty keys are left out, except the two lists that every result has.
    return {key: value for key, value in document.items() if value or key in ("interfaces", "ips")}


def _address(address: ResultAddress, position: int, version: str) -> dict[str, Any]:
    document: dict[str, Any] = {"interface": position, "address": address.cidr}
    if version in _WITH_FAMILY:
        document["version"] = str(family_of(address.cidr))
    if address.gateway:
        document["gateway"] = address.gateway
    return document


def _route(route: ResultRoute) -> dict[str, str]:
    return {"dst": route.destination} if route.gateway is None else {"dst": route.destination, "gw": route.gateway}


def _without_lists(config: NetworkConfig, attached: AttachmentResult) -> dict[str, Any]:
    if config.document.get("prevResult") is not None:
        raise PluginError(Code.INVALID_CONFIG, f"prevResult needs cniVersion 0.3.0 or later, not {config.version}")
    if not attached.addresses:
        raise PluginError(
            Code.INVALID_CONFIG,
            f"cniVersion {config.version} cannot express interface {attached.name}: it has no address",
        )
    document: dict[str, Any] = {}
    for address in attached.addresses:
        # These versions have one address per family: the first counts.
        document.setdefault(f"ip{family_of(address.cidr)}", _single_address(address, attached.routes))
    return {**document, "dns": attached.dns} if attached.dns else document


def _single_address(address: ResultAddress, routes: tuple[ResultRoute, ...]) -> dict[str, Any]:
    document: dict[str, Any] = {"ip": address.cidr}
    if address.gateway:
        document["gateway"] = address.gateway
    family = family_of(address.cidr)
    of_family = [_route(route) for route in routes if family_of(route.destination) == family]
    return {**document, "routes": of_family} if of_family else document


def _is_list_of_objects(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(each, dict) for each in value))

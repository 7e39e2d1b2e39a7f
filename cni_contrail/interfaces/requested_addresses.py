"""Requested MACs and addresses: rejects an ADD that requests others than the agent allocated.

Requests reach the manager through the pod's annotation, long before the call, and the agent's answer is their result.
This module only ensures that no request is silently ignored. Sources in the order of the CNI conventions:
`runtimeConfig`, `args.cni`, CNI_ARGS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cni_contrail.addresses import canonical_address
from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.protocol.environment import Call
from cni_contrail.protocol.netconf import NetworkConfig, object_at
from cni_contrail.quoting import cut, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reject_unmet_requests(interface: ServedInterface, config: NetworkConfig, call: Call) -> None:
    """Raises `PluginError` with code 7, naming both values, if a requested MAC or address was not allocated."""
    sources = _sources(config, call)
    mac = _requested(sources, "mac")
    if mac is not None and (not isinstance(mac, str) or mac.lower().replace("-", ":") != interface.mac):
        raise PluginError(
            Code.INVALID_CONFIG, f"MAC {cut(str(mac))} is requested, but the agent allocated {interface.mac}"
        )
    allocated = [each.address.address for each in interface.addresses or ()]
    for requested in _addresses(_requested(sources, "ips")):
        if canonical_address(requested.partition("/")[0]) not in allocated:
            message = f"address {cut(requested)} is requested, but the agent allocated {', '.join(allocated) or 'none'}"
            raise PluginError(Code.INVALID_CONFIG, message)


def _sources(config: NetworkConfig, call: Call) -> Sequence[Mapping[str, Any]]:
    arguments = object_at(config.document, "args").get("cni")
    return (
        # go-cni capitalizes the keys of runtimeConfig; Go matches JSON keys case-insensitively
        {name.lower(): value for name, value in object_at(config.document, "runtimeConfig").items()},
        arguments if isinstance(arguments, dict) else {},
        {"mac": call.args.get("MAC"), "ips": call.args.get("IP")},
    )


def _requested(sources: Sequence[Mapping[str, Any]], key: str) -> Any:
    return next((source[key] for source in sources if source.get(key)), None)


def _addresses(requested: Any) -> list[str]:
    if isinstance(requested, str):
        return [word for word in requested.split(",") if word]
    if requested is None:
        return []
    if isinstance(requested, list) and all(isinstance(each, str) for each in requested):
        return requested
    raise PluginError(Code.INVALID_CONFIG, f"requested ips must be a list of addresses, not {quoted(requested)}")

"""A requested MAC or address: honoured if it is what the agent allotted, else refused.

Requests reach the manager by the pod's annotation, long before the call; the agent's answer is their outcome. Here it
is only seen to that no request is silently dropped. Sources in the order of the CNI conventions: `runtimeConfig`,
`args.cni`, CNI_ARGS.
"""

from __future__ import annotations

from collections.abc import Mapping

from cni_contrail.addresses import canonical_address
from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.served import ServedInterface
from cni_contrail.protocol.environment import Call
from cni_contrail.protocol.netconf import NetworkConfig, object_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def reject_unmet_requests(interface: ServedInterface, config: NetworkConfig, call: Call) -> None:
    """Raises `PluginError` with code 7 that says both values."""
    mac = _wish(config, call, "mac", "MAC")
    if mac is not None and (not isinstance(mac, str) or mac.lower().replace("-", ":") != interface.mac):
        raise PluginError(Code.INVALID_CONFIG, f"MAC {mac} is requested, the agent allotted {interface.mac}")
    allotted = [each.address.address for each in interface.addresses or ()]
    for wished in _addresses(_wish(config, call, "ips", "IP")):
        if canonical_address(wished.partition("/")[0]) not in allotted:
            message = f"address {wished} is requested, the agent allotted {', '.join(allotted) or 'none'}"
            raise PluginError(Code.INVALID_CONFIG, message)


def _wish(config: NetworkConfig, call: Call, key: str, variable: str) -> Any:
    arguments = object_at(config.document, "args").get("cni")
    sources: tuple[Mapping[str, Any], ...] = (
        # go-cni writes the keys of runtimeConfig with a capital, as Go reads them in any case
        {name.lower(): value for name, value in object_at(config.document, "runtimeConfig").items()},
        arguments if isinstance(arguments, dict) else {},
        {key: call.args.get(variable)},
    )
    return next((source[key] for source in sources if source.get(key)), None)


def _addresses(wish: Any) -> list[str]:
    if isinstance(wish, str):
        return [word for word in wish.split(",") if word]
    if wish is None:
        return []
    if isinstance(wish, list) and all(isinstance(each, str) for each in wish):
        return wish
    raise PluginError(Code.INVALID_CONFIG, f"requested ips must be a list of addresses, not {wish}")

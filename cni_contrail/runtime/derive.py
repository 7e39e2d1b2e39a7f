"""What one plugin of a list is given on stdin: its execution configuration (CNI specification 1.1.0, section 3).

Keys are sorted, as libcni writes them. `capabilities` are removed, as the specification says and libcni does not.
"""

import json
from collections.abc import Iterable
from typing import Any

from cni_contrail.runtime.attachment import Attachment, AttachmentKey
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration
from cni_contrail.runtime.results import Result


def execution_configuration(
    network: NetworkList, plugin: PluginConfiguration, attachment: Attachment, previous: Result | None
) -> bytes:
    """Returns the JSON for ADD, CHECK or DEL; `previous` becomes `prevResult` as it stands."""
    document = _of_network(network, plugin)
    document |= _runtime_config(plugin, attachment) | _args(plugin, attachment)
    if previous is not None:
        document["prevResult"] = previous
    return _encode(document)


def status_configuration(network: NetworkList, plugin: PluginConfiguration) -> bytes:
    """Returns the JSON for STATUS."""
    return _encode(_of_network(network, plugin))


def gc_configuration(network: NetworkList, plugin: PluginConfiguration, valid: Iterable[AttachmentKey]) -> bytes:
    """Returns the JSON for GC. What is valid is told under the specification's key and a former one, as libcni does."""
    attachments = [{"containerID": key.container_id, "ifname": key.ifname} for key in valid]
    told = dict.fromkeys(("cni.dev/valid-attachments", "cni.dev/attachments"), attachments)
    return _encode(_of_network(network, plugin) | told)


def _of_network(network: NetworkList, plugin: PluginConfiguration) -> dict[str, Any]:
    document = {key: value for key, value in plugin.document.items() if key != "capabilities"}
    return document | {"name": network.name, "cniVersion": network.version}


def _encode(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _runtime_config(plugin: PluginConfiguration, attachment: Attachment) -> dict[str, Any]:
    wanted = {key: value for key, value in attachment.capability_args.items() if key in plugin.capabilities}
    return {"runtimeConfig": wanted} if wanted else {}


def _args(plugin: PluginConfiguration, attachment: Attachment) -> dict[str, Any]:
    """Adds the generic arguments to `args`; what the configuration has there, such as `cni`, stays."""
    configured = plugin.document.get("args")
    if not attachment.args or not isinstance(configured, dict | None):
        return {}
    return {"args": {**dict(attachment.args), **(configured or {})}}

"""What one plugin of a list is given on stdin: its execution configuration (CNI specification 1.0.0, section 3)."""

import json
from typing import Any

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration
from cni_contrail.runtime.results import Result


def execution_configuration(
    network: NetworkList, plugin: PluginConfiguration, attachment: Attachment, previous: Result | None
) -> bytes:
    """Returns the JSON for one call; `previous` becomes `prevResult` as it stands.

    Keys are sorted, as libcni writes them. `capabilities` are removed, as the specification says and libcni does not.
    """
    document = {key: value for key, value in plugin.document.items() if key != "capabilities"}
    document |= {"name": network.name, "cniVersion": network.version}
    document |= _runtime_config(plugin, attachment) | _args(plugin, attachment)
    if previous is not None:
        document["prevResult"] = previous
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

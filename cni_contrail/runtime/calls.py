"""Calls of single plugins: environment and configuration in, validated outcome out.

The environment is as libcni sets it (CNI specification 1.1.0, section 2, "Parameters"). The configuration on standard
input is derived from the list (section 3): keys are sorted, as libcni writes them; `capabilities` are removed, as the
specification says and libcni does not.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cni_contrail.runtime import versions
from cni_contrail.runtime.attachment import Attachment, AttachmentKey
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration
from cni_contrail.runtime.errors import PluginCallError
from cni_contrail.runtime.execute import Completed, execute, find_plugin
from cni_contrail.runtime.plugin_response import check_success, read_versions
from cni_contrail.runtime.results import Result

_NO_VERSION_COMMAND = "unknown CNI_COMMAND: VERSION"
_BEFORE_VERSION = ("0.1.0",)
"""Versions supported by a plugin that returns the error message above."""

_DUMMY = "dummy"
"""Value of variables in VERSION: old plugins require them before they look at the command."""


class PluginCalls:
    """Calls plugins of `plugin_dirs`, with `environment` plus the CNI variables.

    A `deadline` is on the clock of `time.monotonic`. All methods raise CniRuntimeError.
    """

    def __init__(self, plugin_dirs: Sequence[str], environment: Mapping[str, str]) -> None:
        self._plugin_dirs = tuple(plugin_dirs)
        self._environment = environment

    def attachment(
        self,
        command: str,
        network: NetworkList,
        plugin: PluginConfiguration,
        attachment: Attachment,
        *,
        previous: Result | None,
        deadline: float,
    ) -> Completed:
        """Runs ADD, CHECK or DEL."""
        variables = attachment_variables(command, attachment, self._plugin_dirs)
        configuration = execution_configuration(network, plugin, attachment, previous)
        return self._call(plugin.type, variables, configuration, deadline)

    def status(self, network: NetworkList, plugin: PluginConfiguration, *, deadline: float) -> None:
        """Runs STATUS."""
        variables = _network_variables("STATUS", self._plugin_dirs)
        self._call(plugin.type, variables, _encode(_of_network(network, plugin)), deadline)

    def collect(
        self, network: NetworkList, plugin: PluginConfiguration, valid: Iterable[AttachmentKey], *, deadline: float
    ) -> None:
        """Runs GC. The valid attachments go under the specification's key and a former one, as in libcni."""
        attachments = [{"containerID": key.container_id, "ifname": key.ifname} for key in valid]
        lists = dict.fromkeys(("cni.dev/valid-attachments", "cni.dev/attachments"), attachments)
        variables = _network_variables("GC", self._plugin_dirs)
        self._call(plugin.type, variables, _encode(_of_network(network, plugin) | lists), deadline)

    def supported_versions(self, plugin: str, *, deadline: float) -> tuple[str, ...]:
        """Runs VERSION and returns the versions that the plugin supports."""
        variables = {**_network_variables("VERSION", [_DUMMY]), "CNI_NETNS": _DUMMY, "CNI_IFNAME": _DUMMY}
        configuration = _encode({"cniVersion": versions.CURRENT})
        try:
            return read_versions(plugin, self._call(plugin, variables, configuration, deadline))
        except PluginCallError as error:
            if (error.msg, error.details) != (_NO_VERSION_COMMAND, ""):
                raise
            return _BEFORE_VERSION

    def _call(self, plugin: str, variables: Mapping[str, str], configuration: bytes, deadline: float) -> Completed:
        path = find_plugin(plugin, self._plugin_dirs)
        completed = execute(path, configuration, {**self._environment, **variables}, deadline=deadline)
        check_success(plugin, variables["CNI_COMMAND"], completed)
        return completed


def attachment_variables(command: str, attachment: Attachment, plugin_dirs: Sequence[str]) -> dict[str, str]:
    """Returns the variables of ADD, CHECK and DEL."""
    return {
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": attachment.container_id,
        "CNI_NETNS": attachment.netns,
        "CNI_IFNAME": attachment.ifname,
        "CNI_ARGS": ";".join(f"{key}={value}" for key, value in attachment.args),
        "CNI_PATH": os.pathsep.join(plugin_dirs),
    }


def execution_configuration(
    network: NetworkList, plugin: PluginConfiguration, attachment: Attachment, previous: Result | None
) -> bytes:
    """Returns the JSON for ADD, CHECK and DEL; `previous` becomes `prevResult` unchanged."""
    document = _of_network(network, plugin)
    document |= _runtime_config(plugin, attachment) | _args(plugin, attachment)
    if previous is not None:
        document["prevResult"] = previous
    return _encode(document)


def _network_variables(command: str, plugin_dirs: Sequence[str]) -> dict[str, str]:
    """Variables of an attachment are set and empty: they must not leak in from the environment of this process."""
    of_attachments = dict.fromkeys(("CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS"), "")
    return {"CNI_COMMAND": command, **of_attachments, "CNI_PATH": os.pathsep.join(plugin_dirs)}


def _of_network(network: NetworkList, plugin: PluginConfiguration) -> dict[str, Any]:
    document = {key: value for key, value in plugin.document.items() if key != "capabilities"}
    return document | {"name": network.name, "cniVersion": network.version}


def _encode(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _runtime_config(plugin: PluginConfiguration, attachment: Attachment) -> dict[str, Any]:
    supported = {key: value for key, value in attachment.capability_args.items() if key in plugin.capabilities}
    return {"runtimeConfig": supported} if supported else {}


def _args(plugin: PluginConfiguration, attachment: Attachment) -> dict[str, Any]:
    """Adds the generic arguments to `args`; keys that the configuration has there, such as `cni`, take precedence."""
    configured = plugin.document.get("args")
    # `args` of another type belongs to the plugin and is passed unchanged.
    if not attachment.args or not isinstance(configured, dict | None):
        return {}
    return {"args": {**dict(attachment.args), **(configured or {})}}

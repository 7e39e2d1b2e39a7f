"""Single calls of plugins: each found, given its environment and configuration, and asked whether it succeeded."""

import json
from collections.abc import Iterable, Mapping, Sequence

from cni_contrail.runtime import versions
from cni_contrail.runtime.attachment import Attachment, AttachmentKey
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration
from cni_contrail.runtime.derive import execution_configuration, gc_configuration, status_configuration
from cni_contrail.runtime.environment import attachment_variables, network_variables, version_variables
from cni_contrail.runtime.errors import PluginCallError
from cni_contrail.runtime.execute import Completed, execute, find_plugin
from cni_contrail.runtime.plugin_response import check_success, read_versions
from cni_contrail.runtime.results import Result

_NO_VERSION_COMMAND = "unknown CNI_COMMAND: VERSION"
_BEFORE_VERSION = ("0.1.0",)
"""What a plugin supports that answers VERSION with the message above."""


class PluginCalls:
    """Calls plugins found in `plugin_dirs`, with `environment` beside the CNI variables.

    A `deadline` is in the time of `time.monotonic`. All methods raise CniRuntimeError.
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
        """ADD, CHECK or DEL."""
        variables = attachment_variables(command, attachment, self._plugin_dirs)
        configuration = execution_configuration(network, plugin, attachment, previous)
        return self._call(plugin.type, variables, configuration, deadline)

    def status(self, network: NetworkList, plugin: PluginConfiguration, *, deadline: float) -> None:
        """STATUS."""
        variables = network_variables("STATUS", self._plugin_dirs)
        self._call(plugin.type, variables, status_configuration(network, plugin), deadline)

    def collect(
        self, network: NetworkList, plugin: PluginConfiguration, valid: Iterable[AttachmentKey], *, deadline: float
    ) -> None:
        """GC."""
        variables = network_variables("GC", self._plugin_dirs)
        self._call(plugin.type, variables, gc_configuration(network, plugin, valid), deadline)

    def supported_versions(self, plugin: str, *, deadline: float) -> tuple[str, ...]:
        """VERSION."""
        asked = json.dumps({"cniVersion": versions.CURRENT}).encode()
        try:
            return read_versions(plugin, self._call(plugin, version_variables(), asked, deadline))
        except PluginCallError as error:
            if (error.msg, error.details) != (_NO_VERSION_COMMAND, ""):
                raise
            return _BEFORE_VERSION

    def _call(self, plugin: str, variables: Mapping[str, str], configuration: bytes, deadline: float) -> Completed:
        path = find_plugin(plugin, self._plugin_dirs)
        completed = execute(path, configuration, {**self._environment, **variables}, deadline=deadline)
        check_success(plugin, variables["CNI_COMMAND"], completed)
        return completed

"""Runs the plugins of a network configuration list: ADD and CHECK forward, DEL backward (CNI specification, section 3).

What the specification demands of a runtime beyond this is the caller's: make the namespace first, never run two
operations on one container at a time, follow every ADD by a DEL, a failed one too.
"""

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from cni_contrail.runtime import versions
from cni_contrail.runtime.answer import check_success, read_result
from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.cache import DEFAULT_DIR, CacheEntry, ResultCache
from cni_contrail.runtime.configuration import NetworkList, PluginConfiguration
from cni_contrail.runtime.derive import execution_configuration
from cni_contrail.runtime.errors import AttachmentError, ConfigurationError, ResultError
from cni_contrail.runtime.execute import Completed, execute, find_plugin
from cni_contrail.runtime.results import Result, convert_result

log = logging.getLogger(__name__)

OPERATION_TIMEOUT = 220.0
"""Seconds for all plugins of one operation together: below the 4 minutes that kubelet gives a runtime for a sandbox."""


class Runtime:
    """Executes plugins found in `plugin_dirs`, with `environment` (default: ours) beside the CNI variables.

    Results are cached below `cache_dir`; `timeout` (seconds) bounds a whole operation.
    """

    def __init__(
        self,
        plugin_dirs: Sequence[str],
        *,
        cache_dir: str = DEFAULT_DIR,
        environment: Mapping[str, str] | None = None,
        timeout: float = OPERATION_TIMEOUT,
    ) -> None:
        self._plugin_dirs = tuple(plugin_dirs)
        self._cache = ResultCache(cache_dir)
        self._environment = os.environ if environment is None else environment
        self._timeout = timeout

    def add(self, network: NetworkList, attachment: Attachment) -> dict[str, Any]:
        """Attaches the container and returns the last plugin's result, which is cached.

        Raises CniRuntimeError at the first plugin that fails; what the others made stays until `delete`.
        """
        _need_namespace(attachment, "ADD")
        chained = versions.at_least(network.version, versions.CHAINS_SINCE)
        deadline = time.monotonic() + self._timeout
        result: dict[str, Any] = {}
        for position, plugin in enumerate(network.plugins):
            previous = result if chained and position > 0 else None
            completed = self._call("ADD", network, plugin, attachment, previous=previous, deadline=deadline)
            result = read_result(plugin.type, network.version, completed)
        self._cache.write(network, attachment, result)
        return result

    def check(self, network: NetworkList, attachment: Attachment) -> None:
        """Returns if every plugin finds the attachment as its ADD left it, or the list disables CHECK.

        Raises CniRuntimeError at the first plugin that does not, or if nothing is known of an ADD.
        """
        if not versions.at_least(network.version, versions.CHECK_SINCE):
            raise ConfigurationError(f"network {network.name}: CNI version {network.version} knows no CHECK")
        if network.disable_check:
            return
        _need_namespace(attachment, "CHECK")
        previous = self._previous(network, attachment)
        if previous is None:
            where = self._cache.path(network.name, attachment)
            raise ResultError(f"{where}: is not there: the container was not attached, or is detached already")
        deadline = time.monotonic() + self._timeout
        for plugin in network.plugins:
            self._call("CHECK", network, plugin, attachment, previous=previous, deadline=deadline)

    def delete(self, network: NetworkList, attachment: Attachment) -> None:
        """Detaches the container: no error if it is detached, or its namespace is gone, or the cache is damaged.

        Raises CniRuntimeError at the first plugin that fails; the cached result stays for the next try.
        """
        previous = self._previous_if_readable(network, attachment)
        deadline = time.monotonic() + self._timeout
        for plugin in reversed(network.plugins):
            self._call("DEL", network, plugin, attachment, previous=previous, deadline=deadline)
        self._cache.remove(network.name, attachment)

    def cached(self, network: NetworkList, attachment: Attachment) -> CacheEntry | None:
        """Returns what the ADD of this attachment left, None if nothing. Raises ResultError if it is damaged."""
        return self._cache.read(network.name, attachment)

    def _call(
        self,
        command: str,
        network: NetworkList,
        plugin: PluginConfiguration,
        attachment: Attachment,
        *,
        previous: Result | None,
        deadline: float,
    ) -> Completed:
        path = find_plugin(plugin.type, self._plugin_dirs)
        environment = {**self._environment, **attachment.environment(command, self._plugin_dirs)}
        configuration = execution_configuration(network, plugin, attachment, previous)
        completed = execute(path, configuration, environment, deadline=deadline)
        check_success(plugin.type, command, completed)
        return completed

    def _previous(self, network: NetworkList, attachment: Attachment) -> dict[str, Any] | None:
        entry = self._cache.read(network.name, attachment)
        return None if entry is None else convert_result(entry.result, network.version)

    def _previous_if_readable(self, network: NetworkList, attachment: Attachment) -> dict[str, Any] | None:
        if not versions.at_least(network.version, versions.CHECK_SINCE):
            return None
        try:
            return self._previous(network, attachment)
        except ResultError as error:
            log.warning("DEL goes on without the result of the ADD: %s", error)
            return None


def _need_namespace(attachment: Attachment, command: str) -> None:
    if not attachment.netns:
        raise AttachmentError(f"container {attachment.container_id}: {command} needs the path of a network namespace")

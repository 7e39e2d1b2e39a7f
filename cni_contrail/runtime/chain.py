"""Runs the plugins of a network configuration list (CNI specification 1.1.0, section 3).

ADD and CHECK run the chain forward, DEL backward, for one attachment; VERSION, STATUS and GC apply to a whole network.
The other duties of a runtime are the caller's: create the namespace first, never run two operations on one container
concurrently, nor GC concurrently with any other, and follow every ADD with a DEL, even a failed one.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cni_contrail.runtime import versions
from cni_contrail.runtime.attachment import Attachment, AttachmentKey
from cni_contrail.runtime.cache import DEFAULT_DIR, CachedAttachment, CacheEntry, ResultCache
from cni_contrail.runtime.calls import PluginCalls
from cni_contrail.runtime.configuration import NetworkList
from cni_contrail.runtime.errors import AttachmentError, CniRuntimeError, NetworkConfigurationError, ResultError
from cni_contrail.runtime.plugin_response import read_result
from cni_contrail.runtime.results import convert_result

log = logging.getLogger(__name__)

OPERATION_TIMEOUT = 220.0
"""Seconds for all plugins of one operation: below the 4 minutes that kubelet allows a runtime for a sandbox."""


class Runtime:
    """Executes plugins of `plugin_dirs` with `environment` (default: that of this process) plus the CNI variables.

    Results are cached below `cache_dir`; `timeout` (seconds) limits a whole operation.
    """

    def __init__(
        self,
        plugin_dirs: Sequence[str],
        *,
        cache_dir: str = DEFAULT_DIR,
        environment: Mapping[str, str] | None = None,
        timeout: float = OPERATION_TIMEOUT,
    ) -> None:
        self._calls = PluginCalls(plugin_dirs, os.environ if environment is None else environment)
        self._cache = ResultCache(cache_dir)
        self._timeout = timeout

    def add(self, network: NetworkList, attachment: Attachment) -> dict[str, Any]:
        """Attaches the container and returns the last plugin's result, which is cached.

        Raises CniRuntimeError at the first plugin that fails; what the others created stays until `delete`.
        """
        _require_netns(attachment, "ADD")
        # Before 0.3.0 no plugin gets a previous result; in all versions the last result counts.
        chained = versions.at_least(network.version, versions.CHAINS_SINCE)
        deadline = self._deadline()
        result: dict[str, Any] = {}
        for position, plugin in enumerate(network.plugins):
            previous = result if chained and position > 0 else None
            completed = self._calls.attachment("ADD", network, plugin, attachment, previous=previous, deadline=deadline)
            result = read_result(plugin.type, network.version, completed)
        self._cache.write(network, attachment, result)
        return result

    def check(self, network: NetworkList, attachment: Attachment) -> None:
        """Runs CHECK of every plugin, unless the list disables it.

        Raises CniRuntimeError at the first plugin that reports a difference, or if no ADD is cached.
        """
        if not versions.at_least(network.version, versions.CHECK_SINCE):
            raise NetworkConfigurationError(f"network {network.name}: CNI version {network.version} has no CHECK")
        if network.disable_check:
            return
        _require_netns(attachment, "CHECK")
        previous = self._previous(network, attachment)
        if previous is None:
            where = self._cache.path(network.name, attachment)
            raise ResultError(f"{where}: not found: the container was not attached, or is already detached")
        deadline = self._deadline()
        for plugin in network.plugins:
            self._calls.attachment("CHECK", network, plugin, attachment, previous=previous, deadline=deadline)

    def delete(self, network: NetworkList, attachment: Attachment) -> None:
        """Detaches the container. Idempotent: no error if the namespace or the cached result is gone or damaged.

        Raises CniRuntimeError at the first plugin that fails; the cached result stays for a retry.
        """
        previous = self._previous_if_readable(network, attachment)
        deadline = self._deadline()
        for plugin in reversed(network.plugins):
            self._calls.attachment("DEL", network, plugin, attachment, previous=previous, deadline=deadline)
        self._cache.remove(network.name, attachment)

    def cached(self, network: NetworkList, attachment: Attachment) -> CacheEntry | None:
        """Returns the cached entry of this attachment, None if there is none. Raises ResultError if it is damaged."""
        return self._cache.read(network.name, attachment)

    def attachments(self, container_id: str | None = None) -> list[CachedAttachment]:
        """Returns the cached attachments of one container, or of all."""
        cached = self._cache.attachments()
        return [each for each in cached if container_id in (None, each.attachment.container_id)]

    def check_versions(self, network: NetworkList) -> None:
        """Checks that every plugin exists and supports the version of the network's configuration.

        Raises CniRuntimeError; NetworkConfigurationError names all plugins that do not support the version.
        """
        deadline = self._deadline()
        outdated = []
        for plugin in network.plugins:
            supported = self._calls.supported_versions(plugin.type, deadline=deadline)
            if network.version not in supported:
                outdated.append(f"plugin {plugin.type} (it supports {', '.join(supported)})")
        if outdated:
            raise NetworkConfigurationError(
                f"network {network.name}: CNI version {network.version} is not supported by {' and '.join(outdated)}"
            )

    def status(self, network: NetworkList) -> None:
        """Checks that every plugin is ready for an ADD; before CNI 1.1.0 there is no STATUS, and none is executed.

        Raises CniRuntimeError at the first plugin that is not ready; a PluginCallError has its code.
        """
        if not versions.at_least(network.version, versions.STATUS_AND_GC_SINCE):
            return
        deadline = self._deadline()
        for plugin in network.plugins:
            self._calls.status(network, plugin, deadline=deadline)

    def garbage_collect(
        self, network: NetworkList, valid_attachments: Iterable[AttachmentKey]
    ) -> tuple[AttachmentKey, ...]:
        """Detaches cached attachments of the network that are not valid, then runs GC of every plugin.

        Plugins have GC since CNI 1.1.0; a list may disable garbage collection. Returns the attachments detached. Each
        DEL and each GC has its own timeout, so a plugin that hangs does not starve the others. Raises CniRuntimeError
        with all failures after all were tried, ResultError at once if the cache cannot be read.
        """
        if network.disable_gc:
            return ()
        valid = tuple(valid_attachments)
        failures: list[tuple[str, CniRuntimeError]] = []
        detached = []
        for attachment in self._stale(network, frozenset(valid)):
            with _failures_collected(failures, f"attachment {attachment.key}: "):
                self.delete(network, attachment)
                detached.append(attachment.key)
        if versions.at_least(network.version, versions.STATUS_AND_GC_SINCE):
            for plugin in network.plugins:
                with _failures_collected(failures):
                    self._calls.collect(network, plugin, valid, deadline=self._deadline())
        if failures:
            messages = "; ".join(f"{prefix}{error}" for prefix, error in failures)
            causes = ExceptionGroup("garbage collection", [error for _, error in failures])
            raise CniRuntimeError(f"network {network.name}: garbage collection incomplete: {messages}") from causes
        return tuple(detached)

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout

    def _stale(self, network: NetworkList, valid: frozenset[AttachmentKey]) -> list[Attachment]:
        cached = [each.attachment for each in self._cache.attachments() if each.network == network.name]
        return [attachment for attachment in cached if attachment.key not in valid]

    def _previous(self, network: NetworkList, attachment: Attachment) -> dict[str, Any] | None:
        entry = self._cache.read(network.name, attachment)
        return None if entry is None else convert_result(entry.result, network.version)

    def _previous_if_readable(self, network: NetworkList, attachment: Attachment) -> dict[str, Any] | None:
        if not versions.at_least(network.version, versions.CHECK_SINCE):
            return None
        try:
            return self._previous(network, attachment)
        except ResultError as error:
            log.warning("DEL continues without the result of the ADD: %s", error)
            return None


@contextlib.contextmanager
def _failures_collected(failures: list[tuple[str, CniRuntimeError]], prefix: str = "") -> Iterator[None]:
    """Collects a failure of the body instead of raising it."""
    try:
        yield
    except CniRuntimeError as error:
        failures.append((prefix, error))


def _require_netns(attachment: Attachment, command: str) -> None:
    if not attachment.netns:
        raise AttachmentError(f"container {attachment.container_id}: {command} requires a network namespace")

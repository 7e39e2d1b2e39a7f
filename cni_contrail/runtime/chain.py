"""Runs the plugins of a network configuration list (CNI specification 1.1.0, section 3).

ADD and CHECK run forward and DEL backward for an attachment; VERSION, STATUS and GC are of a network as a whole. What
the specification demands of a runtime beyond this is the caller's: make the namespace first, never run two operations
on one container at a time, nor GC beside any other, and follow every ADD by a DEL, a failed one too.
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
        self._calls = PluginCalls(plugin_dirs, os.environ if environment is None else environment)
        self._cache = ResultCache(cache_dir)
        self._timeout = timeout

    def add(self, network: NetworkList, attachment: Attachment) -> dict[str, Any]:
        """Attaches the container and returns the last plugin's result, which is cached.

        Raises CniRuntimeError at the first plugin that fails; what the others made stays until `delete`.
        """
        _need_namespace(attachment, "ADD")
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
        """Returns if every plugin finds the attachment as its ADD left it, or the list disables CHECK.

        Raises CniRuntimeError at the first plugin that does not, or if nothing is known of an ADD.
        """
        if not versions.at_least(network.version, versions.CHECK_SINCE):
            raise NetworkConfigurationError(f"network {network.name}: CNI version {network.version} knows no CHECK")
        if network.disable_check:
            return
        _need_namespace(attachment, "CHECK")
        previous = self._previous(network, attachment)
        if previous is None:
            where = self._cache.path(network.name, attachment)
            raise ResultError(f"{where}: is not there: the container was not attached, or is detached already")
        deadline = self._deadline()
        for plugin in network.plugins:
            self._calls.attachment("CHECK", network, plugin, attachment, previous=previous, deadline=deadline)

    def delete(self, network: NetworkList, attachment: Attachment) -> None:
        """Detaches the container: no error if it is detached, or its namespace is gone, or the cache is damaged.

        Raises CniRuntimeError at the first plugin that fails; the cached result stays for the next try.
        """
        previous = self._previous_if_readable(network, attachment)
        deadline = self._deadline()
        for plugin in reversed(network.plugins):
            self._calls.attachment("DEL", network, plugin, attachment, previous=previous, deadline=deadline)
        self._cache.remove(network.name, attachment)

    def cached(self, network: NetworkList, attachment: Attachment) -> CacheEntry | None:
        """Returns what the ADD of this attachment left, None if nothing. Raises ResultError if it is damaged."""
        return self._cache.read(network.name, attachment)

    def attachments(self, container_id: str | None = None) -> list[CachedAttachment]:
        """Returns the attachments of one container, or of all, that were added and not deleted since."""
        cached = self._cache.attachments()
        return [each for each in cached if container_id in (None, each.attachment.container_id)]

    def check_versions(self, network: NetworkList) -> None:
        """Returns if every plugin is there and supports the version of the network's configuration.

        Raises CniRuntimeError; ConfigurationError names all plugins that do not support it.
        """
        deadline = self._deadline()
        wanting = []
        for plugin in network.plugins:
            supported = self._calls.supported_versions(plugin.type, deadline=deadline)
            if network.version not in supported:
                wanting.append(f"plugin {plugin.type} (it supports {', '.join(supported)})")
        if wanting:
            raise NetworkConfigurationError(
                f"network {network.name}: CNI version {network.version} is not supported by {' and '.join(wanting)}"
            )

    def status(self, network: NetworkList) -> None:
        """Returns if every plugin is ready for an ADD; before CNI 1.1.0 there is no way to ask, and none is executed.

        Raises CniRuntimeError at the first plugin that is not: a PluginError has its code.
        """
        if not versions.at_least(network.version, versions.STATUS_AND_GC_SINCE):
            return
        deadline = self._deadline()
        for plugin in network.plugins:
            self._calls.status(network, plugin, deadline=deadline)

    def garbage_collect(
        self, network: NetworkList, valid_attachments: Iterable[AttachmentKey]
    ) -> tuple[AttachmentKey, ...]:
        """Detaches what is cached for the network and not valid, then has every plugin remove what else is stale.

        Plugins are asked since CNI 1.1.0; nothing is done where the list disables GC. Returns what was detached. The
        timeout is one for each DEL and each GC, since a plugin that hangs must not cost the others their turn. Raises
        CniRuntimeError with all failures when all were asked, ResultError at once if the cache cannot be read.
        """
        if network.disable_gc:
            return ()
        valid = tuple(valid_attachments)
        failures: list[tuple[str, CniRuntimeError]] = []
        detached = []
        for attachment in self._stale(network, frozenset(valid)):
            with _noted(failures, f"attachment {attachment.key}: "):
                self.delete(network, attachment)
                detached.append(attachment.key)
        if versions.at_least(network.version, versions.STATUS_AND_GC_SINCE):
            for plugin in network.plugins:
                with _noted(failures):
                    self._calls.collect(network, plugin, valid, deadline=self._deadline())
        if failures:
            told = "; ".join(f"{what}{error}" for what, error in failures)
            causes = ExceptionGroup("garbage collection", [error for _, error in failures])
            raise CniRuntimeError(f"network {network.name}: garbage is left: {told}") from causes
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
            log.warning("DEL goes on without the result of the ADD: %s", error)
            return None


@contextlib.contextmanager
def _noted(failures: list[tuple[str, CniRuntimeError]], what: str = "") -> Iterator[None]:
    """Goes on after a failure, which is told in the end."""
    try:
        yield
    except CniRuntimeError as error:
        failures.append((what, error))


def _need_namespace(attachment: Attachment, command: str) -> None:
    if not attachment.netns:
        raise AttachmentError(f"container {attachment.container_id}: {command} needs the path of a network namespace")

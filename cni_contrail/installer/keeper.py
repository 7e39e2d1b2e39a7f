"""Keeper: installs, then looks every 2 s whether all is still there, and whether something else takes its place.

It looks instead of waiting for notifications: looking takes a few milliseconds, and cannot miss a change.
"""

from collections.abc import Callable

from cni_contrail.installer.conflict import find_conflict
from cni_contrail.installer.errors import DirectoryGoneError, InstallError
from cni_contrail.installer.installation import CONFIGURATIONS, Installation
from cni_contrail.installer.lock import installer_lock
from cni_contrail.installer.paths import CONFLIST, Paths
from cni_contrail.installer.readiness import unready_reason
from cni_contrail.installer.report import INSTALL, Report, Reporter
from cni_contrail.installer.source import Source, read_daemon_settings, read_source
from cni_contrail.installer.upstream import UpstreamConfiguration, check_take_over, find_upstream
from cni_contrail.log import Log
from cni_contrail.runtime.configuration import NetworkList

_PAUSE = 2.0  # seconds


class Keeper:
    """Keeps the installation of one node. `take_over`: also where the upstream plugin is installed, in its place."""

    def __init__(self, paths: Paths, log: Log, *, take_over: bool = False) -> None:
        self._paths = paths
        self._take_over = take_over
        self._log = log
        self._reporter = Reporter(paths.run_dir, log)
        self._installation = Installation(paths.root, log)
        self._is_locked_out = False
        self._source: Source | None = None  # the last valid one

    def run(self, is_stopped_within: Callable[[float], bool]) -> None:
        """Runs until `is_stopped_within`, which waits for so many seconds, returns True.

        Raises DirectoryGoneError, after which only a restart of the container helps, PluginError and OSError.
        """
        while True:
            self.look()
            if is_stopped_within(_PAUSE):
                return

    def look(self) -> None:
        """Installs what is missing, unless another process installs or uninstalls. Raises as `run`."""
        with installer_lock(self._paths.run_dir) as is_held:
            if is_held:
                self._reporter.report(self._report())
            elif not self._is_locked_out:
                self._log.warning("another process installs or uninstalls on this node: doing nothing until it ends")
            self._is_locked_out = not is_held

    def _report(self) -> Report:
        errors: list[str] = []
        waiting = ""
        source = self._paths.digest()
        try:
            self._source = read_source(self._paths.configuration, self._paths.plugins)
        except InstallError as error:  # the files that were valid before are kept on the node
            errors.append(str(error))
        try:
            if self._source:
                upstream = self._upstream(self._source)
                waiting = self._installation.install(self._source, self._unready_reason, upstream)
        except DirectoryGoneError:
            raise
        except InstallError as error:
            errors.append(str(error))
        return Report(INSTALL, not waiting and not errors, waiting, tuple(errors), self._conflicts(), source)

    def _upstream(self, source: Source) -> UpstreamConfiguration | None:
        """Returns the configuration of the upstream plugin if it is to be taken over. Raises InstallError if not."""
        upstream = find_upstream(self._paths.root, CONFIGURATIONS)
        if upstream:
            if not self._take_over:
                raise InstallError(
                    f"{upstream.path}: Contrail's own plugin is installed: use --take-over to replace it"
                )
            check_take_over(upstream, source.network, read_daemon_settings(self._paths.configuration))
        return upstream

    def _unready_reason(self, network: NetworkList) -> str:
        # By the shim of the image: in a take-over, another plugin is still installed.
        return unready_reason(self._paths.plugins, network, read_daemon_settings(self._paths.configuration))

    def _conflicts(self) -> tuple[str, ...]:
        if self._source and self._source.network is None:  # another plugin provides the default network
            return ()
        conflict = find_conflict(self._paths.root, CONFIGURATIONS, CONFLIST)
        return (conflict,) if conflict else ()

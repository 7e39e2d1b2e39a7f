"""Uninstaller: waits until no pod of the node has interfaces, then removes what the installer put there.

A runtime needs plugin and network configuration to stop a pod: containerd stops none without a configuration. The
daemon must run until then. A pod may start just when the last one is gone: first only the configuration is taken away,
and comes back if a moment later there is a pod. The lock is held until the end of the process, so that no installer
puts anything back.
"""

from collections.abc import Callable

from cni_contrail.errors import DamagedRecordError
from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.installation import Installation
from cni_contrail.installer.lock import installer_lock
from cni_contrail.installer.paths import Paths
from cni_contrail.installer.report import UNINSTALL, Report, Reporter
from cni_contrail.log import Log
from cni_contrail.quoting import listed
from cni_contrail.state.attachments import Attachments

_PAUSE = 1.0  # seconds


class Uninstaller:
    """Uninstalls from one node."""

    def __init__(self, paths: Paths, log: Log) -> None:
        self._run_dir = paths.run_dir
        self._reporter = Reporter(paths.run_dir, log)
        self._installation = Installation(paths.root, log)
        self._attachments = Attachments(paths.state_dir, log)

    def run(self, is_stopped_within: Callable[[float], bool]) -> None:
        """Uninstalls, and holds the lock, until `is_stopped_within`, which waits for so many seconds, returns True.

        Raises PluginError and OSError.
        """
        while True:
            with installer_lock(self._run_dir) as is_held:
                if is_held:
                    self._uninstall(is_stopped_within)
                    return
            if is_stopped_within(_PAUSE):
                return

    def _uninstall(self, is_stopped_within: Callable[[float], bool]) -> None:
        report = Report(UNINSTALL)
        while True:
            if not report.done:
                report = self._try()
                self._reporter.report(report)
            if is_stopped_within(_PAUSE):
                return

    def _try(self) -> Report:
        try:
            if pods := self._pods():
                self._installation.put_list_back()
                return Report(UNINSTALL, waiting=f"pods with interfaces: {listed(pods)}")
            if self._installation.withdraw_list():
                return Report(UNINSTALL, waiting="pods that were about to start")
            self._installation.remove()
        except InstallError as error:
            return Report(UNINSTALL, errors=(str(error),))
        return Report(UNINSTALL, done=True)

    def _pods(self) -> list[str]:
        containers = (each for each in self._attachments.containers() if self._attachments.ifnames(each))
        return sorted({self._pod(each) for each in containers})

    def _pod(self, container: str) -> str:
        """Returns the name of a container's virtual machine, which has that of its pod, or the container's ID."""
        try:
            return next((each.vm_name for each in self._attachments.of_container(container) if each.vm_name), container)
        except DamagedRecordError:
            return container

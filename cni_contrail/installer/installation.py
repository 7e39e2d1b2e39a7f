"""All that is installed on a node, in the order in which it is put there and removed."""

from collections.abc import Callable
from typing import Protocol

from cni_contrail.installer.installed_file import InstalledFile
from cni_contrail.installer.loopback import Loopback
from cni_contrail.installer.source import CONFLIST, PLUGIN, SETTINGS, Source
from cni_contrail.log import Log
from cni_contrail.runtime.configuration import NetworkList

PLUGINS = "/opt/cni/bin"
CONFIGURATIONS = "/etc/cni/net.d"
_SETTINGS = "/etc/contrail"


class _Installed(Protocol):
    @property
    def path(self) -> str: ...

    def put(self, content: bytes) -> bool: ...

    def remove(self) -> bool: ...

    def remove_part(self) -> None: ...


class Installation:
    """The files on the node whose root directory is mounted at `root`."""

    def __init__(self, root: str, log: Log) -> None:
        self._plugin = InstalledFile(root, f"{PLUGINS}/{PLUGIN}", 0o755)
        self._loopback = Loopback(root, PLUGINS)
        self._settings = InstalledFile(root, f"{_SETTINGS}/{SETTINGS}", 0o600)
        self._conflist = InstalledFile(root, f"{CONFIGURATIONS}/{CONFLIST}", 0o600)
        self._all: tuple[_Installed, ...] = (self._conflist, self._settings, self._loopback, self._plugin)
        self._log = log
        self._put: dict[str, bytes] = {}  # by path, what this process has put there

    def install(self, source: Source, unready_reason: Callable[[NetworkList], str]) -> str:
        """Puts all files, the network configuration list last and only if the node is ready.

        Returns what the list waits for, empty if all is there. Raises InstallError at the first file that fails.
        """
        if not self._put:
            for each in self._all:
                each.remove_part()  # of a process that was killed
        self._keep(self._plugin, source.plugin)
        self._keep(self._loopback, source.loopback)
        self._keep(self._settings, source.settings)
        if source.network is None:
            self._put.pop(self._conflist.path, None)
            if self._conflist.remove():
                self._log.info(f"removed {self._conflist.path}: the configuration no longer has it")
            return ""
        content = source.network.source
        if self._put.get(self._conflist.path) != content and not self._conflist.has(content):
            reason = unready_reason(source.network)
            if reason:
                return reason
        self._keep(self._conflist, content)
        return ""

    def remove(self) -> None:
        """Removes all that is installed, the list first, so that no pod comes without a plugin. Raises InstallError."""
        for each in self._all:
            if each.remove():
                self._log.info(f"removed {each.path}")

    def _keep(self, file: _Installed, content: bytes) -> None:
        if file.put(content):
            is_back = self._put.get(file.path) == content
            self._log.info(f"put {file.path} back: it was removed or changed" if is_back else f"installed {file.path}")
        self._put[file.path] = content

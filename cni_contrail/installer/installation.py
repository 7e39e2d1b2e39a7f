"""All that is installed on a node, in the order in which it is put there and removed."""

from collections.abc import Callable
from typing import Protocol

from cni_contrail.installer.installed_file import InstalledFile
from cni_contrail.installer.loopback import Loopback
from cni_contrail.installer.paths import CONFLIST, PLUGIN, SETTINGS
from cni_contrail.installer.replaced_plugin import ReplacedPlugin
from cni_contrail.installer.source import Source
from cni_contrail.installer.upstream import UpstreamConfiguration
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
        self._replaced = ReplacedPlugin(root, f"{PLUGINS}/{PLUGIN}", CONFIGURATIONS)
        self._all: tuple[_Installed, ...] = (self._conflist, self._settings, self._loopback, self._plugin)
        self._log = log
        self._put: dict[str, bytes] = {}  # by path, what this process has put there

    def install(
        self,
        source: Source,
        unready_reason: Callable[[NetworkList], str],
        upstream: UpstreamConfiguration | None = None,
    ) -> str:
        """Puts all files, the network configuration list last and only if the node is ready.

        The `upstream` plugin, if any, serves the node until then: it is replaced last, and nothing is put before.
        Returns what the list waits for, empty if all is there. Raises InstallError at the first file that fails.
        """
        if upstream and source.network:
            if reason := unready_reason(source.network):
                return reason
            self._replaced.keep_executable()
        if not self._put:
            for each in self._all:
                each.remove_part()  # of a process that was killed
            self._replaced.keep_first_executable()  # it may be there without its configuration
            self._conflist.put_back()  # an uninstaller was killed
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
        if upstream:
            self._set_aside(upstream)
        return ""

    def withdraw_list(self) -> bool:
        """Takes the list away, so that no further pod comes; returns whether it was there. Raises InstallError.

        It stays where a configuration that was replaced is to be put back: that node always has one, and its plugin
        deletes pods of ours, too.
        """
        return not self._replaced.has_configurations and self._conflist.withdraw()

    def put_list_back(self) -> None:
        """Puts the list back if it was withdrawn. Raises InstallError."""
        if self._conflist.put_back():
            self._log.info(f"put {self._conflist.path} back")

    def remove(self) -> None:
        """Removes all that is installed, the list first, so that no pod comes without a plugin. Raises InstallError.

        What was replaced is put back: its configuration before the list goes, since our plugin knows both.
        """
        for path in self._replaced.restore_configurations():
            self._log.info(f"put back {path}")
        for each in self._all:
            if each is self._plugin and self._replaced.restore_executable():
                each.remove_part()  # of a process that was killed
                self._log.info(f"left {each.path}: it is that of Contrail's own plugin, or of another one")
            elif each.remove():
                self._log.info(f"removed {each.path}")

    def _set_aside(self, upstream: UpstreamConfiguration) -> None:
        for path in (*upstream.unread, upstream.path):  # after a kill, the one that counts is still the first
            self._replaced.set_aside(path)
        notes = [f"not read by it: {path}" for path in upstream.unread]
        notes += [f"no counterpart: {note}" for note in upstream.notes]
        self._log.info("; ".join([f"took over {upstream.path}", *notes]))

    def _keep(self, file: _Installed, content: bytes) -> None:
        if file.put(content):
            is_back = self._put.get(file.path) == content
            self._log.info(f"put {file.path} back: it was removed or changed" if is_back else f"installed {file.path}")
        self._put[file.path] = content

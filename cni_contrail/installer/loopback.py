"""The plugin `loopback`, for nodes that have none: containerd before 2.0 fails each pod without it.

Ours is a file of another name and a link to it, so that everybody can tell it from one of the node: another installer
may replace the link at any time, and that one then stays.
"""

import contextlib
import os

from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.installed_file import InstalledFile

_NAME = "contrail-loopback"


class Loopback:
    """The plugin in `directory` of the node whose root directory is mounted at `root`."""

    def __init__(self, root: str, directory: str) -> None:
        self.path = f"{directory}/loopback"
        self._link = root + self.path
        self._file = InstalledFile(root, f"{directory}/{_NAME}", 0o755)

    def put(self, content: bytes) -> bool:
        """Installs it unless the node has one; returns whether anything was written. Raises InstallError."""
        is_ours = self._is_ours()
        if os.path.lexists(self._link) and not is_ours:
            return False
        is_written = self._file.put(content)
        if is_ours:
            return is_written
        try:
            with contextlib.suppress(FileExistsError):  # another installer was faster
                os.symlink(_NAME, self._link)
        except OSError as error:
            raise InstallError(f"{self.path}: cannot write: {error.strerror}") from error
        return True

    def remove(self) -> bool:
        """Removes it if it is ours; returns whether it was. Raises InstallError."""
        is_ours = self._is_ours()
        if is_ours:
            try:
                os.unlink(self._link)
            except OSError as error:
                raise InstallError(f"{self.path}: cannot remove: {error.strerror}") from error
        return self._file.remove() or is_ours

    def remove_part(self) -> None:
        """Removes what a killed process left. Raises InstallError."""
        self._file.remove_part()

    def _is_ours(self) -> bool:
        try:
            return os.readlink(self._link) == _NAME
        except OSError:
            return False

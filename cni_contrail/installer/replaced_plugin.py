"""Executable and network configuration of the upstream plugin, kept beside ours and put back by the uninstaller.

The executable has the name of ours. Both are linked and renamed, never written: bytes, owner, mode and times stay, and
a kill leaves them under one of their names. Runtimes and the upstream plugin read no file with the ending `.upstream`.
"""

import contextlib
import os
import stat
from collections.abc import Iterator

from cni_contrail.installer.errors import InstallError
from cni_contrail.installer.upstream import ENDINGS

ASIDE = ".upstream"

_PART = ".part"
_IN_OURS = b"CONTRAIL_CNI_SOCKET"  # the variable that every release of the shim reads


class ReplacedPlugin:
    """The executable at `path`, and configurations in `directory`, of the node whose root is mounted at `root`."""

    def __init__(self, root: str, path: str, directory: str) -> None:
        self._root = root
        self._path = path
        self._directory = directory

    @property
    def has_configurations(self) -> bool:
        """Whether configurations were set aside."""
        return bool(self._configurations())

    def keep_executable(self) -> None:
        """Gives the executable a second name, unless it is ours. The newest one counts. Raises InstallError."""
        file = self._root + self._path
        part = file + ASIDE + _PART
        with _explained(f"{self._path}: cannot be kept as {self._path}{ASIDE}"):
            if not os.path.lexists(file) or _is_ours(file):
                return
            _unlink(part)
            os.link(file, part, follow_symlinks=False)
            os.rename(part, file + ASIDE)
            _unlink(part)  # renaming it to another name of the same file did nothing

    def keep_first_executable(self) -> None:
        """Keeps the executable as `keep_executable` does, unless one is kept already. Raises InstallError."""
        if not os.path.lexists(self._root + self._path + ASIDE):
            self.keep_executable()

    def set_aside(self, path: str) -> None:
        """Renames a configuration. Raises InstallError."""
        with _explained(f"{path}: cannot be renamed"):
            os.rename(self._root + path, self._root + path + ASIDE)

    def restore_configurations(self) -> list[str]:
        """Renames the configurations back, unless newer ones are there; returns their paths. Raises InstallError."""
        paths = [f"{self._directory}/{name.removesuffix(ASIDE)}" for name in self._configurations()]
        for path in paths:
            self._restore(path, has_newer=os.path.lexists(self._root + path))
        return paths

    def restore_executable(self) -> bool:
        """Renames the executable back, unless a newer one is there. Raises InstallError.

        Returns whether the executable is not ours now: it was kept, or never replaced, or put back by a process before.
        """
        file = self._root + self._path
        with _explained(f"{self._path}: cannot be restored"):
            _unlink(file + ASIDE + _PART)
            is_there = os.path.lexists(file) and not _is_ours(file)
        is_kept = os.path.lexists(file + ASIDE)
        if is_kept:
            self._restore(self._path, has_newer=is_there)
        return is_kept or is_there

    def _configurations(self) -> list[str]:
        """Returns the names of the configurations that were set aside."""
        endings = tuple(ending + ASIDE for ending in ENDINGS)
        try:
            return sorted(name for name in os.listdir(self._root + self._directory) if name.endswith(endings))
        except OSError:  # reported by who removes files there
            return []

    def _restore(self, path: str, *, has_newer: bool) -> None:
        aside = self._root + path + ASIDE
        with _explained(f"{path}{ASIDE}: cannot be renamed to {path}"):
            if has_newer:
                os.unlink(aside)
            else:
                os.rename(aside, self._root + path)


def _is_ours(file: str) -> bool:
    if not stat.S_ISREG(os.lstat(file).st_mode):  # to open a pipe would block
        return False
    with open(file, "rb") as executable:
        return _IN_OURS in executable.read()


def _unlink(file: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(file)


@contextlib.contextmanager
def _explained(problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InstallError(f"{problem}: {error.strerror}") from error

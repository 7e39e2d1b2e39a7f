"""A file that the installer owns on the node: there as a whole or not at all, also after a kill or a power failure."""

import contextlib
import os
import stat

from cni_contrail.installer.errors import DirectoryGoneError, InstallError

_PART, _WITHDRAWN = ".part", ".withdrawn"  # runtimes do not read files with these endings


class InstalledFile:
    """A file at `path` on the node whose root directory is mounted at `root`."""

    def __init__(self, root: str, path: str, mode: int) -> None:
        self.path = path
        self._file = root + path
        self._mode = mode

    def put(self, content: bytes) -> bool:
        """Writes the content unless it is there; returns whether it was written. Idempotent.

        A process that has the old file open, or runs it, keeps it. Raises InstallError; the old file is there then.
        """
        if self.has(content):
            return False
        try:
            self._write_part(content)
            os.rename(self._file + _PART, self._file)
            self._sync_directory()
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(self._file + _PART)
            raise InstallError(f"{self.path}: cannot write: {error.strerror}") from error
        return True

    def has(self, content: bytes) -> bool:
        """Returns whether it is a regular file with this content and its mode."""
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                is_file = stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) == self._mode
                return is_file and status.st_size == len(content) and file.read() == content
        except OSError:
            return False

    def withdraw(self) -> bool:
        """Takes the file away so that it can be put back; returns whether it was there. Raises InstallError."""
        return self._rename(self._file, self._file + _WITHDRAWN)

    def put_back(self) -> bool:
        """Puts back the file if it was withdrawn; returns whether it was. Raises InstallError."""
        return self._rename(self._file + _WITHDRAWN, self._file)

    def remove(self) -> bool:
        """Removes the file and what a killed process left of it; returns whether it was there. Raises InstallError."""
        self.remove_part()
        was_there = self._unlink(self._file)
        return self._unlink(self._file + _WITHDRAWN) or was_there

    def remove_part(self) -> None:
        """Removes what a killed process left of the file. Raises InstallError."""
        self._unlink(self._file + _PART)

    def _rename(self, file: str, name: str) -> bool:
        try:
            os.rename(file, name)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InstallError(f"{self.path}: cannot be renamed: {error.strerror}") from error
        return True

    def _unlink(self, file: str) -> bool:
        try:
            os.unlink(file)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise InstallError(f"{self.path}: cannot remove: {error.strerror}") from error
        return True

    def _write_part(self, content: bytes) -> None:
        descriptor = self._open_part()
        try:
            while content:  # write(2) may write less than all, as on a disk that is almost full
                content = content[os.write(descriptor, content) :]
            os.fchmod(descriptor, self._mode)
            os.fsync(descriptor)  # before the rename: after a power failure the file must not be empty
        finally:
            os.close(descriptor)

    def _open_part(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._file + _PART, flags, 0o600)
        except FileNotFoundError as error:  # later, it would mean that another program has removed the file
            raise DirectoryGoneError(f"{os.path.dirname(self.path)}: the directory does not exist") from error

    def _sync_directory(self) -> None:
        descriptor = os.open(os.path.dirname(self._file), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""Scan of the folder: every `*.yaml`, `*.yml` and `*.json` below it, each with a signature that shows any change.

Full listings are compared, and kernel events only say when to scan, so a rename, bulk copy or lost event is always
noticed. Hidden files and folders (leading dot) belong to editors and tools and are skipped. Symbolic links to files are
followed, those to folders are not, so a mounted ConfigMap, which consists of both, is read once.
"""

import os
import stat
from typing import NamedTuple

from manager.manifests.errors import FileChangedError, InvalidManifestError

MAX_FILE_SIZE = 8 * 1024 * 1024
"""Limit for the size of a manifest, in bytes."""

_SUFFIXES = (".yaml", ".yml", ".json")


class Signature(NamedTuple):
    """State of a file on disk. No tool can set the change time, so it shows a rewrite of equal size and time."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Snapshot(NamedTuple):
    """The files with their signatures, and paths that cannot be read with the reason.

    Paths are relative to the folder, which itself is `.`.
    """

    files: dict[str, Signature]
    unreadable: dict[str, str]

    def may_hide(self, path: str) -> bool:
        """Whether the file may exist although it is not listed: it, or a folder above it, cannot be read."""
        if not self.unreadable:
            return False
        parts = path.split("/")
        return "." in self.unreadable or any(
            "/".join(parts[:end]) in self.unreadable for end in range(1, len(parts) + 1)
        )


def scan(folder: str) -> Snapshot:
    """Lists the folder. Never raises: what cannot be read is part of the snapshot."""
    snapshot = Snapshot({}, {})
    # Iterative, since folders may be nested deeper than the recursion limit.
    pending = [""]
    while pending:
        pending += _scan_folder(folder, pending.pop(), snapshot)
    return snapshot


def read(folder: str, path: str, expected: Signature) -> bytes:
    """Returns the content of the file in exactly that state.

    Raises FileChangedError if the file changed, InvalidManifestError if it is too large, OSError.
    """
    with open(os.path.join(folder, path), "rb", opener=_open_nonblocking) as file:
        if _signature(os.fstat(file.fileno())) != expected:
            raise FileChangedError(f"{path} changed before it was read")
        # One byte more shows that a file is too large without reading all of it.
        content = file.read(MAX_FILE_SIZE + 1)
        if _signature(os.fstat(file.fileno())) != expected:
            raise FileChangedError(f"{path} changed while it was read")
    if len(content) > MAX_FILE_SIZE:
        raise InvalidManifestError(f"larger than {MAX_FILE_SIZE} bytes")
    return content


def _scan_folder(folder: str, below: str, snapshot: Snapshot) -> list[str]:
    """Adds the files of one folder to the snapshot and returns the folders in it."""
    folders = []
    try:
        with os.scandir(os.path.join(folder, below)) as entries:
            for entry in entries:
                path = f"{below}/{entry.name}" if below else entry.name
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
                elif entry.name.endswith(_SUFFIXES):
                    _add_file(entry, path, snapshot)
    except OSError as error:
        if not below or not isinstance(error, FileNotFoundError):  # a subfolder may be removed during the scan
            snapshot.unreadable[below or "."] = _reason(error)
    return folders


def _add_file(entry: os.DirEntry[str], path: str, snapshot: Snapshot) -> None:
    try:
        status = entry.stat()
    except OSError as error:
        # A dangling link is a problem.
        if entry.is_symlink() or not isinstance(error, FileNotFoundError):  # a file may be removed during the scan
            snapshot.unreadable[path] = _reason(error)
        return
    if stat.S_ISREG(status.st_mode):
        snapshot.files[path] = _signature(status)
    elif not stat.S_ISDIR(status.st_mode):
        snapshot.unreadable[path] = "not a regular file"


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _open_nonblocking(path: str, flags: int) -> int:
    """A pipe that replaced the file since the scan would block open() forever."""
    return os.open(path, flags | os.O_NONBLOCK)

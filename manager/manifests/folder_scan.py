"""What is in the folder: every `*.yaml`, `*.yml` and `*.json` below it, each with a signature that shows any change.

Full listings are compared, and events of the kernel only say when: no rename, bulk copy or lost event can make the two
differ for long. Hidden files and folders (a leading dot) are editors' and tools' own and not read; symbolic links to
files are followed, those to folders are not. So a mounted ConfigMap, which is made of both, is read once.
"""

import os
import stat
from typing import NamedTuple

from manager.manifests.errors import FileChangedError, InvalidManifestError

MAX_FILE_SIZE = 8 * 1024 * 1024
"""Bytes; the largest manifest that is read."""

_SUFFIXES = (".yaml", ".yml", ".json")


class Signature(NamedTuple):
    """A file's state on disk. The change time, which no tool can set, tells a rewrite of equal size and time."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class Snapshot(NamedTuple):
    """The files with their signatures, and what could not be looked at with the reason; paths are below the folder.

    The folder itself has the path `.`.
    """

    files: dict[str, Signature]
    unreadable: dict[str, str]

    def hides(self, path: str) -> bool:
        """Whether the file may be there all the same: it, or a folder on the way to it, could not be looked at."""
        if not self.unreadable:
            return False
        parts = path.split("/")
        return "." in self.unreadable or any(
            "/".join(parts[:end]) in self.unreadable for end in range(1, len(parts) + 1)
        )


def scan(folder: str) -> Snapshot:
    """Lists the folder. Never raises for what is in it, nor for the folder itself."""
    snapshot = Snapshot({}, {})
    unseen = [""]
    while unseen:
        unseen += _scan_one(folder, unseen.pop(), snapshot)
    return snapshot


def read(folder: str, path: str, expected: Signature) -> bytes:
    """The file's content, in exactly that state.

    Raises UnsettledError if the state is another one, UnusableError if the file is too large, OSError.
    """
    with open(os.path.join(folder, path), "rb", opener=_open_without_waiting) as file:
        if _signature(os.fstat(file.fileno())) != expected:
            raise FileChangedError(f"{path} changed before it was read")
        content = file.read(MAX_FILE_SIZE + 1)
        if _signature(os.fstat(file.fileno())) != expected:
            raise FileChangedError(f"{path} changed while it was read")
    if len(content) > MAX_FILE_SIZE:
        raise InvalidManifestError(f"is larger than {MAX_FILE_SIZE} bytes")
    return content


def _scan_one(folder: str, below: str, snapshot: Snapshot) -> list[str]:
    """Takes the files of one folder into the snapshot, and returns the folders in it."""
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
                    _look_at(entry, path, snapshot)
    except OSError as error:
        if not below or not isinstance(error, FileNotFoundError):  # a subfolder may go while others are listed
            snapshot.unreadable[below or "."] = _reason(error)
    return folders


def _look_at(entry: os.DirEntry[str], path: str, snapshot: Snapshot) -> None:
    try:
        status = entry.stat()
    except OSError as error:
        if entry.is_symlink() or not isinstance(error, FileNotFoundError):  # a file may go just the same
            snapshot.unreadable[path] = _reason(error)
        return
    if stat.S_ISREG(status.st_mode):
        snapshot.files[path] = _signature(status)
    elif not stat.S_ISDIR(status.st_mode):
        snapshot.unreadable[path] = "is no regular file"


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _open_without_waiting(path: str, flags: int) -> int:
    """A pipe that took the place of a file must not hold up everything else."""
    return os.open(path, flags | os.O_NONBLOCK)

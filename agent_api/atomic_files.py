"""Atomic changes of several small files: each file is written to a staging directory and renamed into place.

The staging directory is on the same file system and private: Contrail's CNI plugin reads every file in a
VirtualMachine's directory and fails on one that it cannot parse.

There is no fsync: sandboxes do not survive a power failure either, and a killed process loses nothing that was renamed.
A change is all or nothing while the process lives. A kill during a change, which has not been acknowledged then, may
leave it half done.

Blocking and not thread-safe: the caller makes one change at a time, in a thread unless the disk is known to be fast.
"""

import contextlib
import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from agent_api.errors import StorageError

log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_FILE_SIZE = 64 * 1024  # bytes; more than any valid port or gateway needs
_MAX_DEPTH = 3  # of JSON: the keys of a gateway's subnets


@contextlib.contextmanager
def storage_errors() -> Iterator[None]:
    """Translates an OSError into a StorageError with file and cause."""
    try:
        yield
    except OSError as error:
        path = error.filename2 or error.filename  # of a rename, what it should become
        raise StorageError(f"port file {path}: {error.strerror}") from error


class AtomicFileWriter:
    """Writes files through the directory `staging`, which it owns; file names within a change must differ."""

    def __init__(self, staging: str) -> None:
        self._staging = staging

    def clear(self) -> None:
        """Creates the staging directory and removes what a killed process left in it. Raises OSError."""
        os.makedirs(self._staging, exist_ok=True)
        for entry in list_directory(self._staging):
            os.unlink(entry.path)

    def apply(self, *, write: Mapping[str, bytes], remove: Sequence[str]) -> None:
        """Writes and removes files, all or nothing; creates missing directories and removes empty ones.

        Writes precede removals, so that a kill in between leaves too much and never too little. Removing a missing file
        is not an error. Raises OSError; nothing was changed then.
        """
        # A port may be rewritten at the path of the port that it replaces: the write wins.
        superfluous = [path for path in remove if path not in write]
        with contextlib.ExitStack() as undo:
            # The undo steps run in reverse order, so directories are removed after the files in them.
            for directory in {os.path.dirname(path) for path in write}:
                undo.callback(remove_if_empty, directory)
                _create_directory(directory)
            for path, content in write.items():
                self._stage(path, content, undo)
            changed = [*write, *superfluous]
            for path in changed:
                if path != changed[-1]:  # nothing follows the last step that could fail and require its undo
                    self._restore_on_undo(path, undo)
                if path in write:
                    os.replace(self._staging_path(path), path)
                else:
                    _discard(path)  # Contrail's clients remove their file before they send DELETE
            undo.pop_all()
        for path in superfluous:
            remove_if_empty(os.path.dirname(path))

    def _stage(self, path: str, content: bytes, undo: contextlib.ExitStack) -> None:
        staged = self._staging_path(path)
        undo.callback(_discard, staged)  # registered first: a failed write may leave a partial file
        try:
            write_file(staged, content)
        except FileNotFoundError:  # somebody removed the staging directory
            os.makedirs(self._staging)
            write_file(staged, content)

    def _restore_on_undo(self, path: str, undo: contextlib.ExitStack) -> None:
        """Registers an undo step that restores the present content, or absence, of the file."""
        try:
            undo.callback(self._restore, path, _read(path))
        except FileNotFoundError:
            undo.callback(_discard, path)

    def _restore(self, path: str, content: bytes) -> None:
        write_file(self._staging_path(path), content)
        os.replace(self._staging_path(path), path)

    def _staging_path(self, path: str) -> str:
        return os.path.join(self._staging, os.path.basename(path))


def list_directory(directory: str) -> list["os.DirEntry[str]"]:
    """Returns the entries of a directory. Raises OSError."""
    with os.scandir(directory) as entries:
        return list(entries)


def regular_files(directory: str) -> list["os.DirEntry[str]"]:
    """Returns the regular files of a directory. Raises OSError."""
    return [entry for entry in list_directory(directory) if entry.is_file(follow_symlinks=False)]


def read_json(path: str, decoder: msgspec.json.Decoder[T]) -> T | str:
    """Returns the decoded content of a JSON file, or a text with the reason if it is invalid. Raises OSError."""
    content = _read(path)
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error) if content else "empty"


def encode_file(struct: msgspec.Struct) -> bytes:
    """Returns the file content of a struct: JSON indented by tabs, as the vrouter agent writes it."""
    content = msgspec.json.format(msgspec.json.encode(struct), indent=1)
    for depth in range(_MAX_DEPTH, 0, -1):  # a line break cannot occur inside a JSON string
        content = content.replace(b"\n" + b" " * depth, b"\n" + b"\t" * depth)
    return content


def quarantine(path: str, destination: str, *, reason: str) -> None:
    """Moves an invalid file out of the directories that clients read, and logs it. Raises OSError."""
    os.makedirs(os.path.dirname(destination), exist_ok=True)
    os.replace(path, destination)
    log.error("%s: invalid file (%s); moved to %s", path, reason, destination)


def remove_if_empty(directory: str) -> None:
    """Removes a directory if it is empty; a missing directory is not an error."""
    # rmdir itself checks for emptiness, so a file that appears meanwhile is never lost.
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def make_searchable(directory: str) -> bool:
    """Lets the owner open files in a directory; returns whether it exists. Contrail's CNI plugin creates it as 0644.

    That mode stops root if it has no further capabilities, as in the agent's container.
    """
    try:
        mode = stat.S_IMODE(os.stat(directory).st_mode)
        if not mode & stat.S_IXUSR:
            os.chmod(directory, mode | stat.S_IXUSR)
    except FileNotFoundError:
        return False
    except OSError:  # reported by who opens a file
        pass
    return True


def _create_directory(path: str) -> None:
    """Creates a directory if it is missing; needs a single system call if its parent exists."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)


def _read(path: str) -> bytes:
    # Unbuffered: one read is enough for any valid file, and a larger one is cut and then fails to decode.
    with open(path, "rb", buffering=0) as file:
        return file.read(_MAX_FILE_SIZE)


def write_file(path: str, content: bytes) -> None:
    """Writes a file, not atomically. Raises OSError, which names the file; a part of the content may be there then."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            while content:  # write(2) may write less than all, for example on a full disk
                content = content[os.write(descriptor, content) :]
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error  # the error of a failed write names no file


def _discard(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)

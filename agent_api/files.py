"""Changes small files, all or nothing: each is written elsewhere and renamed into its place, so whole or not there.

Elsewhere is a folder of the same file system that nobody else looks at: upstream's plugin reads whatever is in a
machine's folder, and gives up at what it cannot read.

There is no fsync: after a power cut no sandbox is left either, and a kill of the process loses nothing that was
renamed. A change is all or nothing while the process lives; a kill in the middle of one, which nobody acknowledged,
may leave a part of it.

Blocking, and not thread-safe: whoever keeps files makes one change at a time, in a thread unless the disk is known to
be quick.
"""

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from agent_api.errors import PortsError

log = logging.getLogger(__name__)

T = TypeVar("T")

_LONGEST_FILE = 64 * 1024  # more than the longest values of a port or a gateway take
_DEEPEST = 3  # of a gateway: the keys of its subnets


@contextlib.contextmanager
def as_ports_error() -> Iterator[None]:
    """Raises PortsError, with file and cause, for the operating system's errors."""
    try:
        yield
    except OSError as error:
        raise PortsError(f"port file {error.filename}: {error.strerror}") from error


class FileChanges:
    """Changes files by way of the folder `unfinished`, which is its own; no two files of a change have one name."""

    def __init__(self, unfinished: str) -> None:
        self._unfinished = unfinished

    def clear(self) -> None:
        """Makes the folder, and removes what a kill left in it. Raises OSError."""
        os.makedirs(self._unfinished, exist_ok=True)
        for entry in entries(self._unfinished):
            os.unlink(entry.path)

    def make(self, *, write: Mapping[str, bytes], remove: Sequence[str]) -> None:
        """Writes and removes files, all or nothing, with their directories where they are new or get empty.

        What is written is in its place before anything is removed, so that a kill in between leaves too much and never
        too little. To remove one that is not there is no error. Raises OSError, and nothing was changed then.
        """
        superfluous = [path for path in remove if path not in write]
        with contextlib.ExitStack() as undo:
            for directory in {os.path.dirname(path) for path in write}:
                undo.callback(remove_if_empty, directory)
                _make_directory(directory)
            for path, content in write.items():
                self._stage(path, content, undo)
            changed = [*write, *superfluous]
            for path in changed:
                if path != changed[-1]:  # whose failure changes nothing
                    self._remember(path, undo)
                if path in write:
                    os.replace(self._staged(path), path)
                else:
                    _discard(path)  # upstream's clients remove their files before they tell us
            undo.pop_all()
        for path in superfluous:
            remove_if_empty(os.path.dirname(path))

    def _stage(self, path: str, content: bytes, undo: contextlib.ExitStack) -> None:
        staged = self._staged(path)
        undo.callback(_discard, staged)
        try:
            _write(staged, content)
        except FileNotFoundError:  # somebody removed our folder
            os.makedirs(self._unfinished)
            _write(staged, content)

    def _remember(self, path: str, undo: contextlib.ExitStack) -> None:
        """Undone, the file is as it is now."""
        try:
            undo.callback(self._restore, path, _read(path))
        except FileNotFoundError:
            undo.callback(_discard, path)

    def _restore(self, path: str, content: bytes) -> None:
        _write(self._staged(path), content)
        os.replace(self._staged(path), path)

    def _staged(self, path: str) -> str:
        return os.path.join(self._unfinished, os.path.basename(path))


def entries(directory: str) -> list["os.DirEntry[str]"]:
    """Returns what is in a directory. Raises OSError."""
    with os.scandir(directory) as found:
        return list(found)


def regular_files(directory: str) -> list["os.DirEntry[str]"]:
    """Returns the regular files of a directory. Raises OSError."""
    return [entry for entry in entries(directory) if entry.is_file(follow_symlinks=False)]


def read_as(path: str, decoder: msgspec.json.Decoder[T]) -> T | str:
    """Returns what a file of JSON holds, or why it holds no such thing. Raises OSError."""
    content = _read(path)
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error) if content else "empty"


def as_file(struct: msgspec.Struct) -> bytes:
    """Returns the contents of a struct's file: JSON, indented by tabs."""
    content = msgspec.json.format(msgspec.json.encode(struct), indent=1)
    for depth in range(_DEEPEST, 0, -1):  # no text of JSON holds a line break
        content = content.replace(b"\n" + b" " * depth, b"\n" + b"\t" * depth)
    return content


def set_aside(path: str, place: str, *, reason: str) -> None:
    """Moves a file that nobody can read to its place among the corrupt ones, and says so. Raises OSError."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    os.replace(path, place)
    log.error("%s is not as it should be (%s), set aside as %s", path, reason, place)


def remove_if_empty(directory: str) -> None:
    """Removes a directory; one that holds something, or is gone already, is left: it does no harm."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def _make_directory(path: str) -> None:
    """Makes a directory unless it is there, by one call of the system where its parent is."""
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    except FileNotFoundError:
        os.makedirs(path, exist_ok=True)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(_LONGEST_FILE)


def _write(path: str, content: bytes) -> None:
    try:
        with open(path, "wb", buffering=0) as file:
            while content:
                content = content[file.write(content) :]
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error  # a failed write does not name its file


def _discard(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)

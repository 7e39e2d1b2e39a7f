"""Small files that appear whole or not at all, and that only root reads."""

import contextlib
import os

from cni_contrail.errors import Code, PluginError

_LONGEST_NAME = 128
_DIGEST = 65  # characters, with the point before it
_PART = ".part"


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file by atomic rename, with the directories above it; raises `PluginError` with code 5.

    Two processes may not write the same path at the same time: callers hold a lock.
    """
    part = path + _PART
    try:
        _write(part, data)
        os.rename(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise PluginError(Code.IO_FAILURE, f"{path} cannot be written: {error.strerror}") from error


def _write(path: str, data: bytes) -> None:
    descriptor = _create(path)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        create_private_directory(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def create_private_directory(path: str) -> None:
    """Makes a directory, and those above it, for root alone; what is there already stays as it is. Raises `OSError`."""
    with contextlib.suppress(FileExistsError):
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            create_private_directory(os.path.dirname(path))
            os.mkdir(path, 0o700)


def unwritable_reason(directory: str) -> str | None:
    """Says what keeps files from being written below a directory, which may not be there yet; None if nothing does."""
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        return f"{directory} is no directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"{directory} is read-only"
    room = os.statvfs(directory)
    # 0 in all is how file systems say that they do not count
    if (room.f_blocks and not room.f_bfree) or (room.f_files and not room.f_ffree):
        return f"{directory} is full"
    return None


def read_if_exists(path: str) -> bytes | None:
    """Reads a file, None if there is none; raises `PluginError` with code 5."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path} cannot be read: {error.strerror}") from error


def list_names(directory: str) -> list[str]:
    """Names in a directory, sorted; none if it is not there; raises `PluginError` with code 5."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{directory} cannot be read: {error.strerror}") from error


def remove_partial_files(directory: str) -> None:
    """Removes what killed calls had begun to write; the caller holds the lock of those that write here."""
    for name in list_names(directory):
        if name.endswith(_PART):
            remove_if_exists(os.path.join(directory, name))


def remove_if_exists(path: str) -> None:
    """Removes a file; one that is gone is no error; raises `PluginError` with code 5."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{path} cannot be removed: {error.strerror}") from error


def file_name(identifier: str) -> str:
    """A file's name for a container ID of any length; the name of such a name is itself."""
    if len(identifier) <= _LONGEST_NAME or len(identifier) == _LONGEST_NAME + _DIGEST:
        return identifier
    from hashlib import sha256

    return f"{identifier[:_LONGEST_NAME]}.{sha256(identifier.encode()).hexdigest()}"

"""Atomic writes of small files that only root can read, and file access with errors as `PluginError`."""

import contextlib
import os
import time

from cni_contrail.errors import Code, PluginError
from cni_contrail.quoting import cut

_MAX_NAME = 128
_DIGEST = 65  # characters, with the dot before it
_PART = ".part"
_CREATE_ATTEMPTS = 16
_SEARCH_BY_OWNER = 0o100


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file by atomic rename and creates missing parent directories; raises `PluginError` with code 5.

    Not synced to disk: the directory is on tmpfs. Callers hold a lock, since two processes must not write the same path
    at the same time.
    """
    part = path + _PART
    try:
        _write(part, data)
        os.rename(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot write: {error.strerror}") from error


def create_atomically(path: str, data: bytes) -> None:
    """Creates a file with its whole content, unless it exists already; needs no lock. Raises `PluginError` with code 5.

    Missing parent directories are created, and may be removed by others at any time while they are empty.
    """
    part = f"{path}.{os.urandom(4).hex()}{_PART}"
    try:
        _create_despite_removals(part, path, data)
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot write: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)


def _create_despite_removals(part: str, path: str, data: bytes) -> None:
    for attempt in range(1, _CREATE_ATTEMPTS + 1):
        try:
            _write(part, data)
            with contextlib.suppress(FileExistsError):
                os.link(part, path)
        except FileNotFoundError:
            # Others removed the directory after it was created here, or the partial file: it looks old to them if the
            # system time is set ahead just now.
            if attempt == _CREATE_ATTEMPTS:
                raise
        else:
            return


def _write(path: str, data: bytes) -> None:
    descriptor = _create(path)
    try:
        while data:  # write(2) may write less than all, as on a disk that is almost full
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC  # truncates what a killed call left
    try:
        return os.open(path, flags, 0o600)  # tried first: in most cases the directory exists
    except FileNotFoundError:
        create_private_directory(os.path.dirname(path))
        return os.open(path, flags, 0o600)


def create_private_directory(path: str) -> bool:
    """Creates a directory and its parents with mode 0700; existing ones are unchanged. Raises `OSError`.

    Returns whether it created the directory.
    """
    try:
        try:
            os.mkdir(path, 0o700)
        except FileNotFoundError:
            create_private_directory(os.path.dirname(path))
            os.mkdir(path, 0o700)
    except FileExistsError:
        return False
    return True


def unwritable_reason(directory: str) -> str | None:
    """Returns why files cannot be written below a directory, which need not exist yet; None if they can."""
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory):
        return f"{directory} is not a directory"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"{directory} is read-only"
    space = os.statvfs(directory)
    # A total of 0 means that the file system does not count blocks or files.
    if (space.f_blocks and not space.f_bfree) or (space.f_files and not space.f_ffree):
        return f"{directory} is full"
    return None


def read_if_exists(path: str) -> bytes | None:
    """Returns the content of a file, None if it does not exist; raises `PluginError` with code 5."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot read: {error.strerror}") from error


def list_names(directory: str) -> list[str]:
    """Returns the names in a directory, sorted; empty if it does not exist; raises `PluginError` with code 5."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(directory)}: cannot read: {error.strerror}") from error


def make_searchable(directory: str) -> None:
    """Lets the owner open files in an existing directory that the upstream plugin created: its mode there is 0644.

    Root without further capabilities, as in the daemon's container, is stopped by that.
    """
    with contextlib.suppress(OSError):  # reported by who opens a file
        mode = os.stat(directory).st_mode & 0o7777
        if not mode & _SEARCH_BY_OWNER:
            os.chmod(directory, mode | _SEARCH_BY_OWNER)


def remove_partial_files(directory: str) -> None:
    """Removes files that killed calls did not finish writing; the caller holds the lock of the writers."""
    for name in list_names(directory):
        if name.endswith(_PART):
            remove_if_exists(os.path.join(directory, name))


def remove_old_partial_files(directory: str, age: float) -> None:
    """As `remove_partial_files`, where writers hold no lock: removes those that are older than `age` seconds."""
    for name in list_names(directory):
        path = os.path.join(directory, name)
        with contextlib.suppress(FileNotFoundError):
            if name.endswith(_PART) and os.stat(path).st_mtime < time.time() - age:
                remove_if_exists(path)


def remove_if_exists(path: str) -> None:
    """Removes a file if it exists; raises `PluginError` with code 5."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PluginError(Code.IO_FAILURE, f"{cut(path)}: cannot remove: {error.strerror}") from error


def file_name(identifier: str) -> str:
    """Returns a file name for a container ID of any length; idempotent: the result is returned unchanged."""
    if len(identifier) <= _MAX_NAME or len(identifier) == _MAX_NAME + _DIGEST:
        return identifier
    from hashlib import sha256

    return f"{identifier[:_MAX_NAME]}.{sha256(identifier.encode()).hexdigest()}"

"""Keeps ports as files: `<root>/vm/<vm-name>/<vmi-uuid>`, where upstream's agent and its tools look for them.

A file is written beside its place and renamed into it, so it is whole or not there. There is no fsync: after a power
cut no sandbox is left either, and a kill of the process loses nothing that was renamed. A change is all or nothing
while the process lives; a kill in the middle of one, which nobody acknowledged, may leave a part of it.

A file that is no port (upstream is known for zero-length ones) is set aside below `<root>/corrupt`, out of the sight
of upstream's plugin, which gives up at a file that it cannot read.

Not thread-safe and blocking: `table` calls it in a thread, one change at a time.
"""

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator, Sequence

import msgspec

from agent_api.errors import PortsError
from agent_api.ports.port import Port, encode_port, is_uuid, wrong_value

log = logging.getLogger(__name__)

_LONGEST_FILE = 64 * 1024
_LONGEST_NAME = 255  # bytes that a file name may have
_UNFINISHED = ".unfinished"

_decoder = msgspec.json.Decoder(Port)


class PortDirectory:
    """The files of all ports below one directory. All methods raise PortsError, and nothing was changed then."""

    def __init__(self, root: str) -> None:
        self._machines = os.path.join(root, "vm")
        self._corrupt = os.path.join(root, "corrupt")

    def load(self) -> list[Port]:
        """Returns the ports that are there; of one that is there twice, the file written last counts.

        Removes what a kill left unfinished, and sets files aside that are no ports.
        """
        with _as_ports_error():
            os.makedirs(self._machines, exist_ok=True)
            found = sorted(self._load_all(), key=lambda item: item[0])
            newest = {port.vmi_uuid: port for _, port in found}
            for _, port in found:
                if newest[port.vmi_uuid] is not port:
                    self._remove_older(port, newest[port.vmi_uuid])
            return list(newest.values())

    def change(self, *, write: Sequence[Port] = (), remove: Sequence[Port] = ()) -> None:
        """Writes and removes files, all or nothing; to remove one that is not there is no error."""
        with _as_ports_error(), contextlib.ExitStack() as undo:
            staged = [self._stage(port, undo) for port in write]
            for port in remove:
                _remove(self._path(port), undo)
            for path in staged:
                _put_in_place(path, undo)
            undo.pop_all()
        for port in remove:
            _remove_if_empty(os.path.dirname(self._path(port)))

    def _path(self, port: Port) -> str:
        return os.path.join(self._machines, _directory_name(port.vm_name), port.vmi_uuid)

    def _stage(self, port: Port, undo: contextlib.ExitStack) -> str:
        path = self._path(port)
        directory = os.path.dirname(path)
        undo.callback(_remove_if_empty, directory)
        os.makedirs(directory, exist_ok=True)
        undo.callback(_discard, path + _UNFINISHED)
        _write(path + _UNFINISHED, encode_port(port))
        return path

    def _load_all(self) -> Iterator[tuple[int, Port]]:
        """Yields each port with the moment of its writing (nanoseconds)."""
        for machine in _entries(self._machines):
            if machine.is_dir(follow_symlinks=False):
                for entry in _entries(machine.path):
                    yield from self._load_one(machine.name, entry)
                _remove_if_empty(machine.path)

    def _load_one(self, directory: str, entry: "os.DirEntry[str]") -> Iterator[tuple[int, Port]]:
        if entry.name.endswith(_UNFINISHED):
            os.unlink(entry.path)
        elif is_uuid(entry.name) and entry.is_file(follow_symlinks=False):
            content = _read(entry.path)
            port = _decode(content)
            if isinstance(port, str):
                self._set_aside(directory, entry, reason=port)
            elif self._path(port) != entry.path:
                self._set_aside(directory, entry, reason=f"belongs to {port.vm_name}/{port.vmi_uuid}")
            else:
                yield entry.stat().st_mtime_ns, port

    def _set_aside(self, directory: str, entry: "os.DirEntry[str]", *, reason: str) -> None:
        aside = os.path.join(self._corrupt, directory)
        os.makedirs(aside, exist_ok=True)
        os.replace(entry.path, os.path.join(aside, f"{entry.name}.corrupt"))
        log.error("%s is no port file (%s), set aside in %s", entry.path, reason, aside)

    def _remove_older(self, older: Port, newest: Port) -> None:
        path = self._path(older)
        log.warning("%s is out of date, %s took its place; removed", path, self._path(newest))
        os.unlink(path)
        _remove_if_empty(os.path.dirname(path))


@contextlib.contextmanager
def _as_ports_error() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PortsError(f"port file {error.filename}: {error.strerror}") from error


def _directory_name(vm_name: str) -> str:
    """The machine's name; one that no file can bear is cut and told apart by its hash."""
    name = vm_name.encode()
    if len(name) <= _LONGEST_NAME:
        return vm_name
    digest = hashlib.sha256(name).hexdigest()[:32]
    return f"{name[: _LONGEST_NAME - 33].decode(errors='ignore')}~{digest}"


def _decode(content: bytes) -> Port | str:
    """Returns the port, or why there is none."""
    try:
        port = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return str(error) if content else "empty"
    return wrong_value(port) or port


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    with os.scandir(directory) as entries:
        return list(entries)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_LONGEST_FILE)


def _write(path: str, content: bytes) -> None:
    try:
        with open(path, "wb") as file:
            file.write(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error  # a failed write does not name its file


def _put_in_place(path: str, undo: contextlib.ExitStack) -> None:
    """Renames the unfinished file; undone, its place is as it was before."""
    before = None
    with contextlib.suppress(FileNotFoundError):
        before = _read(path)
    os.replace(path + _UNFINISHED, path)
    if before is None:
        undo.callback(_discard, path)
    else:
        undo.callback(_restore, path, before)


def _remove(path: str, undo: contextlib.ExitStack) -> None:
    with contextlib.suppress(FileNotFoundError):  # upstream's plugin removes its files itself before it tells us
        before = _read(path)
        os.unlink(path)
        undo.callback(_restore, path, before)


def _restore(path: str, content: bytes) -> None:
    _write(path + _UNFINISHED, content)
    os.replace(path + _UNFINISHED, path)


def _discard(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _remove_if_empty(directory: str) -> None:
    """Removes a directory; one that holds something, or is gone already, is left: it does no harm."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)

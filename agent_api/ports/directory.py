"""Persists ports as files, at the paths and in the formats of the Contrail vrouter agent and its tools.

A container port is `<root>/vm/<vm-name>/<vmi-uuid>`, an instance port `<root>/<vmi-uuid>`. An invalid file is moved
below `<root>/corrupt` (the vrouter agent is known to leave zero-length ones), because Contrail's CNI plugin fails on a
file that it cannot parse.

A file that a plugin wrote before its POST stays as it is if it has the same values, like at the Contrail vrouter agent.
A file of the agent has the key `author`, by which plugins know that it may stem from anybody who can post; after the
upstream plugin is replaced, its own files are all that is known of the pods that it attached.

Not thread-safe and blocking: `table` makes one change at a time, in a thread unless the disk is known to be fast.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from agent_api.atomic_files import (
    AtomicFileWriter,
    encode_file,
    list_directory,
    make_searchable,
    quarantine,
    read_json,
    regular_files,
    remove_if_empty,
    storage_errors,
)
from agent_api.field_types import is_uuid, validation_error
from agent_api.ports.container import ContainerPort
from agent_api.ports.instance import InstancePort, instance_validation_error, normalize
from agent_api.ports.port import Port
from agent_api.spare_directories import SpareDirectories

log = logging.getLogger(__name__)

_NAME_MAX = 255  # bytes of a file name

_Read = Callable[[str], Port | str]
"""Returns the port in a file, or a text with the reason if the file is invalid."""


class PortDirectory:
    """The files of all ports below `root`. All methods raise StorageError; nothing was changed then."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._vm_root = os.path.join(root, "vm")
        self._files = AtomicFileWriter(os.path.join(root, "unfinished", "ports"))
        # Apart from these files: a release that knows no spare directories removes only files from their directory.
        self._spares = SpareDirectories(os.path.join(root, "unfinished", "vm"))

    def load(self) -> list[Port]:
        """Returns all persisted ports and moves invalid files away.

        If an interface has two files, the one written last is used and the other is removed.
        """
        with storage_errors():
            os.makedirs(self._vm_root, exist_ok=True)
            self._files.clear()
            # An interface has two files if a kill interrupted its move, since writes precede removals.
            found = sorted(self._load_all(), key=lambda item: item[0])
            newest = {port.vmi_uuid: port for _, port in found}
            for _, port in found:
                if newest[port.vmi_uuid] is not port:
                    self._remove_older(port, newest[port.vmi_uuid])
        self._prepare_first()
        return list(newest.values())

    def change(self, *, write: Sequence[Port] = (), remove: Sequence[Port] = ()) -> None:
        """Writes and removes files, all or nothing; removing a missing file is not an error."""
        writing, removing = {self.path(port): port for port in write}, [self.path(port) for port in remove]
        folders = {os.path.dirname(path) for path in (*writing, *removing)}
        with storage_errors():
            if not removing and not any(map(make_searchable, folders)) and self._publish(writing):
                return
            existing = {folder for folder in folders if make_searchable(folder)}
            self._files.apply(
                write={
                    path: encode_file(port)
                    for path, port in writing.items()
                    if os.path.dirname(path) not in existing or not _is_written_by_plugin(path, port)
                },
                remove=removing,
            )

    def prepare(self) -> bool:
        """Does a part of what later changes need not wait for; returns whether there is more to do."""
        with storage_errors():
            return self._spares.make_one()

    def path(self, port: Port) -> str:
        """Returns the path of a port's file."""
        if isinstance(port, InstancePort):
            return os.path.join(self._root, port.vmi_uuid)
        return os.path.join(self._vm_root, _directory_name(port.vm_name), port.vmi_uuid)

    def _prepare_first(self) -> None:
        """Logs if that fails: changes work without, and a full disk must not keep the agent from unplugging ports."""
        try:
            self._spares.clear()
        except OSError as error:
            log.warning("directories of port files cannot be made ahead: %s: %s", error.filename, error.strerror)

    def _publish(self, writing: Mapping[str, Port]) -> bool:
        """Writes the first ports of one VirtualMachine; returns False if that is not what they are, or not possible."""
        folders = {os.path.dirname(path) for path in writing}
        files = {os.path.basename(path): encode_file(port) for path, port in writing.items()}
        return len(folders) == 1 and self._spares.publish(folders.pop(), files)

    def _load_all(self) -> Iterator[tuple[int, Port]]:
        """Yields each port with the modification time of its file in nanoseconds."""
        yield from self._load_from(self._root, _read_instance)
        for directory in list_directory(self._vm_root):
            if directory.is_dir(follow_symlinks=False):
                yield from self._load_from(directory.path, _read_container)
                remove_if_empty(directory.path)

    def _load_from(self, directory: str, read: _Read) -> Iterator[tuple[int, Port]]:
        make_searchable(directory)
        for file in regular_files(directory):
            if is_uuid(file.name):  # other files belong to tools or editors and are left alone
                port = read(file.path)
                if isinstance(port, str):
                    self._quarantine(file.path, reason=port)
                elif self.path(port) != file.path:
                    self._quarantine(file.path, reason=f"belongs to {os.path.relpath(self.path(port), self._root)}")
                else:
                    yield file.stat().st_mtime_ns, port

    def _quarantine(self, path: str, *, reason: str) -> None:
        # Without "vm/", so that the quarantined file keeps the name of its VirtualMachine.
        relative = os.path.relpath(path, self._root).removeprefix("vm/")
        quarantine(path, os.path.join(self._root, "corrupt", f"{relative}.corrupt"), reason=reason)

    def _remove_older(self, older: Port, newest: Port) -> None:
        path = self.path(older)
        log.warning("%s: removed, replaced by the newer %s", path, self.path(newest))
        os.unlink(path)
        if isinstance(older, ContainerPort):
            remove_if_empty(os.path.dirname(path))


_containers = msgspec.json.Decoder(ContainerPort)
_documents = msgspec.json.Decoder(dict[str, Any])
_instances = msgspec.json.Decoder(InstancePort)


def _is_written_by_plugin(path: str, port: Port) -> bool:
    if not isinstance(port, ContainerPort):
        return False
    try:
        document = read_json(path, _documents)
    except OSError:
        return False  # there is no file, or writing it fails with the reason
    if isinstance(document, str) or "author" in document:
        return False
    return all(document.get(key, "") == value for key, value in _values(port).items())


def _read_container(path: str) -> ContainerPort | str:
    port = read_json(path, _containers)
    return port if isinstance(port, str) else validation_error(port) or port


def _read_instance(path: str) -> InstancePort | str:
    port = read_json(path, _instances)
    return port if isinstance(port, str) else instance_validation_error(port) or normalize(port)


def _values(port: ContainerPort) -> dict[str, str]:
    """Returns the values of a port by their keys in its file, without those that the agent adds."""
    values: dict[str, str] = msgspec.to_builtins(port)
    return {key: value for key, value in values.items() if key not in ("author", "time")}


def _directory_name(vm_name: str) -> str:
    """Returns the VirtualMachine's name; one too long for a file name is truncated and gets a hash as suffix."""
    name = vm_name.encode()
    if len(name) <= _NAME_MAX:
        return vm_name
    # Truncation may cut a multi-byte character, which is then dropped; the hash keeps the names distinct.
    digest = hashlib.sha256(name).hexdigest()[:32]
    return f"{name[: _NAME_MAX - 33].decode(errors='ignore')}~{digest}"

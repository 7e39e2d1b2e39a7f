"""Port files of the Contrail vrouter agent, `<config-dir>/<VM name>/<interface uuid>`: the body of `POST /vm`.

The agent reads them when it restarts. This plugin writes them only for the Contrail vrouter agent, which writes them
too late and never removes them. Pods that the original Contrail plugin attached are known only by them. Two containers
of one pod have the same files, so writers lock the VM's directory.

Agents write files in the same directories for ports that somebody posted to them, possibly without authentication.
Such files have the key `author`, which no plugin writes, and are ignored here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.state.files import (
    list_names,
    make_searchable,
    read_if_exists,
    remove_if_exists,
    write_atomically,
)
from cni_contrail.state.lock import LockedDirectory

_LOCK_TIMEOUT = 3.0  # seconds; the lock is held only briefly

_MAX_NAME = 255  # characters, which are ASCII, of a file name


class PortFile(NamedTuple):
    """One file: its path and those of its values that are strings."""

    path: str
    port: Mapping[str, str]


class PortFiles:
    """The port files of one VM, and of its predecessors of the same name."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def write(self, port: Mapping[str, str]) -> None:
        """Writes the file of a port, replacing that of an earlier container; raises `PluginError` with code 5."""
        with self._locked():
            write_atomically(os.path.join(self.directory, port["vmi-uuid"]), json.dumps(port, indent="\t").encode())

    def all(self) -> list[PortFile]:
        """Returns all files of ports that a plugin wrote; other files are ignored."""
        if len(os.path.basename(self.directory)) > _MAX_NAME:
            return []  # names of pods may be longer than those of directories
        make_searchable(self.directory)
        paths = [os.path.join(self.directory, name) for name in list_names(self.directory)]
        return [PortFile(path, port) for path in paths if (port := _read_port(path)) is not None]

    def of_container(self, container_id: str) -> list[PortFile]:
        """Returns the files whose last writer is the container: a newer container of the pod replaces them."""
        return [file for file in self.all() if file.port.get("vm-id") == container_id]

    def of_vm(self, vm_uuid: str) -> list[PortFile]:
        """Returns the files of a VM: a recreated pod has the name of its predecessor, and another uuid."""
        return [file for file in self.all() if file.port.get("vm-uuid") == vm_uuid]

    def remove(self, files: Iterable[PortFile]) -> None:
        """Removes files, partial files of killed calls, and the directory if it is empty then."""
        if os.path.isdir(self.directory):
            with self._locked():
                for file in files:
                    remove_if_exists(file.path)

    def _locked(self) -> LockedDirectory:
        make_searchable(self.directory)
        return LockedDirectory(self.directory, _LOCK_TIMEOUT)


def _read_port(path: str) -> Mapping[str, str] | None:
    if os.path.isdir(path):
        return None
    try:
        document = json.loads(read_if_exists(path) or b"")
    except (ValueError, RecursionError):
        return None  # the original plugin does not write atomically and may have been killed
    if not isinstance(document, dict) or "author" in document:
        return None
    return {key: value for key, value in document.items() if isinstance(value, str)}

"""Upstream's file per port, `<config-dir>/<VM name>/<interface uuid>`: what `POST /vm` said, for the agent's restart.

Written by this plugin only towards a stock agent, which does not do it in time and never removes them. Pods that
upstream's plugin made are known by them alone. Two containers of one pod have the same files, so the VM's directory is
locked by who changes it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping

from cni_contrail.link.named_tuple import NamedTuple
from cni_contrail.state.files import (
    list_names,
    read_if_exists,
    remove_if_exists,
    remove_partial_files,
    write_atomically,
)
from cni_contrail.state.lock import locked_directory

_LOCK_TIMEOUT = 3.0  # seconds; it is held for a moment only


class PortFile(NamedTuple):
    """One file: its path and the keys of the port in it."""

    path: str
    port: Mapping[str, str]


class PortFiles:
    """The files of one VM."""

    def __init__(self, config_dir: str, vm_name: str) -> None:
        self.directory = os.path.join(config_dir, vm_name)

    def write(self, port: Mapping[str, str]) -> None:
        """Writes the file of a port over that of an earlier container; raises `PluginError` with code 5."""
        with self._locked():
            write_atomically(os.path.join(self.directory, port["vmi-uuid"]), json.dumps(port, indent="\t").encode())

    def all(self) -> list[PortFile]:
        """All files that are ports; others are not ours to judge."""
        paths = [os.path.join(self.directory, name) for name in list_names(self.directory)]
        return [PortFile(path, port) for path in paths if (port := _read_port(path)) is not None]

    def of_container(self, container_id: str) -> list[PortFile]:
        """Those that the container made last: a newer container of the pod writes its own over them."""
        return [file for file in self.all() if file.port.get("vm-id") == container_id]

    def remove(self, files: Iterable[PortFile]) -> None:
        """Removes files, what killed calls began to write, and the directory if nothing is left in it."""
        if os.path.isdir(self.directory):
            with self._locked():
                for file in files:
                    remove_if_exists(file.path)

    def is_empty(self) -> bool:
        """Whether no attachment of the VM is left on this node."""
        return not list_names(self.directory)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with locked_directory(self.directory, _LOCK_TIMEOUT):
            remove_partial_files(self.directory)
            yield


def _read_port(path: str) -> Mapping[str, str] | None:
    if os.path.isdir(path):
        return None
    try:
        document = json.loads(read_if_exists(path) or b"")
    except (ValueError, RecursionError):
        return None  # upstream's plugin was killed while it wrote
    return document if isinstance(document, dict) else None

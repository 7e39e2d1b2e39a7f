"""Keeps ports as files in upstream's places and formats, where its agent and its tools look for them.

A container's port is `<root>/vm/<vm-name>/<vmi-uuid>`, an instance's `<root>/<vmi-uuid>`. A file that is no port
(upstream is known for zero-length ones) is set aside below `<root>/corrupt`, out of the sight of upstream's plugin,
which gives up at a file that it cannot read.

Not thread-safe and blocking: `table` makes one change at a time, in a thread unless the disk is known to be quick.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence

import msgspec

from agent_api.files import (
    FileChanges,
    as_file,
    as_ports_error,
    entries,
    read_as,
    regular_files,
    remove_if_empty,
    set_aside,
)
from agent_api.ports.container import ContainerPort
from agent_api.ports.instance import InstancePort, in_kept_form, wrong_instance
from agent_api.ports.port import Port
from agent_api.values import is_uuid, wrong_value

log = logging.getLogger(__name__)

_LONGEST_NAME = 255  # bytes that a file name may have

_Read = Callable[[str], Port | str]
"""Returns the port that the file at a path holds, or why it holds none."""


class PortDirectory:
    """The files of all ports below one directory. All methods raise PortsError, and nothing was changed then."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._machines = os.path.join(root, "vm")
        self._changes = FileChanges(os.path.join(root, "unfinished", "ports"))

    def load(self) -> list[Port]:
        """Returns the ports that are there; of one that is there twice, the file written last counts.

        Sets files aside that are no ports.
        """
        with as_ports_error():
            os.makedirs(self._machines, exist_ok=True)
            self._changes.clear()
            found = sorted(self._load_all(), key=lambda item: item[0])
            newest = {port.vmi_uuid: port for _, port in found}
            for _, port in found:
                if newest[port.vmi_uuid] is not port:
                    self._remove_older(port, newest[port.vmi_uuid])
            return list(newest.values())

    def change(self, *, write: Sequence[Port] = (), remove: Sequence[Port] = ()) -> None:
        """Writes and removes files, all or nothing; to remove one that is not there is no error."""
        with as_ports_error():
            self._changes.make(
                write={self.path(port): as_file(port) for port in write}, remove=[self.path(port) for port in remove]
            )

    def path(self, port: Port) -> str:
        """Returns the place of a port's file."""
        if isinstance(port, InstancePort):
            return os.path.join(self._root, port.vmi_uuid)
        return os.path.join(self._machines, _directory_name(port.vm_name), port.vmi_uuid)

    def _load_all(self) -> Iterator[tuple[int, Port]]:
        """Yields each port with the moment of its writing (nanoseconds)."""
        yield from self._load_from(self._root, _read_instance)
        for machine in entries(self._machines):
            if machine.is_dir(follow_symlinks=False):
                yield from self._load_from(machine.path, _read_container)
                remove_if_empty(machine.path)

    def _load_from(self, directory: str, read: _Read) -> Iterator[tuple[int, Port]]:
        for file in regular_files(directory):
            if is_uuid(file.name):
                port = read(file.path)
                if isinstance(port, str):
                    self._set_aside(file.path, reason=port)
                elif self.path(port) != file.path:
                    self._set_aside(file.path, reason=f"belongs to {os.path.relpath(self.path(port), self._root)}")
                else:
                    yield file.stat().st_mtime_ns, port

    def _set_aside(self, path: str, *, reason: str) -> None:
        inside = os.path.relpath(path, self._root).removeprefix("vm/")
        set_aside(path, os.path.join(self._root, "corrupt", f"{inside}.corrupt"), reason=reason)

    def _remove_older(self, older: Port, newest: Port) -> None:
        path = self.path(older)
        log.warning("%s is out of date, %s took its place; removed", path, self.path(newest))
        os.unlink(path)
        if isinstance(older, ContainerPort):
            remove_if_empty(os.path.dirname(path))


_containers = msgspec.json.Decoder(ContainerPort)
_instances = msgspec.json.Decoder(InstancePort)


def _read_container(path: str) -> ContainerPort | str:
    port = read_as(path, _containers)
    return port if isinstance(port, str) else wrong_value(port) or port


def _read_instance(path: str) -> InstancePort | str:
    port = read_as(path, _instances)
    return port if isinstance(port, str) else wrong_instance(port) or in_kept_form(port)


def _directory_name(vm_name: str) -> str:
    """The machine's name; one that no file can bear is cut and told apart by its hash."""
    name = vm_name.encode()
    if len(name) <= _LONGEST_NAME:
        return vm_name
    digest = hashlib.sha256(name).hexdigest()[:32]
    return f"{name[: _LONGEST_NAME - 33].decode(errors='ignore')}~{digest}"

"""The records of one node, read and written by container; callers hold the container's lock."""

import contextlib
import os
from collections.abc import Iterator

from cni_contrail.journal import Journal
from cni_contrail.state.files import (
    file_name,
    make_private_directory,
    names_in,
    read_if_there,
    remove_if_there,
    remove_parts,
    write_whole,
)
from cni_contrail.state.lock import locked_directory
from cni_contrail.state.records import Record, decode_record, encode_record

_SUFFIX = ".json"
_DAMAGED = ".damaged"


class Attachments:
    """The records below one `state-dir`. All methods raise `PluginError` with code 5 if the directory fails."""

    def __init__(self, state_dir: str, journal: Journal) -> None:
        self.state_dir = state_dir
        self._journal = journal

    @contextlib.contextmanager
    def lock(self, container_id: str, patience: float) -> Iterator[None]:
        """Holds the container's lock, waiting for it for up to `patience` seconds."""
        directory = self._directory(container_id)
        with locked_directory(directory, patience):
            remove_parts(directory)
            yield

    def has_container(self, container_id: str) -> bool:
        """Whether there is anything about the container."""
        return os.path.isdir(self._directory(container_id))

    def of_container(self, container_id: str) -> list[Record]:
        """All records of a container."""
        return self._records_in(file_name(container_id))

    def of_machine(self, machine: str) -> list[Record]:
        """All records of a VM, of whatever container on this node."""
        containers = [name for name in names_in(self.state_dir) if not name.startswith(".")]
        records = [record for name in containers for record in self._records_in(name)]
        return [record for record in records if record.machine == machine]

    def read(self, container_id: str, ifname: str) -> Record | None:
        """The record of one attachment; one that is damaged is set aside, and there is none then."""
        return self._read(file_name(container_id), ifname + _SUFFIX)

    def write(self, record: Record) -> None:
        """Writes a record over what is there."""
        write_whole(self._path(record.container_id, record.ifname), encode_record(record))

    def remove(self, record: Record) -> None:
        """Forgets an attachment."""
        remove_if_there(self._path(record.container_id, record.ifname))

    def _directory(self, container_id: str) -> str:
        return os.path.join(self.state_dir, file_name(container_id))

    def _path(self, container_id: str, ifname: str) -> str:
        return os.path.join(self._directory(container_id), ifname + _SUFFIX)

    def _records_in(self, directory: str) -> list[Record]:
        names = [name for name in names_in(os.path.join(self.state_dir, directory)) if name.endswith(_SUFFIX)]
        return [record for name in names if (record := self._read(directory, name))]

    def _read(self, directory: str, name: str) -> Record | None:
        path = os.path.join(self.state_dir, directory, name)
        data = read_if_there(path)
        if data is None:
            return None
        try:
            return decode_record(data)
        except ValueError as error:
            self._set_aside(path, f"{directory}.{name}", error)
            return None

    def _set_aside(self, path: str, name: str, error: ValueError) -> None:
        aside = os.path.join(self.state_dir, _DAMAGED, name)
        try:
            make_private_directory(os.path.dirname(aside))
            os.rename(path, aside)
        except OSError as failure:
            aside = f"nowhere, {failure.strerror}"
        self._journal.error(f"record {path} is damaged ({error}): set aside as {aside}")

"""Attachment records of one node, by container and CNI_IFNAME; callers that change them hold the container's lock.

A container is identified by its ID, or by the name that `containers` returns for it.
"""

import contextlib
import os

from cni_contrail.errors import DamagedRecordError, TryAgainError
from cni_contrail.log import Log
from cni_contrail.state.attempt_locks import is_attempt_running
from cni_contrail.state.files import (
    create_private_directory,
    file_name,
    list_names,
    read_if_exists,
    remove_if_exists,
    write_atomically,
)
from cni_contrail.state.lock import LockedDirectory
from cni_contrail.state.records import Record, decode_record, encode_record

_SUFFIX = ".json"
_DAMAGED = ".damaged"  # the dot keeps it out of `containers`: no container ID begins with one


class Attachments:
    """The records below one `state-dir`. All methods raise `PluginError` with code 5 on I/O errors."""

    def __init__(self, state_dir: str, log: Log) -> None:
        self.state_dir = state_dir
        self._log = log

    def lock(self, container: str, timeout: float) -> LockedDirectory:
        """Holds the container's lock; raises `TryAgainError` after `timeout` seconds."""
        return LockedDirectory(self._directory(container), timeout)

    def containers(self) -> list[str]:
        """Returns the names of all containers, sorted."""
        return [name for name in list_names(self.state_dir) if not name.startswith(".")]

    def has_container(self, container: str) -> bool:
        """Returns whether any state of the container exists."""
        return os.path.isdir(self._directory(container))

    def ifnames(self, container: str) -> list[str]:
        """Returns the CNI_IFNAMEs of the container's attachments."""
        names = list_names(self._directory(container))
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]

    def of_container(self, container: str) -> list[Record]:
        """Returns all records of a container; raises `DamagedRecordError`."""
        found = (self.read(container, ifname) for ifname in self.ifnames(container))
        return [record for record in found if record]

    def read(self, container: str, ifname: str) -> Record | None:
        """Returns the record of one attachment, None if there is none; raises `DamagedRecordError`."""
        path = self._path(container, ifname)
        data = read_if_exists(path)
        try:
            return None if data is None else decode_record(data)
        except ValueError as error:
            raise DamagedRecordError(path, str(error)) from error

    def holds(self, record: Record) -> bool:
        """Returns whether this record is stored, and no call has changed or replaced it since."""
        return read_if_exists(self._path(record.container_id, record.ifname)) == encode_record(record)

    def is_in_progress(self, record: Record) -> bool:
        """Returns whether the ADD that wrote the record still runs."""
        return is_attempt_running(self.state_dir, record.attempt)

    def write(self, record: Record) -> None:
        """Writes a record, replacing an existing one."""
        write_atomically(self._path(record.container_id, record.ifname), encode_record(record))

    def remove(self, record: Record) -> None:
        """Removes the record of an attachment."""
        remove_if_exists(self._path(record.container_id, record.ifname))

    def remove_leftovers(self, container: str) -> None:
        """Removes what killed calls left of a container without attachments, unless another call holds its lock."""
        if not self.ifnames(container):
            with contextlib.suppress(TryAgainError), self.lock(container, timeout=0):
                pass  # taking the lock removes partial files, releasing it removes the empty directory

    def quarantine(self, damaged: DamagedRecordError, container: str, ifname: str) -> None:
        """Moves a damaged record to `.damaged` for inspection; removes it if it cannot be moved."""
        path = self._path(container, ifname)
        aside = os.path.join(self.state_dir, _DAMAGED, f"{file_name(container)}.{ifname}{_SUFFIX}")
        try:
            create_private_directory(os.path.dirname(aside))
            os.rename(path, aside)  # works on a full disk, where a copy would not
        except OSError as failure:
            self._log.error(f"{damaged.message}: cannot move it to {aside}: {failure.strerror}: removing it")
            remove_if_exists(path)
        else:
            self._log.error(f"{damaged.message}: moved to {aside}")

    def _directory(self, container: str) -> str:
        return f"{self.state_dir}/{file_name(container)}"

    def _path(self, container: str, ifname: str) -> str:
        return f"{self._directory(container)}/{ifname}{_SUFFIX}"

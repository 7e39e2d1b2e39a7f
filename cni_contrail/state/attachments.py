"""The records of one node, by container and CNI_IFNAME; who changes them holds the container's lock.

A container is named by its ID, or by what `containers` calls it.
"""

import contextlib
import os
from collections.abc import Iterator

from cni_contrail.errors import DamagedRecordError, TryAgainError
from cni_contrail.log import Log
from cni_contrail.state.attempt_locks import is_attempt_running
from cni_contrail.state.files import (
    create_private_directory,
    file_name,
    list_names,
    read_if_exists,
    remove_if_exists,
    remove_partial_files,
    write_atomically,
)
from cni_contrail.state.lock import locked_directory
from cni_contrail.state.records import Record, decode_record, encode_record

_SUFFIX = ".json"
_DAMAGED = ".damaged"


class Attachments:
    """The records below one `state-dir`. All methods raise `PluginError` with code 5 if the directory fails."""

    def __init__(self, state_dir: str, log: Log) -> None:
        self.state_dir = state_dir
        self._log = log

    @contextlib.contextmanager
    def lock(self, container: str, timeout: float) -> Iterator[None]:
        """Holds the container's lock, waiting for it for up to `patience` seconds."""
        directory = self._directory(container)
        with locked_directory(directory, timeout):
            remove_partial_files(directory)
            yield

    def containers(self) -> list[str]:
        """Names of all containers, sorted."""
        return [name for name in list_names(self.state_dir) if not name.startswith(".")]

    def has_container(self, container: str) -> bool:
        """Whether there is anything about the container."""
        return os.path.isdir(self._directory(container))

    def ifnames(self, container: str) -> list[str]:
        """CNI_IFNAMEs of the container's attachments."""
        names = list_names(self._directory(container))
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]

    def of_container(self, container: str) -> list[Record]:
        """All records of a container; raises `DamagedRecordError`."""
        found = (self.read(container, ifname) for ifname in self.ifnames(container))
        return [record for record in found if record]

    def read(self, container: str, ifname: str) -> Record | None:
        """The record of one attachment, None if there is none; raises `DamagedRecordError`."""
        path = self._path(container, ifname)
        data = read_if_exists(path)
        try:
            return None if data is None else decode_record(data)
        except ValueError as error:
            raise DamagedRecordError(path, str(error)) from error

    def is_in_progress(self, record: Record) -> bool:
        """Whether the ADD that wrote the record still runs."""
        return is_attempt_running(self.state_dir, record.attempt)

    def write(self, record: Record) -> None:
        """Writes a record over what is there."""
        write_atomically(self._path(record.container_id, record.ifname), encode_record(record))

    def remove(self, record: Record) -> None:
        """Forgets an attachment."""
        remove_if_exists(self._path(record.container_id, record.ifname))

    def remove_leftovers(self, container: str) -> None:
        """Removes what killed calls left of a container that has no attachment, unless another call is at it."""
        if not self.ifnames(container):
            with contextlib.suppress(TryAgainError), self.lock(container, timeout=0):
                pass

    def quarantine(self, damaged: DamagedRecordError, container: str, ifname: str) -> None:
        """Takes a damaged record out of the way, and keeps it for people if that can be done."""
        path = self._path(container, ifname)
        aside = os.path.join(self.state_dir, _DAMAGED, f"{file_name(container)}.{ifname}{_SUFFIX}")
        try:
            create_private_directory(os.path.dirname(aside))
            os.rename(path, aside)
        except OSError as failure:
            self._log.error(f"{damaged.message}: cannot be set aside, {failure.strerror}")
            remove_if_exists(path)
        else:
            self._log.error(f"{damaged.message}: set aside as {aside}")

    def _directory(self, container: str) -> str:
        return f"{self.state_dir}/{file_name(container)}"

    def _path(self, container: str, ifname: str) -> str:
        return f"{self._directory(container)}/{ifname}{_SUFFIX}"

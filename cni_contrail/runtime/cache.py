"""Result cache on disk, in libcni's format: libcni's users and this runtime can read each other's entries.

One file per attachment, `<cache dir>/results/<network>-<container ID>-<ifname>`: a JSON document of kind `cniCacheV1`
with the result, the configuration and the parameters of the ADD. CHECK and DEL need them again (CNI specification
1.1.0, section 3), and GC lists them. Older libcni wrote only the result; such a file is read but names no attachment.
Files are written by rename, so none is ever partial; they are not fsynced, since no sandbox survives a reboot.
"""

import base64
import contextlib
import dataclasses
import json
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cni_contrail.runtime.attachment import Arguments, Attachment
from cni_contrail.runtime.configuration import NetworkList
from cni_contrail.runtime.errors import AttachmentError, ResultError
from cni_contrail.runtime.results import Result

log = logging.getLogger(__name__)

DEFAULT_DIR = "/var/lib/cni"

_KIND = "cniCacheV1"


@dataclasses.dataclass(frozen=True, slots=True)
class CacheEntry:
    """Result and parameters of an ADD. `source` is the configuration's JSON text, empty in libcni's old format."""

    result: Result
    source: bytes = b""
    args: Arguments = ()
    capability_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class CachedAttachment(NamedTuple):
    """A cached attachment of a network."""

    network: str
    attachment: Attachment
    entry: CacheEntry


class ResultCache:
    """The cache below one directory. All methods raise ResultError."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, "results")

    def path(self, network: str, attachment: Attachment) -> str:
        """Returns the path of an attachment's entry, whether it exists or not."""
        return os.path.join(self._directory, f"{network}-{attachment.container_id}-{attachment.ifname}")

    def write(self, network: NetworkList, attachment: Attachment, result: Result) -> None:
        """Writes the result of an ADD, replacing an earlier one."""
        path = self.path(network.name, attachment)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            _replace(path, json.dumps(_document(network, attachment, result), sort_keys=True).encode())
        except OSError as error:
            raise ResultError(f"{path}: the result cannot be cached: {error.strerror}") from error

    def read(self, network: str, attachment: Attachment) -> CacheEntry | None:
        """Returns the entry of an attachment, None if there is none."""
        path = self.path(network, attachment)
        with _damage_reported(path):
            document = _load(path)
            return None if document is None else _entry(document)

    def attachments(self) -> list[CachedAttachment]:
        """Returns all attachments by file name. Files without one are skipped, as in libcni."""
        try:
            names = sorted(os.listdir(self._directory))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ResultError(f"{self._directory}: cannot be read: {error.strerror}") from error
        # Temporary files of `_replace` start with a dot.
        paths = (os.path.join(self._directory, name) for name in names if not name.startswith("."))
        return [cached for path in paths if (cached := _attachment_if_readable(path))]

    def remove(self, network: str, attachment: Attachment) -> None:
        """Removes an attachment's entry; a missing one is not an error."""
        path = self.path(network, attachment)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        except OSError as error:
            raise ResultError(f"{path}: the cached result cannot be removed: {error.strerror}") from error


def _document(network: NetworkList, attachment: Attachment, result: Result) -> dict[str, Any]:
    document: dict[str, Any] = {
        "kind": _KIND,
        "containerId": attachment.container_id,
        "config": base64.b64encode(network.source).decode(),
        "ifName": attachment.ifname,
        "networkName": network.name,
        "netns": attachment.netns,
        "cniArgs": attachment.args,
        "capabilityArgs": dict(attachment.capability_args),
        "result": result,
    }
    # As in libcni, optional fields are omitted if empty.
    return {key: value for key, value in document.items() if value}


def _load(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            return {**json.load(file)}  # raises TypeError for JSON that is not an object
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultError(f"{path}: the cached result cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def _damage_reported(path: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultError(f"{path}: the cached result is damaged: {error!r}") from error


def _entry(document: Mapping[str, Any]) -> CacheEntry:
    if document.get("kind") != _KIND:
        return CacheEntry(result=document)
    return CacheEntry(
        result={**document["result"]},
        source=base64.b64decode(document.get("config") or "", validate=True),
        args=tuple((key, value) for key, value in document.get("cniArgs") or ()),
        capability_args={**(document.get("capabilityArgs") or {})},
    )


def _attachment_if_readable(path: str) -> CachedAttachment | None:
    try:
        with _damage_reported(path):
            document = _load(path)
            return None if document is None else _cached_attachment(document)
    except (ResultError, AttachmentError) as error:
        log.warning("skipped: %s", error)
        return None


def _cached_attachment(document: Mapping[str, Any]) -> CachedAttachment:
    entry = _entry(document)
    attachment = Attachment(
        container_id=document["containerId"],
        netns=document.get("netns") or "",
        ifname=document["ifName"],
        args=entry.args,
        capability_args=entry.capability_args,
    )
    return CachedAttachment(document["networkName"], attachment, entry)


def _replace(path: str, content: bytes) -> None:
    """Writes a file of mode 0600 atomically."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

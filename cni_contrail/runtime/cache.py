"""Keeps the result of each attachment on disk, in libcni's form, so that its users and we read each other's.

One file `<cache dir>/results/<network>-<container ID>-<ifname>`: a JSON document of kind `cniCacheV1` with the result,
the configuration and the parameters of the ADD, which CHECK and DEL need again (CNI specification 1.1.0, section 3) and
GC to know what there was. Older libcni wrote the result alone; that is read too, but tells of no attachment. Written by
rename, so there is never half a file; not flushed to the disk, since no sandbox outlives the machine.
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
    """What an ADD left: its result and parameters. `source`: the configuration's text, empty in the old form."""

    result: Result
    source: bytes = b""
    args: Arguments = ()
    capability_args: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class CachedAttachment(NamedTuple):
    """An attachment of a network as its ADD left it."""

    network: str
    attachment: Attachment
    entry: CacheEntry


class ResultCache:
    """The cache below one directory. All methods raise ResultError."""

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, "results")

    def path(self, network: str, attachment: Attachment) -> str:
        """Where the entry of an attachment is, or would be."""
        return os.path.join(self._directory, f"{network}-{attachment.container_id}-{attachment.ifname}")

    def write(self, network: NetworkList, attachment: Attachment, result: Result) -> None:
        """Keeps the result of an ADD, in place of an earlier one."""
        path = self.path(network.name, attachment)
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)
            _replace(path, json.dumps(_document(network, attachment, result), sort_keys=True).encode())
        except OSError as error:
            raise ResultError(f"{path}: the result cannot be cached: {error.strerror}") from error

    def read(self, network: str, attachment: Attachment) -> CacheEntry | None:
        """Returns the entry of an attachment, None if there is none."""
        path = self.path(network, attachment)
        with _damage_told(path):
            document = _load(path)
            return None if document is None else _entry(document)

    def attachments(self) -> list[CachedAttachment]:
        """Returns all attachments, by file name. Files that tell of none are passed over, as by libcni."""
        try:
            names = sorted(os.listdir(self._directory))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ResultError(f"{self._directory}: cannot be read: {error.strerror}") from error
        paths = (os.path.join(self._directory, name) for name in names if not name.startswith("."))
        return [cached for path in paths if (cached := _attachment_if_told(path))]

    def remove(self, network: str, attachment: Attachment) -> None:
        """Forgets an attachment; one that is not there is no error."""
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
    return {key: value for key, value in document.items() if value}


def _load(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            return {**json.load(file)}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultError(f"{path}: the cached result cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def _damage_told(path: str) -> Iterator[None]:
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


def _attachment_if_told(path: str) -> CachedAttachment | None:
    try:
        with _damage_told(path):
            document = _load(path)
            return None if document is None else _cached_attachment(document)
    except (ResultError, AttachmentError) as error:
        log.warning("passed over: %s", error)
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
    """Writes a file of mode 0600 in one step."""
    descriptor, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise

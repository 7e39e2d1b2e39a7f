"""Dangling references: to virtual machines and interfaces that no longer exist.

The server refuses to delete what is referred to, but checks before it deletes: a reference that is added at the same
time stays. What is missing in a list may have been created while the list was read, so a reference is removed only if
the round before found it too, and its target cannot be read.
"""

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from contrail_config.vnc.client import VncClient
from contrail_config.vnc.errors import VncNotFoundError
from contrail_config.vnc.reference import Reference

log = logging.getLogger(__name__)

_CHUNK: Final = 500  # uuids in one request


class _Link(NamedTuple):
    """A reference from an object to the uuid of another."""

    kind: str
    uuid: str
    target: str


class DanglingReferences:
    """Removes references of virtual routers and addresses; `has_suspects`: another round is due soon."""

    def __init__(self, client: VncClient) -> None:
        self._client = client
        self._suspects: dict[str, set[_Link]] = {}  # by type of the target

    @property
    def has_suspects(self) -> bool:
        """Whether the last round found some that the one before had not."""
        return any(self._suspects.values())

    async def remove(
        self, kind: str, referrers: Sequence[Mapping[str, Any]], *, target: str, existing: Collection[str]
    ) -> None:
        """Removes references to objects of the type `target` that are not `existing`. Raises VncError.

        `kind` is the type of the referrers, which are read with these references.
        """
        field = f"{target.replace('-', '_')}_refs"
        found = {
            _Link(kind, item["uuid"], reference["uuid"])
            for item in referrers
            for reference in item.get(field) or ()
            if reference["uuid"] not in existing
        }
        again = found & self._suspects.get(target, set())
        self._suspects[target] = found - again
        there = await self._existing(target, {link.target for link in again})
        for link in sorted(link for link in again if link.target not in there):
            log.warning("%s %s: removing its reference to %s %s, which is gone", kind, link.uuid, target, link.target)
            with contextlib.suppress(VncNotFoundError):  # the referrer is gone too
                await self._client.remove_reference(kind, link.uuid, Reference(target, link.target, ()))

    async def _existing(self, kind: str, uuids: Collection[str]) -> set[str]:
        ordered = sorted(uuids)
        found: set[str] = set()
        for begin in range(0, len(ordered), _CHUNK):
            listed = await self._client.list_by_uuid(kind, ordered[begin : begin + _CHUNK], fields=["id_perms"])
            found.update(item["uuid"] for item in listed)
        return found

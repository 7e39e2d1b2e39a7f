"""Storage: objects by kind as JSON, and a log of changes per kind.

Pods are generated from their numbers on demand; only what was written to them is stored.
"""

import bisect
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from tests.bench.kubernetes.scripted_apiserver.pods import STATUS_KEY, encoded_pod

Key = tuple[str, str]
"""namespace, name"""


class Entry(NamedTuple):
    """A change of an object; `body` returns its JSON."""

    version: int
    type: bytes
    body: Callable[[], bytes]


class Page(NamedTuple):
    """A page of a list; `rest` is the continue token, empty on the last page."""

    version: int
    items: list[bytes]
    rest: str


class _Metadata(msgspec.Struct, frozen=True):
    annotations: dict[str, msgspec.Raw]


class _Patch(msgspec.Struct, frozen=True):
    metadata: _Metadata


_read_patch = msgspec.json.Decoder(_Patch)
_VERSION = re.compile(rb',"resourceVersion":"\d+"')


class Log:
    """Changes of one kind; `listeners` are called after each change."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.listeners: set[Callable[[], None]] = set()

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)
        for notify in self.listeners:
            notify()

    def after(self, version: int) -> int:
        """Index of the first entry after a version."""
        return bisect.bisect(self.entries, version, key=lambda entry: entry.version)


class Storage:
    """Objects and logs; `pods` are the numbers of the initial pods."""

    def __init__(self, *, pods: int) -> None:
        self.pods = range(pods)
        self.logs: defaultdict[str, Log] = defaultdict(Log)
        self.written: Counter[str] = Counter()
        self._objects: defaultdict[str, dict[Key, bytes]] = defaultdict(dict)
        self._uids: dict[tuple[str, Key], int] = {}
        self._version = 1000
        self._pod_versions: dict[int, int] = {}
        self._gone: set[int] = set()
        self._statuses: dict[int, bytes] = {}
        self._pages: dict[str, tuple[int, itertools.chain[bytes]]] = {}

    def get(self, plural: str, key: Key) -> bytes | None:
        """The object, None if it does not exist."""
        return self._objects[plural].get(key)

    def page(self, plural: str, *, labels: str, limit: int, token: str) -> Page:
        """A page of the list: of the current state, or continued from the token."""
        version, items = self._pages.pop(token) if token else (self._version, self._list(plural, labels))
        found = list(itertools.islice(items, limit or None))
        following = next(items, None) if limit else None
        if following is None:
            return Page(version, found, "")
        token = f"{plural}-{version}-{len(self._pages)}-{limit}"
        self._pages[token] = version, itertools.chain([following], items)
        return Page(version, found, token)

    def put(self, plural: str, key: Key, body: bytes) -> bytes:
        """Stores an object and returns the stored object."""
        kind = b"ADDED" if key not in self._objects[plural] else b"MODIFIED"
        version = self._next_version()
        uid = self._uids.setdefault((plural, key), version)
        stamp = b'"metadata":{"uid":"%032d","resourceVersion":"%d",' % (uid, version)
        body = _VERSION.sub(b"", body, count=1).replace(b'"metadata":{', stamp, 1)
        self._objects[plural][key] = body
        self.logs[plural].add(Entry(version, kind, lambda: body))
        return body

    def delete(self, plural: str, key: Key) -> None:
        """Deletes an object."""
        body = self._objects[plural].pop(key)
        del self._uids[plural, key]
        version = self._next_version()
        body = _VERSION.sub(b',"resourceVersion":"%d"' % version, body, count=1)
        self.logs[plural].add(Entry(version, b"DELETED", lambda: body))

    def patch_pod(self, number: int, patch: bytes) -> bytes | None:
        """Stores a pod's network status and returns the pod, None if it is deleted."""
        if number in self._gone:
            return None
        self._statuses[number] = bytes(_read_patch.decode(patch).metadata.annotations[STATUS_KEY])
        self.record_pod_event(b"MODIFIED", number)
        return self.pod(number)

    def record_pod_event(self, kind: bytes, number: int) -> None:
        """Records the creation, change or deletion of a pod."""
        if kind == b"DELETED":
            self._gone.add(number)
        version = self._pod_versions[number] = self._next_version()
        self.logs["pods"].add(Entry(version, kind, lambda: self._pod_as_of(number, version)))

    def pod(self, number: int) -> bytes:
        """The current state of a pod."""
        return self._pod_as_of(number, self._pod_versions.get(number, number + 1))

    def _pod_as_of(self, number: int, version: int) -> bytes:
        return encoded_pod(number, version=version, status=self._statuses.get(number))

    def _list(self, plural: str, labels: str) -> itertools.chain[bytes]:
        if plural == "pods":
            return itertools.chain(map(self.pod, self.pods))
        label = '"{}":"{}"'.format(*labels.split("=")).encode() if labels else b""
        return itertools.chain([body for body in self._objects[plural].values() if label in body])

    def _next_version(self) -> int:
        self._version += 1
        return self._version

"""Stored slices: version and digest of each network slice on the server, as the manager's reflector reads them.

The objects themselves are not kept: there may be a hundred thousand, and to know whether one is as it should be, a
digest suffices. An invalid slice has no digest, so it is never as it should be. Objects outside the network buckets
have no effect, and are ignored.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.object_cache import Added, Deleted, Key, Listed, Modified, ObjectChange
from contrail_config.kube.resource import Metadata
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kube.watch import WatchEvent, WatchType
from contrail_config.kubernetes.kinds import NetworkSliceObject
from contrail_config.kubernetes.network_buckets import is_network_bucket
from contrail_config.objects import NetworkSlice

_encode = msgspec.json.Encoder().encode

Change = ObjectChange[NetworkSliceObject]


class StoredSlice(NamedTuple):
    """A slice on the server; `digest` is None if it is invalid."""

    version: str
    digest: int | None


class StoredSlices:
    """Cache of a reflector, to which this process adds what it wrote itself before the watch reports it."""

    def __init__(self) -> None:
        self.objects: Mapping[Key, NetworkSliceObject] = {}
        self.undecodable: dict[Key, UndecodableObject] = {}
        self._slices: dict[Key, StoredSlice] = {}
        self._listed: set[Key] = set()
        self._written: set[Key] = set()  # since the list began, which may be older

    def __len__(self) -> int:
        return len(self._slices)

    def get(self, key: Key) -> StoredSlice | None:
        """Returns the slice of this namespace and name, None if it does not exist."""
        return self._slices.get(key)

    def keys(self) -> set[Key]:
        """Returns namespace and name of all slices."""
        return set(self._slices)

    def written(self, key: Key, metadata: Metadata, spec: NetworkSlice) -> None:
        """Adds a slice that this process wrote, unless a newer state is known."""
        self._written.add(key)
        known = self._slices.get(key)
        if known is None or is_newer(metadata.resource_version, known.version):
            self._slices[key] = StoredSlice(metadata.resource_version, digest(spec))
            self.undecodable.pop(key, None)

    def deleted(self, key: Key) -> None:
        """Removes a slice that this process deleted, or found missing."""
        self._slices.pop(key, None)
        self.undecodable.pop(key, None)

    def begin_list(self) -> None:
        """Starts a list."""
        self._listed.clear()
        self._written.clear()

    def add_listed(self, item: NetworkSliceObject | UndecodableObject) -> Iterable[Change]:
        """Adds an item of the list."""
        key = _key(item.metadata)
        self._listed.add(key)
        return () if key in self._written else self._put(key, item)

    def end_list(self) -> Iterable[Change]:
        """Removes what was not in the list. The end of the list makes its reader compare everything."""
        for key in self._slices.keys() - self._listed - self._written:
            self.deleted(key)
        return (Listed(complete=not self.undecodable),)

    def apply_event(self, event: WatchEvent[NetworkSliceObject]) -> Iterable[Change]:
        """Applies a watch event that is newer than the known state."""
        item = event.object
        if item is None:
            return ()
        key = _key(item.metadata)
        known = self._slices.get(key)
        if known is not None and not is_newer(item.metadata.resource_version, known.version):
            return ()
        if event.type is not WatchType.DELETED:
            return self._put(key, item)
        self.deleted(key)
        return (item if isinstance(item, UndecodableObject) else Deleted(item),)

    def _put(self, key: Key, item: NetworkSliceObject | UndecodableObject) -> Iterable[Change]:
        if not is_network_bucket(key[0]):
            return ()
        version, known = item.metadata.resource_version, key in self._slices
        if isinstance(item, UndecodableObject):
            self._slices[key] = StoredSlice(version, None)
            self.undecodable[key] = item
            return (item,)
        self._slices[key] = StoredSlice(version, digest(item.spec))
        self.undecodable.pop(key, None)
        return (Modified[Any](item) if known else Added[Any](item),)


def digest(spec: NetworkSlice) -> int:
    """Returns a number that is equal for equal slices, in this process."""
    return hash(_encode(spec))


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name

"""Object cache: the last known state of all objects of a kind, and the changes that a list or watch event makes to it.

The counterpart of client-go's store and delta FIFO. Objects are keyed by namespace and name and identified by uid, so a
recreated object is a deletion and an addition. A list is authoritative, also if it goes back in time (etcd restored). A
watch event counts only if it is newer than the known state of its object, which makes repeated and reordered events
harmless.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import KubeObject, Metadata
from contrail_config.kube.resource_versions import is_newer
from contrail_config.kube.watch import WatchEvent, WatchType

Key = tuple[str, str]
"""namespace, name"""

_MAX_TOMBSTONES = 1024  # events are reordered by a few positions at most

T = TypeVar("T", bound=KubeObject)


class Added(msgspec.Struct, Generic[T], frozen=True):
    """The object exists."""

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True):
    """The object changed."""

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """The object was deleted or no longer matches the selector; `object` is its last known state."""

    object: T


class Listed(msgspec.Struct, frozen=True):
    """All objects were delivered; `complete` is False if some of them cannot be decoded.

    Emitted after each list, and when the last undecodable object became decodable or was deleted.
    """

    complete: bool


ObjectChange = Added[T] | Modified[T] | Deleted[T] | UndecodableObject | Listed
"""An undecodable object keeps its last decodable state, if there was one, until it is decodable again or deleted."""


class ReflectorCache(Protocol[T]):
    """What a Reflector writes to. Each method returns the changes that it makes, in order."""

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects that are known to exist."""

    @property
    def undecodable(self) -> Mapping[Key, UndecodableObject]:
        """The objects that exist and are undecodable now, as far as the cache keeps track of them."""

    def begin_list(self) -> None:
        """Starts a list; discards one that was not finished."""

    def add_listed(self, item: T | UndecodableObject) -> Iterable[ObjectChange[T]]:
        """Adds an item of the list."""

    def end_list(self) -> Iterable[ObjectChange[T]]:
        """Finishes the list: objects that were not in it are deleted."""

    def apply_event(self, event: WatchEvent[T]) -> Iterable[ObjectChange[T]]:
        """Applies a watch event."""


class ObjectCache(Generic[T]):
    """Cache of all objects of one kind that match one selector."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._undecodable: dict[Key, UndecodableObject] = {}
        self._listed: set[Key] = set()
        self._tombstones: OrderedDict[Key, str] = OrderedDict()  # deleted objects: resourceVersion of the deletion

    @property
    def objects(self) -> Mapping[Key, T]:
        """The objects that are known to exist, as a read-only view."""
        return MappingProxyType(self._objects)

    @property
    def undecodable(self) -> Mapping[Key, UndecodableObject]:
        """The objects that exist and are undecodable now, as a read-only view."""
        return MappingProxyType(self._undecodable)

    def begin_list(self) -> None:
        """Starts a list; discards one that was not finished."""
        self._listed.clear()
        self._tombstones.clear()  # after a restore of etcd, new events may have lower versions than these

    def add_listed(self, item: T | UndecodableObject) -> Iterator[ObjectChange[T]]:
        """Adds an item of the list; it is a change if uid or resourceVersion differ from the known state."""
        key = _key(item.metadata)
        self._listed.add(key)
        known = self._known(key)
        # inequality, not order: the list is authoritative also if it is older
        if known is None or _state(known) != _state(item.metadata):
            yield from self._put(item)

    def end_list(self) -> Iterator[ObjectChange[T]]:
        """Finishes the list: objects that were not in it are deleted."""
        for key in self._undecodable.keys() - self._listed:
            del self._undecodable[key]
        for key in [key for key in self._objects if key not in self._listed]:
            yield Deleted(self._objects.pop(key))
        self._listed.clear()
        yield Listed(complete=not self._undecodable)

    def apply_event(self, event: WatchEvent[T]) -> Iterator[ObjectChange[T]]:
        """Applies a watch event; bookmarks and stale events change nothing."""
        if event.object is None or self._is_stale(event.metadata):
            return
        was_complete = not self._undecodable
        yield from self._remove(event.object) if event.type is WatchType.DELETED else self._put(event.object)
        if not was_complete and not self._undecodable:
            yield Listed(complete=True)

    def _put(self, item: T | UndecodableObject) -> Iterator[ObjectChange[T]]:
        key = _key(item.metadata)
        known = self._objects.get(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            # deleted and recreated while no watch was open: consumers must release what the old object had
            yield Deleted(self._objects.pop(key))
            known = None
        if isinstance(item, UndecodableObject):
            self._undecodable[key] = item
            yield item
            return
        self._undecodable.pop(key, None)
        self._objects[key] = item
        yield Added(item) if known is None else Modified(item)

    def _remove(self, item: T | UndecodableObject) -> Iterator[ObjectChange[T]]:
        key = _key(item.metadata)
        # without a tombstone, an older event that arrives late would bring the object back
        self._tombstones[key] = item.metadata.resource_version
        if len(self._tombstones) > _MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)
        self._undecodable.pop(key, None)
        known = self._objects.pop(key, None)
        if known is not None:
            if isinstance(item, UndecodableObject) or known.metadata.uid != item.metadata.uid:
                item = known  # the event's own state is of no use to consumers of the known object
            yield Deleted(item)

    def _is_stale(self, metadata: Metadata) -> bool:
        key = _key(metadata)
        known = self._known(key)
        last = known.resource_version if known else self._tombstones.get(key)
        return last is not None and not is_newer(metadata.resource_version, last)

    def _known(self, key: Key) -> Metadata | None:
        """Returns the metadata of the newest known state, decodable or not."""
        if key in self._undecodable:
            return self._undecodable[key].metadata
        return self._objects[key].metadata if key in self._objects else None


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


def _state(metadata: Metadata) -> tuple[str, str]:
    return metadata.uid, metadata.resource_version

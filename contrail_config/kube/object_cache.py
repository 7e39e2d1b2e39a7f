"""What is known of a kind's objects, and what a list or a watch event changes in that.

Objects are kept by namespace and name, and are the same only with the same uid: a recreated one is the old one's end
and a new one's beginning. A list is believed as it is, also where it goes back in time (etcd restored); a watch event
counts only if it is newer than what is known of its object, so that repeated and overtaken ones do no harm.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import msgspec

from contrail_config.kube.decoding import UndecodableObject
from contrail_config.kube.resource import KubeObject, Metadata
from contrail_config.kube.versions import is_newer
from contrail_config.kube.watch import WatchEvent, WatchType

Key = tuple[str, str]
"""namespace, name"""

_REMEMBERED_ENDS = 1024  # events overtake each other by a few places at most

T = TypeVar("T", bound=KubeObject)


class Added(msgspec.Struct, Generic[T], frozen=True):
    """The object is there."""

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True):
    """The object changed."""

    object: T


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """The object is gone, or no longer selected: its last known state."""

    object: T


class Listed(msgspec.Struct, frozen=True):
    """Everything that is there has been told; not so if something unreadable is among it (not `complete`).

    Told after each list, and when the last unreadable object has become readable or is gone.
    """

    complete: bool


Change = Added[T] | Modified[T] | Deleted[T] | UndecodableObject | Listed
"""An unreadable object keeps the state that was known of it, if any, until it is readable or gone."""


class Seen(Protocol[T]):
    """What is kept of what the server tells. Each method gives the changes that it makes, in order."""

    @property
    def objects(self) -> Mapping[Key, T]:
        """What is known to be there."""

    def begin_list(self) -> None:
        """A list begins; one that was not ended is forgotten."""

    def take_listed(self, item: T | UndecodableObject) -> Iterable[Change[T]]:
        """An item of the list."""

    def end_list(self) -> Iterable[Change[T]]:
        """The list is whole."""

    def take_event(self, event: WatchEvent[T]) -> Iterable[Change[T]]:
        """An event of a watch."""


class ObjectCache(Generic[T]):
    """The objects of one kind and selection, all of them."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._unreadable: dict[Key, Metadata] = {}
        self._listed: set[Key] = set()
        self._ended: OrderedDict[Key, str] = OrderedDict()  # deleted ones, and the version of their end

    @property
    def objects(self) -> Mapping[Key, T]:
        """What is there."""
        return MappingProxyType(self._objects)

    def begin_list(self) -> None:
        """A list begins; one that was not ended is forgotten."""
        self._listed.clear()
        self._ended.clear()

    def take_listed(self, item: T | UndecodableObject) -> Iterator[Change[T]]:
        """An item of the list."""
        key = _key(item.metadata)
        self._listed.add(key)
        known = self._known(key)
        if known is None or _state(known) != _state(item.metadata):
            yield from self._put(item)

    def end_list(self) -> Iterator[Change[T]]:
        """The list is whole: what was not in it is gone."""
        for key in self._unreadable.keys() - self._listed:
            del self._unreadable[key]
        for key in [key for key in self._objects if key not in self._listed]:
            yield Deleted(self._objects.pop(key))
        self._listed.clear()
        yield Listed(complete=not self._unreadable)

    def take_event(self, event: WatchEvent[T]) -> Iterator[Change[T]]:
        """An event of a watch."""
        if event.object is None or self._is_stale(event.metadata):
            return
        was_complete = not self._unreadable
        yield from self._remove(event.object) if event.type is WatchType.DELETED else self._put(event.object)
        if not was_complete and not self._unreadable:
            yield Listed(complete=True)

    def _put(self, item: T | UndecodableObject) -> Iterator[Change[T]]:
        key = _key(item.metadata)
        known = self._objects.get(key)
        if known is not None and known.metadata.uid != item.metadata.uid:
            yield Deleted(self._objects.pop(key))
            known = None
        if isinstance(item, UndecodableObject):
            self._unreadable[key] = item.metadata
            yield item
            return
        self._unreadable.pop(key, None)
        self._objects[key] = item
        yield Added(item) if known is None else Modified(item)

    def _remove(self, item: T | UndecodableObject) -> Iterator[Change[T]]:
        key = _key(item.metadata)
        self._ended[key] = item.metadata.resource_version
        if len(self._ended) > _REMEMBERED_ENDS:
            self._ended.popitem(last=False)
        self._unreadable.pop(key, None)
        known = self._objects.pop(key, None)
        if known is not None:
            if isinstance(item, UndecodableObject) or known.metadata.uid != item.metadata.uid:
                item = known
            yield Deleted(item)

    def _is_stale(self, metadata: Metadata) -> bool:
        key = _key(metadata)
        known = self._known(key)
        last = known.resource_version if known else self._ended.get(key)
        return last is not None and not is_newer(metadata.resource_version, last)

    def _known(self, key: Key) -> Metadata | None:
        """The newest state that was seen."""
        if key in self._unreadable:
            return self._unreadable[key]
        return self._objects[key].metadata if key in self._objects else None


def _key(metadata: Metadata) -> Key:
    return metadata.namespace, metadata.name


def _state(metadata: Metadata) -> tuple[str, str]:
    return metadata.uid, metadata.resource_version

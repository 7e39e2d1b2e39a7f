"""Database and lock service of the servers of one cluster: objects, names, referrers, and claims.

Only a claim is atomic (ZooKeeper). Everything else is written without a condition (Cassandra): an object that is
created twice is merged, and a name may belong to several uuids.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.support.contrail_api.kinds import KINDS, Kind
from tests.support.contrail_api.stored import FqName, Stored


class Notification(NamedTuple):
    """A change as the servers publish it: without the object."""

    operation: str
    kind: Kind
    uuid: str


class Database:
    """Objects by uuid, and indexes. `observers` receive each change, in order."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.observers: list[Callable[[Notification], None]] = []
        self.claims: dict[str, str] = {}
        self._by_kind: dict[str, dict[str, Stored]] = {name: {} for name in KINDS}
        self._names: dict[tuple[str, FqName], list[str]] = {}
        self._referrers: dict[str, dict[tuple[str, str], None]] = {}
        self._children: dict[str, dict[tuple[str, str], None]] = {}

    def of_kind(self, kind: Kind) -> dict[str, Stored]:
        return self._by_kind[kind.name]

    def find(self, kind: Kind | str, uuid: str) -> Stored | None:
        return self._by_kind[kind if isinstance(kind, str) else kind.name].get(uuid)

    def named(self, kind: Kind | str, fq_name: FqName) -> list[str]:
        """Returns the uuids of a name: more than one after a race of creates that brought their uuids."""
        return list(self._names.get((kind if isinstance(kind, str) else kind.name, fq_name), ()))

    def referrers(self, uuid: str, kind: str | None = None) -> list[Stored]:
        """Returns the objects that refer to a uuid, whether or not it exists."""
        found = self._referrers.get(uuid, ())
        return [self.objects[other] for name, other in found if other in self.objects and kind in (None, name)]

    def children(self, uuid: str, kind: str | None = None) -> list[Stored]:
        found = self._children.get(uuid, ())
        return [self.objects[other] for name, other in found if other in self.objects and kind in (None, name)]

    def write(self, new: Stored) -> Stored:
        """Creates an object, or merges it into the one of its uuid; returns the stored one."""
        stored = self.objects.get(new.uuid)
        if stored is None:
            self.objects[new.uuid] = self._by_kind[new.kind.name][new.uuid] = stored = new
        else:
            stored.merge(new)
        uuids = self._names.setdefault((new.kind.name, new.fq_name), [])
        if new.uuid not in uuids:
            uuids.append(new.uuid)
        if new.parent:
            self._children.setdefault(new.parent[1], {})[new.kind.name, new.uuid] = None
        for targets in new.references.values():
            for target in targets:
                self._index(stored, target)
        self.publish("create", stored)
        return stored

    def refer(self, stored: Stored, kind: str, target: str, attributes: object) -> None:
        stored.references.setdefault(kind, {})[target] = attributes
        self._index(stored, target)

    def unrefer(self, stored: Stored, kind: str, target: str) -> None:
        stored.references.get(kind, {}).pop(target, None)
        self._referrers.get(target, {}).pop((stored.kind.name, stored.uuid), None)
        stored.relaxed.discard(target)

    def remove(self, stored: Stored) -> None:
        self.objects.pop(stored.uuid, None)
        self._by_kind[stored.kind.name].pop(stored.uuid, None)
        for fq_name in (stored.fq_name, *stored.other_names):
            self._unname((stored.kind.name, fq_name), stored.uuid)
        if stored.parent:
            self._children.get(stored.parent[1], {}).pop((stored.kind.name, stored.uuid), None)
        for targets in stored.references.values():
            for target in targets:
                self._referrers.get(target, {}).pop((stored.kind.name, stored.uuid), None)
        self.publish("delete", stored)

    def publish(self, operation: str, stored: Stored) -> None:
        for observe in list(self.observers):
            observe(Notification(operation, stored.kind, stored.uuid))

    def claim(self, path: str, value: str) -> str | None:
        """Claims a path and returns None, or the value of the other claim."""
        return None if (held := self.claims.setdefault(path, value)) == value else held

    def unclaim(self, path: str, value: str) -> None:
        """Frees a path, if the claim has this value."""
        if self.claims.get(path) == value:
            del self.claims[path]

    def _index(self, stored: Stored, target: str) -> None:
        self._referrers.setdefault(target, {})[stored.kind.name, stored.uuid] = None

    def _unname(self, name: tuple[str, FqName], uuid: str) -> None:
        uuids = self._names.get(name, [])
        if uuid in uuids:
            uuids.remove(uuid)
        if not uuids:
            self._names.pop(name, None)

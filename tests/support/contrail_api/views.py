"""Objects as the server shows them: properties, references, back references and children."""

from collections.abc import Collection

from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import KINDS, back_reference_key, children_key, reference_key
from tests.support.contrail_api.references import shown
from tests.support.contrail_api.stored import Object, Stored

_IDENTITY = frozenset({"uuid", "fq_name", "href", "parent_type", "parent_uuid", "parent_href"})


class Views:
    """`base` is scheme, host and port as the client addressed them; None excludes `href`."""

    def __init__(self, database: Database, base: str | None) -> None:
        self._database = database
        self._base = base

    def created(self, stored: Stored) -> Object:
        """The response to a create."""
        return {"name": stored.fq_name[-1], **self.identity(stored), **self._parent(stored)}

    def identity(self, stored: Stored) -> Object:
        """An item of a list without fields."""
        return {"uuid": stored.uuid, "fq_name": list(stored.fq_name), **self._href("href", stored)}

    def whole(self, stored: Stored) -> Object:
        """All properties and references."""
        references = {
            reference_key(kind): shown(self._database, targets, self._base)
            for kind, targets in stored.references.items()
            if targets
        }
        named = {"name": stored.fq_name[-1], **self.identity(stored), **self._parent(stored)}
        return named | stored.properties | references

    def back_references(self, stored: Stored) -> Object:
        found: Object = {}
        for other in self._database.referrers(stored.uuid):
            attributes = (
                other.references[stored.kind.name][stored.uuid] if stored.kind.name in other.references else None
            )
            item = {"to": list(other.fq_name), "uuid": other.uuid, "attr": attributes, **self._href("href", other)}
            found.setdefault(back_reference_key(other.kind.name), []).append(item)
        return found

    def children(self, stored: Stored) -> Object:
        found: Object = {}
        for child in self._database.children(stored.uuid):
            item = {"to": list(child.fq_name), "uuid": child.uuid, **self._href("href", child)}
            found.setdefault(children_key(child.kind.name), []).append(item)
        return found

    def fields(self, stored: Stored, fields: Collection[str]) -> Object:
        """The properties, references, back references and children of these names, and the parent."""
        everything = self.whole(stored)
        if any(_is_distant(field) for field in fields):
            everything |= self.back_references(stored) | self.children(stored)
        return self.identity(stored) | self._parent(stored) | _only(everything, fields)

    def _parent(self, stored: Stored) -> Object:
        if stored.parent is None:
            return {}
        kind, uuid = stored.parent
        parent = self._database.objects.get(uuid)
        return {"parent_type": kind, "parent_uuid": uuid, **(self._href("parent_href", parent) if parent else {})}

    def _href(self, key: str, stored: Stored) -> Object:
        return {} if self._base is None else {key: f"{self._base}{stored.path}"}


def _only(item: Object, fields: Collection[str]) -> Object:
    return {key: value for key, value in item.items() if key in fields and key not in _IDENTITY}


_DISTANT = frozenset(key for kind in KINDS for key in (back_reference_key(kind), children_key(kind)))


def _is_distant(field: str) -> bool:
    return field in _DISTANT

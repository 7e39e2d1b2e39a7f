"""A stored object: its properties, and its references by uuid."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.support.contrail_api.kinds import Kind

Object = dict[str, Any]
FqName = tuple[str, ...]


@dataclass
class Stored:
    """`references` are attributes by uuid by type; `parent` is type and uuid; `relaxed` targets may be deleted.

    `other_names` are those of later creates with the same uuid.
    """

    kind: Kind
    uuid: str
    fq_name: FqName
    parent: tuple[str, str] | None = None
    properties: Object = field(default_factory=dict)
    references: dict[str, dict[str, Any]] = field(default_factory=dict)
    relaxed: set[str] = field(default_factory=set)
    other_names: list[FqName] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/{self.kind.name}/{self.uuid}"

    @property
    def last_modified(self) -> str:
        return str(self.properties["id_perms"]["last_modified"])

    def only(self, kind: str) -> str | None:
        """Returns the uuid of the first reference to a type."""
        return next(iter(self.references.get(kind, ())), None)

    def touch(self) -> None:
        self.properties["id_perms"] = {**self.properties["id_perms"], "last_modified": _now()}

    def merge(self, other: "Stored") -> None:
        """Adds what another create of the same uuid wrote, as columns of one row."""
        if other.fq_name != self.fq_name:
            self.other_names.append(other.fq_name)
        annotations = {**_by_key(self.properties), **_by_key(other.properties)}
        self.properties.update(other.properties)
        if annotations:
            self.properties["annotations"] = annotation_map(list(annotations.values()))
        for kind, targets in other.references.items():
            self.references.setdefault(kind, {}).update(targets)


def common_properties(uuid_text: str, body: Object, name: str) -> Object:
    """Returns what the server adds to every object."""
    now = _now()
    number = uuid.UUID(uuid_text).int
    permissions = {
        "owner": "cloud-admin",
        "owner_access": 7,
        "other_access": 7,
        "group": "cloud-admin-group",
        "group_access": 7,
    }
    id_perms = {
        "enable": True,
        "description": None,
        "created": now,
        "last_modified": now,
        "creator": None,
        "user_visible": True,
        "uuid": {"uuid_mslong": number >> 64, "uuid_lslong": number & (2**64 - 1)},
        "permissions": permissions,
    }
    perms2 = {"owner": "cloud-admin", "owner_access": 7, "global_access": 0, "share": []}
    sent = body.get("id_perms") or {}
    return {
        "display_name": body.get("display_name") or name,
        "id_perms": {**id_perms, **{key: value for key, value in sent.items() if key in ("enable", "description")}},
        "perms2": {**perms2, **(body.get("perms2") or {})},
    }


def annotation_map(pairs: list[Object]) -> Object:
    """Returns a map property: sorted by key, the last of equal keys."""
    by_key = {pair["key"]: pair for pair in pairs}
    return {"key_value_pair": [by_key[key] for key in sorted(by_key)]}


def _by_key(properties: Object) -> dict[str, Object]:
    pairs = (properties.get("annotations") or {}).get("key_value_pair", [])
    return {pair["key"]: pair for pair in pairs}


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")

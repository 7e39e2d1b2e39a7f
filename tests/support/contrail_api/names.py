"""Names, uuids and parents in the bodies of creates."""

import uuid
from typing import NamedTuple

from tests.support.contrail_api.api_errors import ApiError
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import Kind
from tests.support.contrail_api.stored import FqName, Object


class Identity(NamedTuple):
    """Who a new object is. `own_uuid`: the body brought the uuid, so the name is not claimed."""

    uuid: str
    fq_name: FqName
    parent: tuple[str, str] | None
    own_uuid: bool


def read_identity(database: Database, kind: Kind, body: Object) -> Identity:
    """Returns the identity in the body of a create. Raises ApiError if it is malformed or its parent is missing."""
    given = body.get("uuid")
    fq_name = _read_name(body)
    parent = _find_parent(database, kind, body.get("parent_type"), fq_name)
    return Identity(str(uuid.uuid4()) if given is None else _read_uuid(given), fq_name, parent, given is not None)


def check_unused(database: Database, kind: Kind, identity: Identity) -> None:
    """Raises ApiError if the uuid or the name exists. Another create may pass at the same time."""
    if (other := database.objects.get(identity.uuid)) is not None:
        raise ApiError(409, f"{identity.uuid} already exists with fq_name: {list(other.fq_name)}")
    found = database.named(kind, identity.fq_name)
    if len(found) > 1:
        raise duplicate_name(identity.fq_name)
    if found:
        raise ApiError(409, f"{list(identity.fq_name)} already exists with uuid: {found[0]}")


def claim_name(database: Database, kind: Kind, identity: Identity) -> None:
    """Claims the name, unless the body brought a uuid. Raises ApiError."""
    path = claim_path(kind, identity.fq_name)
    if not identity.own_uuid and (holder := database.claim(path, identity.uuid)) is not None:
        raise ApiError(409, f"FQ Name: {path} exists already with ID: {holder} at zookeeper")


def claim_path(kind: Kind, fq_name: FqName) -> str:
    return f"double/fq-name-to-uuid/{kind.underscored}:{':'.join(fq_name)}"


def duplicate_name(fq_name: FqName) -> ApiError:
    return ApiError(500, f"VncError: several uuids for {list(fq_name)}")  # only the status was measured


def _read_name(body: Object) -> FqName:
    if not body.get("fq_name"):
        raise ApiError(400, "Bad Request, no fq_name in POST body")
    if ":" in body["fq_name"][-1]:
        raise ApiError(400, "Bad Request, name has one of invalid chars {':'}")
    return tuple(body["fq_name"])


def _read_uuid(text: str) -> str:
    try:
        canonical = str(uuid.UUID(text))
    except ValueError as error:
        raise ApiError(500, "Internal Server Error") from error
    if canonical != text:
        raise ApiError(400, f"Invalid UUID format: {text}")
    return text


def _find_parent(database: Database, kind: Kind, parent_type: str | None, fq_name: FqName) -> tuple[str, str] | None:
    if not kind.parents:
        if len(fq_name) != 1:
            raise ApiError(400, f"Invalid fq-name of an object with no parent: {list(fq_name)}")
        return None
    if parent_type is None and len(kind.parents) == 1:
        return None  # accepted, but the object has no parent then
    if parent_type not in kind.parents:
        raise ApiError(400, f"Missing parent type: {parent_type}. Allowed types: {list(kind.parents)}")
    found = database.named(parent_type, fq_name[:-1])
    if not found and parent_type == "domain":
        raise ApiError(400, f"Parent {list(fq_name[:-1])} type domain does not exist")
    if not found:
        raise ApiError(404, f"Name{list(fq_name[:-1])} not found")
    return parent_type, found[0]

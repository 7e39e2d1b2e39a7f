"""Actions: requests that belong to no collection."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.contrail_api.api_errors import ApiError, internal_error, name_not_found, unknown_id
from tests.support.contrail_api.behaviour import Behaviour
from tests.support.contrail_api.bodies import check_annotation
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import MAPS, find_kind
from tests.support.contrail_api.names import duplicate_name
from tests.support.contrail_api.pauses import Pauses
from tests.support.contrail_api.stored import Object, Stored, annotation_map
from tests.support.contrail_api.writes import Writes

Action = Callable[[Object], Coroutine[Any, Any, Object | None]]
"""Returns the response; None is an empty one."""


class Actions:
    """`by_path` are the actions, without the leading slash."""

    def __init__(self, database: Database, behaviours: dict[str, Behaviour], writes: Writes, pauses: Pauses) -> None:
        self._database = database
        self._behaviours = behaviours
        self._writes = writes
        self._pauses = pauses
        self.by_path: dict[str, Action] = {
            "fqname-to-id": self._name_to_id,
            "id-to-fqname": self._id_to_name,
            "ref-update": self._update_reference,
            "ref-relax-for-delete": self._relax_reference,
            "prop-collection-update": self._update_collection,
        }

    async def _name_to_id(self, body: Object) -> Object:
        if "fq_name" not in body:
            raise internal_error()
        kind = find_kind(body["type"])
        if kind is None:
            raise ApiError(404, f"Resource type '{body['type']}' not found")
        return {"uuid": self._named(kind.name, body["fq_name"])}

    async def _id_to_name(self, body: Object) -> Object:
        stored = self._database.objects.get(body["uuid"])
        if stored is None:
            raise ApiError(404, f"UUID {body['uuid']} not found")
        return {"fq_name": list(stored.fq_name), "type": stored.kind.name}

    async def _update_reference(self, body: Object) -> Object:
        stored = self._object(body["uuid"])
        kind = body["ref-type"].replace("_", "-")
        operation = body.get("operation")
        if operation not in ("ADD", "DELETE"):
            raise ApiError(400, f"Bad Request: operation should be add or delete: {operation}")
        target = self._target(body, kind, must_exist=operation == "ADD")
        if operation == "ADD":
            self._behaviours[stored.kind.name].check_reference(stored, kind, target)
        await self._pauses.before_claim()
        if operation == "ADD":
            self._database.refer(stored, kind, target, body.get("attr"))
        else:
            self._database.unrefer(stored, kind, target)
        self._writes.changed(stored)
        return {"uuid": stored.uuid}

    async def _relax_reference(self, body: Object) -> Object:
        stored = self._object(body["uuid"])
        stored.relaxed.add(body["ref-uuid"])
        return {"uuid": stored.uuid}

    async def _update_collection(self, body: Object) -> None:
        stored = self._database.objects.get(body["uuid"])
        if stored is None:
            raise ApiError(404, f"Object Not Found: {body['uuid']}")
        for update in body["updates"]:
            _check_update(update)
        await self._pauses.before_claim()
        for update in body["updates"]:
            _apply(stored.properties, update)
        self._writes.changed(stored)

    def _target(self, body: Object, kind: str, *, must_exist: bool) -> str:
        if uuid := body.get("ref-uuid"):
            if must_exist:  # of any type
                self._object(uuid)
            return str(uuid)
        if fq_name := body.get("ref-fq-name"):
            return self._named(kind, fq_name)
        raise ApiError(400, "Bad Request: ref-uuid or ref-fq-name must be specified")

    def _named(self, kind: str, fq_name: list[str]) -> str:
        found = self._database.named(kind, tuple(fq_name))
        if len(found) > 1:
            raise duplicate_name(tuple(fq_name))
        if not found:
            raise name_not_found(fq_name)
        return found[0]

    def _object(self, uuid: str) -> Stored:
        if uuid not in self._database.objects:
            raise unknown_id(uuid)
        return self._database.objects[uuid]


def _check_update(update: Object) -> None:
    field, operation = update["field"], update["operation"]
    if field not in MAPS:
        raise ApiError(400, f'{field} neither "ListProperty" nor "MapProperty"')
    if operation not in ("set", "delete"):
        raise ApiError(400, f"Unsupported operation {operation} on a map: {field}")
    if operation == "set":
        if not update.get("value"):
            raise internal_error()
        check_annotation(update["value"].get("value"))


def _apply(properties: Object, update: Object) -> None:
    pairs: list[Any] = list((properties.get(update["field"]) or {}).get("key_value_pair", []))
    if update["operation"] == "set":
        pairs.append(update["value"])
    else:
        pairs = [pair for pair in pairs if pair["key"] != update["position"]]
    properties[update["field"]] = annotation_map(pairs)
    if not pairs:
        del properties[update["field"]]

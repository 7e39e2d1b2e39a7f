"""Creates, updates and deletes: checks, then claims, then the write, with a pause after each step."""

from tests.support.contrail_api.api_errors import ApiError, unknown_id
from tests.support.contrail_api.behaviour import Behaviour
from tests.support.contrail_api.bodies import properties
from tests.support.contrail_api.database import Database
from tests.support.contrail_api.kinds import Kind
from tests.support.contrail_api.names import check_unused, claim_name, claim_path, read_identity
from tests.support.contrail_api.pauses import Pauses
from tests.support.contrail_api.references import resolve_for_create, resolve_for_update
from tests.support.contrail_api.stored import Object, Stored, common_properties

SYSTEM_CHILDREN = frozenset({"routing-instance", "application-policy-set"})
"""Types that the server creates with their parent, and deletes with it."""


class Writes:
    """Writes of objects of all types."""

    def __init__(self, database: Database, behaviours: dict[str, Behaviour], pauses: Pauses) -> None:
        self._database = database
        self._behaviours = behaviours
        self._pauses = pauses

    async def create(self, kind: Kind, body: Object) -> Stored:
        behaviour = self._behaviours[kind.name]
        identity = read_identity(self._database, kind, body)
        check_unused(self._database, kind, identity)
        behaviour.check_body(body)
        new = Stored(kind, identity.uuid, identity.fq_name, identity.parent)
        new.properties = {**common_properties(new.uuid, body, new.fq_name[-1]), **properties(kind, body)}
        new.properties = {key: value for key, value in new.properties.items() if value is not None}
        new.references = resolve_for_create(self._database, kind, body)
        claim = behaviour.check_create(new)
        await self._pauses.before_claim()
        claim_name(self._database, kind, identity)
        try:
            claim()
        except ApiError:
            self._unclaim_name(new)
            raise
        await self._pauses.before_write()
        stored = self._database.write(new)
        behaviour.created(stored)
        return stored

    async def update(self, kind: Kind, uuid: str, body: Object) -> Stored:
        stored = find(self._database, kind, uuid)
        changed = properties(kind, body)
        references = resolve_for_update(self._database, kind, body)
        self._behaviours[kind.name].check_update(stored, changed, references)
        await self._pauses.before_claim()
        self._set(stored, changed, body)
        for target, attributes in references.items():
            for gone in set(stored.references.get(target, ())) - set(attributes):
                self._database.unrefer(stored, target, gone)
            stored.references[target] = {}
            for other, attribute in attributes.items():
                self._database.refer(stored, target, other, attribute)
        self.changed(stored)
        return stored

    async def delete(self, kind: Kind, uuid: str, base: str) -> None:
        if uuid not in self._database.objects:
            raise ApiError(404, f"ID {uuid} does not exist")
        stored = find(self._database, kind, uuid)
        self._check_unreferred(stored, base)
        self._behaviours[kind.name].check_delete(stored)
        await self._pauses.before_claim()
        if uuid not in self._database.objects:
            return  # deleted meanwhile: both succeed
        self._unclaim_name(stored)
        for child in self._database.children(uuid):
            self._database.remove(child)
        self._database.remove(stored)
        self._behaviours[kind.name].deleted(stored)

    def changed(self, stored: Stored) -> None:
        """Notes a change of an object, also one without effect."""
        stored.touch()
        self._database.publish("update", stored)

    def _set(self, stored: Stored, changed: Object, body: Object) -> None:
        for key, value in changed.items():
            if value is None:
                stored.properties.pop(key, None)
            else:
                stored.properties[key] = value
        if "display_name" in body:
            stored.properties["display_name"] = body["display_name"]
        for key in ("id_perms", "perms2"):
            if isinstance(sent := body.get(key), dict):
                stored.properties[key] = {**stored.properties[key], **sent}

    def _check_unreferred(self, stored: Stored, base: str) -> None:
        children = [one for one in self._database.children(stored.uuid) if one.kind.name not in SYSTEM_CHILDREN]
        if children:
            hrefs = [f"{base}{child.path}" for child in children]
            raise ApiError(409, f"Delete when children still present: {hrefs}")
        referrers = [one for one in self._database.referrers(stored.uuid) if stored.uuid not in one.relaxed]
        if referrers:
            hrefs = [f"{base}{one.path}" for one in referrers]
            raise ApiError(409, f"Delete when resource still referred: {hrefs}")

    def _unclaim_name(self, stored: Stored) -> None:
        self._database.unclaim(claim_path(stored.kind, stored.fq_name), stored.uuid)


def find(database: Database, kind: Kind, uuid: str) -> Stored:
    """Returns an object of a type. Raises ApiError."""
    stored = database.objects.get(uuid)
    if stored is None:
        raise unknown_id(uuid)
    if stored.kind != kind:
        raise ApiError(404, f"No {kind.name} object found for id {uuid}")
    return stored

"""What the manager was told, and what it must be told next.

Order within one look at the folder: pods that are gone come first, since their names and addresses may be what the new
ones want, and a network goes with its last interface; then definitions that are gone, before others take their place;
then what is there, namespaces and definitions before the pods that name them; problems last, when the objects that they
are about are known.

A pod or definition whose manifest states no uid gets one when it appears. It is remembered before anyone hears of it,
and forgotten before anyone hears that it is gone: so after a kill at any moment an object that stayed is the same one,
and one that came back is not.
"""

import uuid
from collections.abc import Iterable, Mapping

import msgspec

from contrail_config.objects import pod_uuid
from manager.manifests.inventory import FolderState
from manager.manifests.problems import ObjectKey
from manager.source import Applied, Gone, IdentityLog, Nad, Namespace, Pod, Problem, SourceEvent

Object = Pod | Nad | Namespace

_GONE_ORDER = ("Pod", "NetworkAttachmentDefinition", "Namespace")
_APPLIED_ORDER = ("Namespace", "NetworkAttachmentDefinition", "Pod")


class DeliveredObjects:
    """Objects as they were told; `load` comes first."""

    def __init__(self, identities: IdentityLog) -> None:
        self._identities = identities
        self._remembered: dict[ObjectKey, str] = {}
        self._stated: dict[ObjectKey, Object] = {}
        self._told: dict[ObjectKey, Object] = {}
        self._problems: frozenset[Problem] = frozenset()

    async def load(self) -> None:
        """Learns which uids were given before the last start."""
        self._remembered = await self._identities.identities()

    async def events(self, view: FolderState) -> list[SourceEvent]:
        """What changed since the last view."""
        absent = self._told.keys() - view.objects.keys()
        gone = {key: told for key, told in self._told.items() if key in absent}
        for key in gone:
            await self._forget(key)
        if view.complete:
            await self._forget_orphans(view)
        changed = await self._changed(view)
        replaced = {key: self._told[key] for key in changed if _is_another(self._told.get(key), changed[key])}
        self._told = {key: told for key, told in self._told.items() if key not in absent} | changed
        return [
            *(Gone(told) for told in _in_order(gone | replaced, _GONE_ORDER)),
            *(Applied(told) for told in _in_order(changed, _APPLIED_ORDER)),
            *self._new_problems(view.problems),
        ]

    async def _changed(self, view: FolderState) -> dict[ObjectKey, Object]:
        stated = {key: found.object for key, found in view.objects.items()}
        restated = {key: one for key, one in stated.items() if self._stated.get(key) != one}
        self._stated = stated
        identified = {key: await self._identify(key, one) for key, one in restated.items()}
        return {key: one for key, one in identified.items() if self._told.get(key) != one}

    async def _identify(self, key: ObjectKey, stated: Object) -> Object:
        """The object with its uid: a UUID, stated or given."""
        if isinstance(stated, Namespace):
            return stated
        if stated.uid:
            await self._forget(key)
            return msgspec.structs.replace(stated, uid=pod_uuid(stated.uid))
        if key not in self._remembered:
            uid = _uid(self._told.get(key)) or str(uuid.uuid4())
            await self._identities.remember_identity(*key, uid)
            self._remembered[key] = uid
        return msgspec.structs.replace(stated, uid=self._remembered[key])

    async def _forget_orphans(self, view: FolderState) -> None:
        """What disappeared while nobody looked."""
        for key in self._remembered.keys() - view.objects.keys():
            await self._forget(key)

    async def _forget(self, key: ObjectKey) -> None:
        if key in self._remembered:
            await self._identities.forget_identity(*key)
            del self._remembered[key]

    def _new_problems(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems that were not there in the last view, with the uid of the object where it has one."""
        current = list(dict.fromkeys(problems))
        new = [problem for problem in current if problem not in self._problems]
        self._problems = frozenset(current)
        return [msgspec.structs.replace(problem, uid=self._uid_of(problem)) for problem in new]

    def _uid_of(self, problem: Problem) -> str:
        return _uid(self._told.get((problem.kind, problem.namespace, problem.name)))


def _in_order(objects: Mapping[ObjectKey, Object], kinds: tuple[str, ...]) -> list[Object]:
    return [one for kind in kinds for key, one in objects.items() if key[0] == kind]


def _is_another(told: Object | None, changed: Object) -> bool:
    return told is not None and _uid(told) != _uid(changed)


def _uid(told: Object | None) -> str:
    """Empty for what has none."""
    return told.uid if isinstance(told, Pod | Nad) else ""

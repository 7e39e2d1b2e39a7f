"""Objects that were delivered to the manager; compares them with the folder and returns the events that are due.

Order of the events of one scan: removed pods first, since new ones may need their names and addresses, and a network is
deleted with its last interface; then removed definitions, before others replace them; then new and changed objects,
namespaces and definitions before the pods that refer to them; problems last, when their objects are known.

A pod or definition without a uid in its manifest is given one when it appears. The uid is stored before the object is
delivered, and removed before its removal is delivered. So, after a crash at any moment, an object that stayed keeps its
uid, and an object that was removed and came back has a new one.
"""

import uuid
from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from contrail_config.objects import pod_uuid
from manager.manifests.inventory import FolderState
from manager.manifests.problems import ObjectKey
from manager.source import Applied, Gone, IdentityLog, Nad, Namespace, Pod, Problem, SourceEvent
from manager.store_space import once_there_is_space

Object = Pod | Nad | Namespace

_GONE_ORDER = ("Pod", "NetworkAttachmentDefinition", "Namespace")
_APPLIED_ORDER = ("Namespace", "NetworkAttachmentDefinition", "Pod")


class DeliveredObjects:
    """The delivered objects; call `load` first."""

    def __init__(self, identities: IdentityLog) -> None:
        self._identities = identities
        self._uids: dict[ObjectKey, str] = {}
        self._declared: dict[ObjectKey, Object] = {}
        self._delivered: dict[ObjectKey, Object] = {}
        self._problems: frozenset[Problem] = frozenset()

    async def load(self) -> None:
        """Loads the uids that were assigned before the last start."""
        self._uids = await self._identities.identities()

    async def events(self, state: FolderState) -> list[SourceEvent]:
        """Returns the events for the changes since the last state."""
        missing = self._delivered.keys() - state.objects.keys()
        removed = {key: one for key, one in self._delivered.items() if key in missing}
        for key in removed:
            await self._forget(key)
        # An incomplete state may lack objects of files that cannot be read.
        if state.complete:
            await self._forget_orphans(state)
        changed = await self._changed(state)
        # For the consumer, another uid is a removal followed by an addition.
        replaced = {
            key: before
            for key, one in changed.items()
            if (before := self._delivered.get(key)) is not None and _uid(before) != _uid(one)
        }
        self._delivered = {key: one for key, one in self._delivered.items() if key not in missing} | changed
        return [
            *(Gone(one) for one in _in_order(removed | replaced, _GONE_ORDER)),
            *(Applied(one) for one in _in_order(changed, _APPLIED_ORDER)),
            *self._new_problems(state.problems),
        ]

    async def _changed(self, state: FolderState) -> dict[ObjectKey, Object]:
        declared = {key: found.object for key, found in state.objects.items()}
        # Compared without uids, so that unchanged objects cost no access to the store.
        redeclared = {key: one for key, one in declared.items() if self._declared.get(key) != one}
        self._declared = declared
        identified = {key: await self._identify(key, one) for key, one in redeclared.items()}
        return {key: one for key, one in identified.items() if self._delivered.get(key) != one}

    async def _identify(self, key: ObjectKey, declared: Object) -> Object:
        """Returns the object with its uid: a UUID, from the manifest or assigned here."""
        if isinstance(declared, Namespace):
            return declared
        if declared.uid:
            await self._forget(key)
            return msgspec.structs.replace(declared, uid=pod_uuid(declared.uid))
        if key not in self._uids:
            # A uid that was removed from the manifest is kept: the object is the same.
            uid = _uid(self._delivered.get(key)) or str(uuid.uuid4())
            await once_there_is_space(partial(self._identities.remember_identity, *key, uid))
            self._uids[key] = uid
        return msgspec.structs.replace(declared, uid=self._uids[key])

    async def _forget_orphans(self, state: FolderState) -> None:
        """Removes the uids of objects that disappeared while the manager was not running."""
        for key in self._uids.keys() - state.objects.keys():
            await self._forget(key)

    async def _forget(self, key: ObjectKey) -> None:
        if key in self._uids:
            await once_there_is_space(partial(self._identities.forget_identity, *key))
            del self._uids[key]

    def _new_problems(self, problems: Iterable[Problem]) -> list[Problem]:
        """Returns problems that are not in the last state, with the uid of the object if it has one."""
        current = list(dict.fromkeys(problems))
        new = [problem for problem in current if problem not in self._problems]
        self._problems = frozenset(current)
        return [msgspec.structs.replace(problem, uid=self._uid_of(problem)) for problem in new]

    def _uid_of(self, problem: Problem) -> str:
        return _uid(self._delivered.get((problem.kind, problem.namespace, problem.name)))


def _in_order(objects: Mapping[ObjectKey, Object], kinds: tuple[str, ...]) -> list[Object]:
    return [one for kind in kinds for key, one in objects.items() if key[0] == kind]


def _uid(delivered: Object | None) -> str:
    """Returns the uid; empty if there is none."""
    return delivered.uid if isinstance(delivered, Pod | Nad) else ""

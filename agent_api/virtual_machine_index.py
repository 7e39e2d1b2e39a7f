"""The machines of this node as the config store tells them, found by name and by uuid.

Identity is the uuid; a name only leads to machines. Two may bear one name for a moment: the pod was made anew, and
its old machine is not deleted yet. Asked by name alone the newest answers, that is the one that the watch added last,
whatever changes the old one still sees; asked with the pod's uid, the one that is this pod's, or none. The deletion
of the old one takes away the old one only.

After a break of the watch the list comes anew. What is known stays served meanwhile, and keeps its rank; what the new
list lacks is dropped at its end.
"""

import asyncio
import contextlib

import msgspec

from agent_api.errors import MachineUnservableError
from agent_api.responses import vm_cfg
from agent_api.waiters import Waiters
from contrail_config.objects import VirtualMachine, pod_uuid
from contrail_config.store import Change, ChangeType

_MOST_PREPARED = 1024  # more than a node of a cluster has


class ServedMachine:
    """A machine and its answer to `/vm-cfg`, encoded once and kept until the machine changes."""

    __slots__ = ("_answer", "machine")

    def __init__(self, machine: VirtualMachine) -> None:
        self.machine = machine
        self._answer: bytes | None = None

    def vm_cfg(self) -> bytes:
        """Returns the answer as JSON. Raises MachineUnservableError."""
        if self._answer is None:
            self._answer = msgspec.json.encode(vm_cfg(self.machine))
        return self._answer

    def prepare(self) -> None:
        """Encodes the answer before it is asked for; what keeps it from being served is told then."""
        with contextlib.suppress(MachineUnservableError):
            self.vm_cfg()

    def is_of(self, uid: str | None) -> bool:
        """Tells whether it is the machine of the pod of this uid (a static pod's is its config hash); None: any."""
        return uid is None or uid == self.machine.config_hash or pod_uuid(uid) == self.machine.uuid


class VirtualMachineIndex:
    """All machines of this node; `listed`: whether all were told of, once."""

    def __init__(self, waiters: Waiters | None = None) -> None:
        self.waiters = Waiters() if waiters is None else waiters
        self._by_uuid: dict[str, ServedMachine] = {}
        self._by_name: dict[str, dict[str, ServedMachine]] = {}  # by uuid inside, the oldest first
        self._listed: set[str] | None = None  # while a list comes: whom it named
        self.listed = False

    def __len__(self) -> int:
        """The number of machines."""
        return len(self._by_uuid)

    def begin_list(self) -> None:
        """A new list begins: what it will not name by its end is gone."""
        self._listed = set()

    def take(self, change: Change[VirtualMachine]) -> None:
        """Takes one change of the watch."""
        if change.object is None:
            self._end_list()
        elif change.type is ChangeType.DELETED:
            self._drop(change.object.uuid)
        else:
            self._put(change.object)

    def with_uuid(self, uuid: str) -> VirtualMachine | None:
        """Returns the machine of this uuid, None if there is none."""
        served = self._by_uuid.get(uuid)
        return None if served is None else served.machine

    def named(self, name: str, *, uid: str | None = None) -> ServedMachine | None:
        """Returns the newest machine of the name that is the pod's of this uid; None if it has no list yet."""
        for served in reversed(self._by_name.get(name, {}).values()):
            if served.is_of(uid):
                return served if served.machine.interfaces else None
        return None

    async def awaited(self, name: str, *, uid: str | None = None, seconds: float) -> ServedMachine | None:
        """Returns what `named` does as soon as it is there, None if the time is over.

        Raises NotReadyError, OverloadedError.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (served := self.named(name, uid=uid)) is None:
                    await self.waiters.woken(name)
                return served
        return None

    def _put(self, machine: VirtualMachine) -> None:
        before = self._by_uuid.get(machine.uuid)
        if before is not None and before.machine.name != machine.name:
            self._drop(machine.uuid)
        served = ServedMachine(machine)
        if self._listed is not None:
            self._listed.add(machine.uuid)
        self._by_uuid[machine.uuid] = served
        self._by_name.setdefault(machine.name, {})[machine.uuid] = served
        self.waiters.wake(machine.name)
        if len(self) <= _MOST_PREPARED:
            served.prepare()

    def _drop(self, uuid: str) -> None:
        served = self._by_uuid.pop(uuid, None)
        if served is None:
            return
        of_name = self._by_name[served.machine.name]
        del of_name[uuid]
        if not of_name:
            del self._by_name[served.machine.name]

    def _end_list(self) -> None:
        if self._listed is None:
            return
        for uuid in self._by_uuid.keys() - self._listed:
            self._drop(uuid)
        self._listed = None
        self.listed = True

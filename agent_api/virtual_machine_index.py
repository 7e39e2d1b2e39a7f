"""Index of this node's VirtualMachines by name and uuid, as received from the config store.

The uuid is the identity; a name may briefly have two VirtualMachines, if a pod was recreated and its predecessor is not
deleted yet. A lookup by name returns the newest one, that is the one that the watch added last, regardless of later
changes of the old one. A lookup by name and pod uid returns the one of that pod, or none. Deleting the old one leaves
the new one in place.

A pending VirtualMachine has no interfaces and is neither listed nor found by name or uuid: it only says why the pod
waits. Like any without interfaces, it hides an older one of its name.

After an interrupted watch the list is repeated. Known VirtualMachines stay served and keep their order meanwhile; those
missing in the new list are removed at its end.
"""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec

from agent_api.datapath.vni_users import VniUsers
from agent_api.errors import UnservableVirtualMachineError
from agent_api.responses import DatapathKeys, configured_interfaces
from agent_api.waiters import Waiters
from contrail_config.objects import Pending, VirtualMachine, pod_uuid
from contrail_config.store import Change, ChangeType

_MAX_PRE_ENCODED = 1024  # more than a node of a cluster has


INCOMPLETE = "NetworkIncomplete"
"""Reason of a VirtualMachine that is held back."""


def _never(_virtual_machine: VirtualMachine) -> str | None:
    """Holds nothing back."""
    return None


class ServedVirtualMachine:
    """A VirtualMachine and its `/vm-cfg` response, encoded once and cached until it changes."""

    # Slots and one encoded response per VirtualMachine: a node has hundreds of them.
    __slots__ = ("_datapath", "_response", "virtual_machine")

    def __init__(self, virtual_machine: VirtualMachine, *, datapath: DatapathKeys | None) -> None:
        self.virtual_machine = virtual_machine
        self._datapath = datapath
        self._response: bytes | None = None

    def vm_cfg(self) -> bytes:
        """Returns the response as JSON. Raises UnservableVirtualMachineError."""
        # What is refused depends on other virtual machines, and on ports, so it is not cached.
        if self._datapath is not None and (refused := self._datapath.refused_interfaces(self.virtual_machine)):
            return msgspec.json.encode(configured_interfaces(self.virtual_machine, self._datapath, refused))
        if self._response is None:
            self._response = msgspec.json.encode(configured_interfaces(self.virtual_machine, self._datapath))
        return self._response

    def encode(self) -> None:
        """Encodes the response ahead of the first request; an error is raised only on a request."""
        with contextlib.suppress(UnservableVirtualMachineError):
            self.vm_cfg()

    def belongs_to(self, uid: str | None) -> bool:
        """Returns whether the pod has this uid (a static pod: its config hash); None matches any pod."""
        return uid is None or uid == self.virtual_machine.config_hash or pod_uuid(uid) == self.virtual_machine.uuid


class VirtualMachineIndex:
    """All VirtualMachines of this node; `synced` is True once they were listed completely."""

    def __init__(self) -> None:
        self.datapath: DatapathKeys | None = None
        """What responses say of the datapath; to be set before the first change."""

        self.vnis = VniUsers()
        self.waiters = Waiters()
        self._by_uuid: dict[str, ServedVirtualMachine] = {}
        self._pending: set[str] = set()  # uuids
        self._by_name: dict[str, dict[str, ServedVirtualMachine]] = {}  # inner key: uuid; oldest first
        self._listed: set[str] | None = None  # uuids in the list in progress
        self.synced = False
        self._on_change: Callable[[], None] | None = None
        self._held_back: Callable[[VirtualMachine], str | None] = _never
        self._awaited: set[str] = set()  # uuids that were held back when a request began to wait for them
        self._recheck_scheduled = False

    def __len__(self) -> int:
        """The number of VirtualMachines without the pending ones."""
        return len(self._by_uuid) - len(self._pending)

    def all(self) -> list[VirtualMachine]:
        """Returns all VirtualMachines without the pending ones."""
        return [served.virtual_machine for uuid, served in self._by_uuid.items() if uuid not in self._pending]

    def on_change(self, callback: Callable[[], None]) -> None:
        """Calls back after each change from now on; `callback` must neither wait nor raise."""
        self._on_change = callback

    def hold_back(self, reason: Callable[[VirtualMachine], str | None]) -> None:
        """Makes `find` find a VirtualMachine only while there is no reason to wait with it."""
        self._held_back = reason

    def recheck(self) -> None:
        """Notes that what was held back may not be any more; requests are woken once per iteration of the event loop.

        Changes of slices come by the thousand, and any local process may wait for names that do not exist: neither
        may multiply the work of the other. Only requests whose virtual machine is released are woken.
        """
        if self._awaited and not self._recheck_scheduled:
            self._recheck_scheduled = True
            asyncio.get_running_loop().call_soon(self._wake_released)

    def begin_list(self) -> None:
        """Starts a new list; VirtualMachines that it does not contain are removed at its end."""
        self._listed = set()

    def apply(self, change: Change[VirtualMachine]) -> None:
        """Applies one change of the watch."""
        if change.object is None:
            self._end_list()
        elif change.type is ChangeType.DELETED:
            self._remove(change.object.uuid)
        else:
            self._put(change.object)
        if self._on_change is not None:
            self._on_change()

    def by_uuid(self, uuid: str) -> VirtualMachine | None:
        """Returns the VirtualMachine of this uuid, None if it does not exist or is pending."""
        served = self._by_uuid.get(uuid)
        return None if served is None or uuid in self._pending else served.virtual_machine

    def find(self, name: str, *, uid: str | None = None) -> ServedVirtualMachine | None:
        """Returns the newest VirtualMachine of the name and pod uid.

        None if there is none, if it has no interfaces yet, or if it is held back.
        """
        served = self._newest(name, uid)
        if served is None or not served.virtual_machine.interfaces:
            return None
        return served if self._held_back(served.virtual_machine) is None else None

    def pending_reason(self, name: str, *, uid: str | None = None) -> Pending | None:
        """Returns why the pod of this name and uid has no interfaces yet, None if that is not known."""
        served = self._newest(name, uid)
        if served is None:
            return None
        if served.virtual_machine.is_pending:
            return served.virtual_machine.pending
        reason = self._held_back(served.virtual_machine)
        return None if reason is None else Pending(INCOMPLETE, reason)

    async def wait_for(self, name: str, *, uid: str | None = None, seconds: float) -> ServedVirtualMachine | None:
        """Returns the result of `find` as soon as there is one, None after a time-out.

        Raises NotReadyError.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (served := self.find(name, uid=uid)) is None:
                    self._await_release(name, uid)
                    await self.waiters.wait(name)
                return served
        return None

    def _await_release(self, name: str, uid: str | None) -> None:
        served = self._newest(name, uid)
        if served is not None and served.virtual_machine.interfaces:
            self._awaited.add(served.virtual_machine.uuid)

    def _wake_released(self) -> None:
        self._recheck_scheduled = False
        for uuid in list(self._awaited):
            served = self._by_uuid.get(uuid)
            if served is None:
                self._awaited.discard(uuid)
            elif self._held_back(served.virtual_machine) is None:
                self._awaited.discard(uuid)
                self.waiters.wake(served.virtual_machine.name)

    def _newest(self, name: str, uid: str | None) -> ServedVirtualMachine | None:
        of_name = reversed(self._by_name.get(name, {}).values())
        return next((served for served in of_name if served.belongs_to(uid)), None)

    def _put(self, virtual_machine: VirtualMachine) -> None:
        # The name of a VirtualMachine may change in the store; the entry under the old name must go.
        before = self._by_uuid.get(virtual_machine.uuid)
        if before is not None and before.virtual_machine.name != virtual_machine.name:
            self._remove(virtual_machine.uuid)
        served = ServedVirtualMachine(virtual_machine, datapath=self.datapath)
        if (known := self._by_uuid.get(virtual_machine.uuid)) is not None:
            self.vnis.remove(known.virtual_machine)
        self.vnis.add(virtual_machine)
        if self._listed is not None:
            self._listed.add(virtual_machine.uuid)
        self._by_uuid[virtual_machine.uuid] = served
        # Assigning to an existing key keeps its position, so a change of an old VirtualMachine does not make it newest.
        self._by_name.setdefault(virtual_machine.name, {})[virtual_machine.uuid] = served
        if virtual_machine.is_pending:
            self._pending.add(virtual_machine.uuid)
            return
        self._pending.discard(virtual_machine.uuid)
        self.waiters.wake(virtual_machine.name)
        # Encoding ahead takes the cost off the path of ADD; beyond the limit memory matters more.
        if len(self) <= _MAX_PRE_ENCODED:
            served.encode()

    def _remove(self, uuid: str) -> None:
        served = self._by_uuid.pop(uuid, None)
        if served is None:
            return
        self.vnis.remove(served.virtual_machine)
        self._pending.discard(uuid)
        same_name = self._by_name[served.virtual_machine.name]
        del same_name[uuid]
        if not same_name:
            del self._by_name[served.virtual_machine.name]

    def _end_list(self) -> None:
        if self._listed is None:  # without a list in progress its end proves nothing
            return
        for uuid in self._by_uuid.keys() - self._listed:
            self._remove(uuid)
        self._listed = None
        self.synced = True

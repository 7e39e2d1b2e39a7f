"""State machine for watches: replaying the changes that a watcher saw yields the content of the store."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType, WatchStart
from tests.contrail_config.store_machine import StoreMachine
from tests.support.virtual_machines import make_virtual_machine

NODES = ["n1", "n2"]
PODS = [f"p{n}" for n in range(12)]

VirtualMachines = dict[str, VirtualMachine]
"""By uuid."""


class Watched:
    """A watcher, its changes, and the changes that it must have seen if it started without a list."""

    def __init__(
        self,
        *,
        node: str | None,
        start: WatchStart,
        present: VirtualMachines,
    ) -> None:
        self.context = AsyncExitStack()  # of the watch
        self.node = node
        self.start = start
        self.seen: VirtualMachines = self.own(present) if start is WatchStart.NOW else {}
        self.delivered: list[tuple[ChangeType, str]] = []
        self.expected: list[tuple[ChangeType, str]] = []

    def own(self, virtual_machines: VirtualMachines) -> VirtualMachines:
        return {
            uuid: virtual_machine
            for uuid, virtual_machine in virtual_machines.items()
            if self.node in (None, virtual_machine.node)
        }

    def expect(self, before: VirtualMachines, after: VirtualMachines) -> None:
        old, new = self.own(before), self.own(after)
        for uuid in old.keys() | new.keys():
            if old.get(uuid) != new.get(uuid):
                here = ChangeType.MODIFIED if uuid in old else ChangeType.ADDED
                self.expected.append((here if uuid in new else ChangeType.DELETED, uuid))

    def take(self, change: Change[VirtualMachine]) -> None:
        """Replays a change, which must be consistent with the previous ones."""
        if change.object is None:
            assert change.type is ChangeType.SYNCED
            assert self.start is WatchStart.LIST
            return
        uuid = change.object.uuid
        self.delivered.append((change.type, uuid))
        if change.type is ChangeType.DELETED:
            assert self.seen.pop(uuid) == change.object
        else:
            assert (uuid in self.seen) == (change.type is ChangeType.MODIFIED)
            assert self.seen.get(uuid) != change.object
            self.seen[uuid] = change.object


class WatchMachine(StoreMachine):
    """Writes virtual machines while watchers come, read and go."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual_machines: VirtualMachines = {}
        self.watchers: list[tuple[Watched, AsyncIterator[Change[VirtualMachine]]]] = []

    @rule(pod=st.sampled_from(PODS), node=st.sampled_from(NODES), config_hash=st.sampled_from(["a", "b"]))
    def put(self, pod: str, node: str, config_hash: str) -> None:
        """Creates the pod's virtual machine, changes it or its node, or writes it unchanged."""
        old = next(
            (virtual_machine for virtual_machine in self.virtual_machines.values() if virtual_machine.pod == pod), None
        )
        virtual_machine = msgspec.structs.replace(old or make_virtual_machine(pod), node=node, config_hash=config_hash)
        self.run(self.store.put_virtual_machine(virtual_machine))
        self.change({**self.virtual_machines, virtual_machine.uuid: virtual_machine})

    @rule(pod=st.sampled_from(PODS))
    def delete(self, pod: str) -> None:
        for virtual_machine in [
            virtual_machine for virtual_machine in self.virtual_machines.values() if virtual_machine.pod == pod
        ]:
            self.run(self.store.delete_virtual_machine(virtual_machine.uuid))
            self.change(
                {uuid: stored for uuid, stored in self.virtual_machines.items() if uuid != virtual_machine.uuid}
            )

    @precondition(lambda self: len(self.watchers) < 6)
    @rule(start=st.sampled_from(WatchStart), node=st.sampled_from([None, *NODES]))
    def watch(self, start: WatchStart, node: str | None) -> None:
        watched = Watched(start=start, node=node, present=self.virtual_machines)
        context = self.store.watch_virtual_machines(start=start, node=node)
        self.watchers.append((watched, self.run(watched.context.enter_async_context(context))))

    @precondition(lambda self: self.watchers)
    @rule(data=st.data(), count=st.integers(1, 8))
    def read_some(self, data: st.DataObject, count: int) -> None:
        """Reads from one watcher, as long as a change is certainly pending."""
        watched, changes = data.draw(st.sampled_from(self.watchers))
        for _ in range(count):
            if watched.seen == watched.own(self.virtual_machines):
                return
            watched.take(self.run(anext(changes)))

    @precondition(lambda self: self.watchers)
    @rule(data=st.data())
    def stop_watching(self, data: st.DataObject) -> None:
        pair = data.draw(st.sampled_from(self.watchers))
        self.watchers.remove(pair)
        self.run(pair[0].context.aclose())

    @rule()
    def read_all(self) -> None:
        """Marks the current position by a new virtual machine on each node, and reads up to it."""
        marks = {node: make_virtual_machine(f"mark-{node}", node=node) for node in NODES}
        for mark in marks.values():
            self.run(self.store.put_virtual_machine(mark))
            self.change({**self.virtual_machines, mark.uuid: mark})
        for watched, changes in self.watchers:
            last = marks[watched.node or NODES[-1]]
            while watched.seen.get(last.uuid) != last or watched.seen != watched.own(self.virtual_machines):
                watched.take(self.run(anext(changes)))
            if watched.start is WatchStart.NOW:
                assert watched.delivered == watched.expected
        for mark in marks.values():
            self.run(self.store.delete_virtual_machine(mark.uuid))
            self.change({uuid: stored for uuid, stored in self.virtual_machines.items() if uuid != mark.uuid})

    def change(self, virtual_machines: VirtualMachines) -> None:
        for watched, _ in self.watchers:
            watched.expect(self.virtual_machines, virtual_machines)
        self.virtual_machines = virtual_machines

    def teardown(self) -> None:
        self.read_all()
        for watched, _ in self.watchers:
            self.run(watched.context.aclose())
        super().teardown()

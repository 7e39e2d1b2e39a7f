"""Two machines may bear one name while a pod is made anew: the newest answers, whatever comes of the old one."""

import uuid

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.support.machines import make_machine


def take(machines: VirtualMachineIndex, kind: ChangeType, machine: VirtualMachine | None = None) -> None:
    machines.apply(Change(type=kind, object=machine))


def answering(
    machines: VirtualMachineIndex, machine: VirtualMachine, *, uid: str | None = None
) -> VirtualMachine | None:
    served = machines.find(machine.name, uid=uid)
    return None if served is None else served.virtual_machine


@pytest.fixture
def machines() -> VirtualMachineIndex:
    return VirtualMachineIndex()


@pytest.fixture
def old(machines: VirtualMachineIndex) -> VirtualMachine:
    machine = make_machine()
    take(machines, ChangeType.ADDED, machine)
    return machine


@pytest.fixture
def new(machines: VirtualMachineIndex, old: VirtualMachine) -> VirtualMachine:
    machine = make_machine()
    take(machines, ChangeType.ADDED, machine)
    return machine


def test_the_newest_answers(machines: VirtualMachineIndex, new: VirtualMachine) -> None:
    assert answering(machines, new) == new


def test_a_change_of_the_old_one_does_not_make_it_the_newest(
    machines: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    take(machines, ChangeType.MODIFIED, old)
    assert answering(machines, new) == new


def test_the_deletion_of_the_old_one_leaves_the_new_one(
    machines: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    take(machines, ChangeType.DELETED, old)
    assert answering(machines, new) == new
    assert machines.by_uuid(old.uuid) is None


def test_asked_by_uid_each_answers_for_itself(
    machines: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    assert answering(machines, old, uid=old.uuid) == old
    assert answering(machines, new, uid=new.uuid) == new


def test_the_newest_without_a_list_hides_the_old_one(machines: VirtualMachineIndex, old: VirtualMachine) -> None:
    take(machines, ChangeType.ADDED, make_machine(interfaces=()))
    assert answering(machines, old) is None


def test_a_machine_of_another_name_than_before_is_found_by_the_new_one_alone(
    machines: VirtualMachineIndex, old: VirtualMachine
) -> None:
    renamed = make_machine("renamed", uid=old.uuid)
    take(machines, ChangeType.MODIFIED, renamed)
    assert answering(machines, renamed) == renamed
    assert answering(machines, old) is None


def test_what_a_new_list_lacks_is_served_until_its_end_and_gone_then(
    machines: VirtualMachineIndex, old: VirtualMachine
) -> None:
    machines.begin_list()
    listed = make_machine("listed")
    take(machines, ChangeType.ADDED, listed)
    assert answering(machines, old) == old
    take(machines, ChangeType.SYNCED)
    assert answering(machines, old) is None
    assert answering(machines, listed) == listed


def test_a_recreated_machine_of_a_new_list_answers_before_the_list_ends(
    machines: VirtualMachineIndex, old: VirtualMachine
) -> None:
    machines.begin_list()
    new = make_machine()
    take(machines, ChangeType.ADDED, new)
    assert answering(machines, new) == new


def test_a_list_that_broke_off_drops_nothing(machines: VirtualMachineIndex, old: VirtualMachine) -> None:
    machines.begin_list()
    machines.begin_list()
    assert answering(machines, old) == old


def test_an_end_of_a_list_that_never_began_drops_nothing(machines: VirtualMachineIndex, old: VirtualMachine) -> None:
    take(machines, ChangeType.SYNCED)
    assert answering(machines, old) == old


def test_the_deletion_of_a_machine_that_nobody_knows_is_nothing(
    machines: VirtualMachineIndex, old: VirtualMachine
) -> None:
    take(machines, ChangeType.DELETED, make_machine())
    assert answering(machines, old) == old


class ModelOfMachines(RuleBasedStateMachine):
    """Any sequence of changes: by uid everybody is found, by name the one that was added last of those still there."""

    def __init__(self) -> None:
        super().__init__()
        self.machines = VirtualMachineIndex()
        self.there: dict[str, VirtualMachine] = {}  # the oldest first
        self.named_by_list: set[str] | None = None

    @rule(pod=st.sampled_from(["a", "b"]))
    def add(self, pod: str) -> None:
        machine = make_machine(pod, uid=str(uuid.uuid4()))
        self.there[machine.uuid] = machine
        self.see(ChangeType.ADDED, machine)

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def modify(self, data: st.DataObject) -> None:
        machine = data.draw(st.sampled_from(list(self.there.values())))
        kinds = [ChangeType.MODIFIED] if self.named_by_list is None else [ChangeType.ADDED, ChangeType.MODIFIED]
        self.see(data.draw(st.sampled_from(kinds)), machine)

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        machine = self.there.pop(data.draw(st.sampled_from(list(self.there))))
        take(self.machines, ChangeType.DELETED, machine)

    @rule()
    def begin_list(self) -> None:
        self.machines.begin_list()
        self.named_by_list = set()

    @precondition(lambda self: self.named_by_list is not None)
    @rule()
    def end_list(self) -> None:
        assert self.named_by_list is not None
        self.there = {uid: machine for uid, machine in self.there.items() if uid in self.named_by_list}
        self.named_by_list = None
        take(self.machines, ChangeType.SYNCED)

    @invariant()
    def each_is_found_by_its_uid(self) -> None:
        assert len(self.machines) == len(self.there)
        for uid, machine in self.there.items():
            assert self.machines.by_uuid(uid) is machine
            assert answering(self.machines, machine, uid=uid) is machine

    @invariant()
    def the_newest_of_a_name_answers(self) -> None:
        for pod in ("a", "b"):
            of_name = [machine for machine in self.there.values() if machine.pod == pod]
            expected = of_name[-1] if of_name else None
            assert answering(self.machines, make_machine(pod)) is expected

    def see(self, kind: ChangeType, machine: VirtualMachine) -> None:
        take(self.machines, kind, machine)
        if self.named_by_list is not None:
            self.named_by_list.add(machine.uuid)


TestModelOfMachines = ModelOfMachines.TestCase

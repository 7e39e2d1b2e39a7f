"""Index of VirtualMachines: while a pod is recreated two have the same name, and lookups return the newest."""

import uuid

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.objects import Pending, VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.support.virtual_machines import make_pending, make_virtual_machine


def apply(index: VirtualMachineIndex, kind: ChangeType, virtual_machine: VirtualMachine | None = None) -> None:
    index.apply(Change(type=kind, object=virtual_machine))


def found(
    index: VirtualMachineIndex, virtual_machine: VirtualMachine, *, uid: str | None = None
) -> VirtualMachine | None:
    served = index.find(virtual_machine.name, uid=uid)
    return None if served is None else served.virtual_machine


@pytest.fixture
def index() -> VirtualMachineIndex:
    return VirtualMachineIndex()


@pytest.fixture
def old(index: VirtualMachineIndex) -> VirtualMachine:
    virtual_machine = make_virtual_machine()
    apply(index, ChangeType.ADDED, virtual_machine)
    return virtual_machine


@pytest.fixture
def new(index: VirtualMachineIndex, old: VirtualMachine) -> VirtualMachine:
    virtual_machine = make_virtual_machine()
    apply(index, ChangeType.ADDED, virtual_machine)
    return virtual_machine


def test_a_lookup_by_name_returns_the_newest(index: VirtualMachineIndex, new: VirtualMachine) -> None:
    assert found(index, new) == new


def test_a_change_of_the_old_one_does_not_make_it_the_newest(
    index: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    apply(index, ChangeType.MODIFIED, old)
    assert found(index, new) == new


def test_deleting_the_old_one_leaves_the_new_one(
    index: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    apply(index, ChangeType.DELETED, old)
    assert found(index, new) == new
    assert index.by_uuid(old.uuid) is None


def test_a_lookup_by_uid_returns_that_virtual_machine(
    index: VirtualMachineIndex, old: VirtualMachine, new: VirtualMachine
) -> None:
    assert found(index, old, uid=old.uuid) == old
    assert found(index, new, uid=new.uuid) == new


def test_the_newest_without_interfaces_hides_the_old_one(index: VirtualMachineIndex, old: VirtualMachine) -> None:
    apply(index, ChangeType.ADDED, make_virtual_machine(interfaces=()))
    assert found(index, old) is None


def test_a_renamed_virtual_machine_is_found_only_by_its_new_name(
    index: VirtualMachineIndex, old: VirtualMachine
) -> None:
    renamed = make_virtual_machine("renamed", uid=old.uuid)
    apply(index, ChangeType.MODIFIED, renamed)
    assert found(index, renamed) == renamed
    assert found(index, old) is None


def test_what_a_new_list_lacks_is_removed_at_its_end(index: VirtualMachineIndex, old: VirtualMachine) -> None:
    index.begin_list()
    listed = make_virtual_machine("listed")
    apply(index, ChangeType.ADDED, listed)
    assert found(index, old) == old
    apply(index, ChangeType.SYNCED)
    assert found(index, old) is None
    assert found(index, listed) == listed


def test_a_recreated_virtual_machine_is_served_before_the_list_ends(
    index: VirtualMachineIndex, old: VirtualMachine
) -> None:
    index.begin_list()
    new = make_virtual_machine()
    apply(index, ChangeType.ADDED, new)
    assert found(index, new) == new


def test_an_interrupted_list_removes_nothing(index: VirtualMachineIndex, old: VirtualMachine) -> None:
    index.begin_list()
    index.begin_list()
    assert found(index, old) == old


def test_the_end_of_a_list_that_never_began_removes_nothing(index: VirtualMachineIndex, old: VirtualMachine) -> None:
    apply(index, ChangeType.SYNCED)
    assert found(index, old) == old


def test_deleting_an_unknown_virtual_machine_has_no_effect(index: VirtualMachineIndex, old: VirtualMachine) -> None:
    apply(index, ChangeType.DELETED, make_virtual_machine())
    assert found(index, old) == old


def test_a_pending_one_only_says_why_there_are_no_interfaces(index: VirtualMachineIndex) -> None:
    pending = make_pending()
    apply(index, ChangeType.ADDED, pending)
    assert index.pending_reason(pending.name, uid=pending.uuid) == pending.pending
    assert found(index, pending) is None
    assert index.by_uuid(pending.uuid) is None
    assert (index.all(), len(index)) == ([], 0)


def test_the_reason_ends_with_the_interfaces_and_with_the_pod(index: VirtualMachineIndex) -> None:
    pending = make_pending()
    apply(index, ChangeType.ADDED, pending)
    complete = make_virtual_machine(uid=pending.uuid)
    apply(index, ChangeType.MODIFIED, complete)
    assert found(index, complete) == index.by_uuid(complete.uuid) == complete
    assert index.pending_reason(pending.name) is None
    assert len(index) == 1
    apply(index, ChangeType.DELETED, complete)
    apply(index, ChangeType.ADDED, pending)
    apply(index, ChangeType.DELETED, pending)
    assert index.pending_reason(pending.name) is None
    assert len(index) == 0


def test_a_recreated_pod_never_gets_the_reason_of_its_predecessor(index: VirtualMachineIndex) -> None:
    old, new = make_pending(), make_pending(pending=Pending("AnnotationInvalid", "not JSON"))
    apply(index, ChangeType.ADDED, old)
    assert index.pending_reason(new.name, uid=new.uuid) is None
    apply(index, ChangeType.ADDED, new)
    assert index.pending_reason(new.name, uid=new.uuid) == index.pending_reason(new.name) == new.pending
    apply(index, ChangeType.DELETED, new)
    assert index.pending_reason(new.name, uid=new.uuid) is None


def test_a_static_pod_finds_its_reason_by_its_config_hash(index: VirtualMachineIndex) -> None:
    pending = msgspec.structs.replace(make_pending(), config_hash="f00d")
    apply(index, ChangeType.ADDED, pending)
    assert index.pending_reason(pending.name, uid="f00d") == pending.pending


def test_a_new_list_without_a_pending_one_removes_it(index: VirtualMachineIndex) -> None:
    pending = make_pending()
    apply(index, ChangeType.ADDED, pending)
    index.begin_list()
    apply(index, ChangeType.SYNCED)
    assert index.pending_reason(pending.name) is None


class ModelOfVirtualMachines(RuleBasedStateMachine):
    """Any sequence of changes: lookups by uuid find each, lookups by name the one added last."""

    def __init__(self) -> None:
        super().__init__()
        self.index = VirtualMachineIndex()
        self.expected: dict[str, VirtualMachine] = {}  # oldest first
        self.named_by_list: set[str] | None = None

    @rule(pod=st.sampled_from(["a", "b"]))
    def add(self, pod: str) -> None:
        virtual_machine = make_virtual_machine(pod, uid=str(uuid.uuid4()))
        self.expected[virtual_machine.uuid] = virtual_machine
        self.observe(ChangeType.ADDED, virtual_machine)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def modify(self, data: st.DataObject) -> None:
        virtual_machine = data.draw(st.sampled_from(list(self.expected.values())))
        kinds = [ChangeType.MODIFIED] if self.named_by_list is None else [ChangeType.ADDED, ChangeType.MODIFIED]
        self.observe(data.draw(st.sampled_from(kinds)), virtual_machine)

    @precondition(lambda self: self.expected)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        virtual_machine = self.expected.pop(data.draw(st.sampled_from(list(self.expected))))
        apply(self.index, ChangeType.DELETED, virtual_machine)

    @rule()
    def begin_list(self) -> None:
        self.index.begin_list()
        self.named_by_list = set()

    @precondition(lambda self: self.named_by_list is not None)
    @rule()
    def end_list(self) -> None:
        assert self.named_by_list is not None
        self.expected = {
            uid: virtual_machine for uid, virtual_machine in self.expected.items() if uid in self.named_by_list
        }
        self.named_by_list = None
        apply(self.index, ChangeType.SYNCED)

    @invariant()
    def each_is_found_by_its_uid(self) -> None:
        assert len(self.index) == len(self.expected)
        for uid, virtual_machine in self.expected.items():
            assert self.index.by_uuid(uid) is virtual_machine
            assert found(self.index, virtual_machine, uid=uid) is virtual_machine

    @invariant()
    def the_newest_of_a_name_answers(self) -> None:
        for pod in ("a", "b"):
            of_name = [virtual_machine for virtual_machine in self.expected.values() if virtual_machine.pod == pod]
            newest = of_name[-1] if of_name else None
            assert found(self.index, make_virtual_machine(pod)) is newest

    def observe(self, kind: ChangeType, virtual_machine: VirtualMachine) -> None:
        apply(self.index, kind, virtual_machine)
        if self.named_by_list is not None:
            self.named_by_list.add(virtual_machine.uuid)


TestModelOfVirtualMachines = ModelOfVirtualMachines.TestCase

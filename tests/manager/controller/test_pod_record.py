"""PodRecord: what is kept in memory of a virtual machine."""

import tracemalloc
from collections.abc import Callable

import msgspec

from contrail_config.objects import VirtualMachine, interface_uuid
from manager.controller.pod_record import PodRecord, assignment_of
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import interface_in, make_network

UID = "0a000000-0000-4000-8000-000000000001"
OTHER = "0b000000-0000-4000-8000-00000000000b"


def test_uuids_of_interfaces_that_another_program_wrote_are_kept() -> None:
    interfaces = tuple(interface_in(make_network(), uuid) for uuid in (OTHER, interface_uuid(UID, 1)))
    machine = make_virtual_machine(uid=UID, interfaces=interfaces)
    assert assignment_of(machine).interfaces == [OTHER, interface_uuid(UID, 1)]


def test_uuids_that_are_derived_are_not_kept_but_derived_again() -> None:
    uuids = [interface_uuid(UID, index) for index in range(2)]
    machine = make_virtual_machine(uid=UID, interfaces=tuple(interface_in(make_network(), uuid) for uuid in uuids))
    assignment = assignment_of(machine)
    assert (assignment.interfaces, assignment.foreign_interfaces) == (uuids, ())


def test_a_virtual_machine_that_was_not_compared_is_kept_in_less_than_half_of_its_memory() -> None:
    interfaces = tuple(interface_in(make_network(), interface_uuid(UID, index)) for index in range(3))
    encoded = msgspec.json.encode(make_virtual_machine(uid=UID, interfaces=interfaces))

    def memory_of(keep: Callable[[VirtualMachine], object]) -> int:
        tracemalloc.start()
        kept = [keep(msgspec.json.decode(encoded, type=VirtualMachine)) for _ in range(100)]
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(kept) == 100
        return used

    def record(machine: VirtualMachine) -> PodRecord:
        record = PodRecord(None, first_seen=0.0)
        record.unverified = machine
        assert record.unverified == machine
        return record

    assert memory_of(record) < memory_of(lambda machine: machine) / 2

"""Networks of one node that have the same VNI: none of their interfaces may be connected meanwhile."""

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.datapath.shared_vnis import SharedVnis
from agent_api.virtual_machine_index import VirtualMachineIndex
from contrail_config.objects import VirtualMachine
from contrail_config.store import Change, ChangeType
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

VNI = 5


def uuid_of(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def machine(number: int, network: str, *, vni: int = VNI, name: str = "") -> VirtualMachine:
    """A pod with index 0 and an interface in a network; `network` is also the end of its uuid."""
    uid = uuid_of(number)
    left = msgspec.structs.replace(
        left_interface(uid, 1), vni=vni, network_uuid=uuid_of(int(network)), network=("d", "p", name or network)
    )
    first = msgspec.structs.replace(pod_interface(uid), vni=VNI)  # index 0 has no part in this
    return make_virtual_machine(f"pod-{number}", uid=uid, interfaces=(first, left))


def test_a_vni_of_several_networks_has_their_names() -> None:
    shared = SharedVnis()
    assert not shared.add(machine(1, "70"))
    assert not shared.add(machine(2, "70"))
    assert not shared.add(machine(3, "71", vni=6))
    assert shared.names == {}
    assert shared.add(machine(4, "71"))
    assert shared.names == {VNI: ("d:p:70", "d:p:71")}
    assert not shared.remove(machine(1, "70"))
    assert shared.remove(machine(2, "70"))
    assert shared.names == {}


def test_a_renamed_network_is_one_network() -> None:
    shared = SharedVnis()
    shared.add(machine(1, "70"))
    assert not shared.add(machine(2, "70", name="renamed"))
    assert shared.names == {}


def test_interfaces_without_a_vni_share_none() -> None:
    shared = SharedVnis()
    assert not shared.add(machine(1, "70", vni=0))
    assert not shared.add(machine(2, "71", vni=0))


def refusals(index: VirtualMachineIndex, number: int) -> list[str | None]:
    served = index.find(machine(number, "70").name)
    assert served is not None
    return [item.get("refused") for item in msgspec.json.decode(served.vm_cfg())]


@pytest.fixture
def index() -> VirtualMachineIndex:
    return VirtualMachineIndex(datapath=Datapath.LINUX)


def test_interfaces_are_refused_while_another_network_has_their_vni(index: VirtualMachineIndex) -> None:
    index.apply(Change(ChangeType.ADDED, machine(1, "70")))
    assert refusals(index, 1) == [None, None]
    index.apply(Change(ChangeType.ADDED, machine(2, "71")))
    for number in (1, 2):
        assert refusals(index, number) == [None, "VNI 5: not connected, several networks have it: d:p:70, d:p:71"]
    index.apply(Change(ChangeType.MODIFIED, machine(2, "71", vni=6)))
    assert refusals(index, 1) == refusals(index, 2) == [None, None]
    index.apply(Change(ChangeType.MODIFIED, machine(2, "71")))
    assert refusals(index, 1)[1] is not None
    index.apply(Change(ChangeType.DELETED, machine(2, "71")))
    assert refusals(index, 1) == [None, None]


def test_without_a_linux_datapath_nothing_is_refused() -> None:
    index = VirtualMachineIndex(datapath=Datapath.NONE)
    for number, network in ((1, "70"), (2, "71")):
        index.apply(Change(ChangeType.ADDED, machine(number, network)))
    assert refusals(index, 1) == [None, None]

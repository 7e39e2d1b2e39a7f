"""Networks of one node that have the same VNI, as virtual machines come, change and go."""

import msgspec

from agent_api.datapath.vni_users import VniUsers
from contrail_config.objects import PodNetwork, VirtualMachine
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
    first = msgspec.structs.replace(pod_interface(uid), vni=VNI)  # the cluster pod network is not known by its VNI
    return make_virtual_machine(f"pod-{number}", uid=uid, interfaces=(first, left))


def test_a_vni_is_shared_as_long_as_several_networks_have_it() -> None:
    vnis = VniUsers()
    for each in (machine(1, "70"), machine(2, "70"), machine(3, "71", vni=6)):
        vnis.add(each)
    assert not vnis.are_several(VNI)
    vnis.add(machine(4, "71"))
    assert vnis.are_several(VNI)
    vnis.remove(machine(1, "70"))
    assert vnis.are_several(VNI)
    vnis.remove(machine(2, "70"))
    assert not vnis.are_several(VNI)
    assert not vnis.are_several(6)


def test_a_renamed_network_is_one_network() -> None:
    vnis = VniUsers()
    vnis.add(machine(1, "70"))
    vnis.add(machine(2, "70", name="renamed"))
    assert not vnis.are_several(VNI)


def test_interfaces_without_a_vni_share_none() -> None:
    vnis = VniUsers()
    vnis.add(machine(1, "70", vni=0))
    vnis.add(machine(2, "71", vni=0))
    assert not vnis.are_several(0)


def test_the_network_of_an_isolated_namespace_at_index_0_counts() -> None:
    vnis = VniUsers()
    other = machine(1, "70")
    first = msgspec.structs.replace(other.interfaces[0], pod_network=PodNetwork.NAMESPACE)
    vnis.add(msgspec.structs.replace(other, interfaces=(first,)))
    vnis.add(machine(2, "71"))
    assert vnis.are_several(VNI)

"""Dangling references: those to virtual machines and interfaces that are gone are found in two rounds, and removed."""

import pytest

from contrail_config.errors import StoreError
from contrail_config.objects import VirtualMachine, VirtualNetwork, interface_uuid
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod

UID = "0a000000-0000-4000-8000-000000000001"
GONE = "0a000000-0000-4000-8000-000000000002"
INTERFACE, ADDRESS = "virtual-machine-interface", "instance-ip"


@pytest.fixture
async def network(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network())


@pytest.fixture
async def pod(vnc_store: VncStore, network: VirtualNetwork, router: Made) -> VirtualMachine:
    return await start_pod(vnc_store, [network], uid=UID)


def references(double: ContrailApi, uuid: str, kind: str) -> set[str]:
    return set(double.database.objects[uuid].references.get(kind, {}))


def vanish(double: ContrailApi, uuid: str) -> None:
    """Deletes an object as the server does if a reference to it is added at the same time."""
    double.database.remove(double.database.objects[uuid])


async def refer_to_gone(double: ContrailApi, caller: Caller, referrer: Made, kind: str) -> None:
    made = await caller.create(kind, uuid=GONE, **named_gone(kind))
    await caller.refer(referrer, made)
    vanish(double, GONE)
    assert GONE in references(double, referrer.uuid, kind)


def named_gone(kind: str) -> dict[str, object]:
    if kind != INTERFACE:
        return {"fq_name": ["gone"]}
    network = {"to": ["default-domain", "default-project", "default-virtual-network"]}
    return {
        "fq_name": ["default-domain", "default-project", "gone"],
        "parent_type": "project",
        "virtual_network_refs": [network],
    }


def address_of(double: ContrailApi, owner: str) -> Made:
    (found,) = [each for each in double.database.of_kind(KINDS[ADDRESS]).values() if owner in each.fq_name[-1]]
    return Made(ADDRESS, found.uuid, list(found.fq_name))


async def test_a_router_forgets_a_virtual_machine_that_is_gone(
    vnc_store: VncStore, pod: VirtualMachine, router: Made, double: ContrailApi, caller: Caller
) -> None:
    await refer_to_gone(double, caller, router, "virtual-machine")
    await vnc_store.repairs.repair()
    assert references(double, router.uuid, "virtual-machine") == {UID, GONE}
    await vnc_store.repairs.repair()
    assert references(double, router.uuid, "virtual-machine") == {UID}


async def test_the_next_manager_finds_what_the_one_before_left(
    open_vnc: OpenVnc, pod: VirtualMachine, router: Made, double: ContrailApi, caller: Caller
) -> None:
    await refer_to_gone(double, caller, router, "virtual-machine")
    following = await open_vnc()
    for _ in range(2):
        await following.repairs.repair()
    assert references(double, router.uuid, "virtual-machine") == {UID}


async def test_an_address_of_ours_forgets_an_interface_that_is_gone(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, caller: Caller
) -> None:
    owner = new_owner()
    await allocate_one(vnc_store, network, owner)
    address = address_of(double, owner)
    await refer_to_gone(double, caller, address, INTERFACE)
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert references(double, address.uuid, INTERFACE) == set()


async def test_an_address_of_another_program_is_left_alone(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, caller: Caller
) -> None:
    reference = {"to": list(network.fq_name), "uuid": network.uuid}
    theirs = await caller.create(ADDRESS, fq_name=["theirs"], virtual_network_refs=[reference])
    await refer_to_gone(double, caller, theirs, INTERFACE)
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert references(double, theirs.uuid, INTERFACE) == {GONE}
    await caller.delete(theirs)


async def test_a_virtual_machine_that_comes_back_between_two_rounds_stays_linked(
    vnc_store: VncStore, network: VirtualNetwork, router: Made, double: ContrailApi, caller: Caller
) -> None:
    await refer_to_gone(double, caller, router, "virtual-machine")
    await vnc_store.repairs.repair()
    await start_pod(vnc_store, [network], uid=GONE)
    await vnc_store.repairs.repair()
    assert references(double, router.uuid, "virtual-machine") == {GONE}


async def test_a_list_that_misses_a_virtual_machine_does_not_cost_its_link(
    vnc_store: VncStore, pod: VirtualMachine, router: Made, double: ContrailApi
) -> None:
    routers = [{"uuid": router.uuid, "virtual_machine_refs": [{"to": ["k8s__default__p1"], "uuid": UID}]}]
    for _ in range(2):
        await vnc_store.repairs.dangling.remove("virtual-router", routers, target="virtual-machine", existing=set())
    assert references(double, router.uuid, "virtual-machine") == {UID}


async def test_a_pod_goes_although_others_refer_to_it_too(
    vnc_store: VncStore, network: VirtualNetwork, pod: VirtualMachine, router: Made, double: ContrailApi, caller: Caller
) -> None:
    """As when the virtual router of the node is not found any more, or somebody gave an interface another address."""
    fq_name = ["default-global-system-config", "another"]
    another = await caller.create("virtual-router", fq_name=fq_name, parent_type="global-system-config")
    await caller.refer(another, Made("virtual-machine", UID, [pod.name]))
    reference = {"to": list(network.fq_name), "uuid": network.uuid}
    theirs = await caller.create(ADDRESS, fq_name=["theirs"], virtual_network_refs=[reference])
    await caller.refer(theirs, Made(INTERFACE, interface_uuid(UID, 0), []))
    await vnc_store.delete_virtual_machine(UID, hold=0)
    assert UID not in double.database.objects
    assert interface_uuid(UID, 0) not in double.database.objects
    assert references(double, another.uuid, "virtual-machine") == set()
    assert await vnc_store.address_owners() == set()


@pytest.mark.parametrize(
    "failing",
    ["POST /ref-update", "PUT /instance-ip", "DELETE /virtual-machine-interface", f"DELETE /virtual-machine/{UID}"],
)
async def test_a_deletion_that_failed_is_finished_by_the_next_attempt(
    vnc_store: VncStore, pod: VirtualMachine, router: Made, double: ContrailApi, failing: str
) -> None:
    double.faults.reject(400, "no", matches=failing, times=1)
    with pytest.raises(StoreError):
        await vnc_store.delete_virtual_machine(UID, hold=3600)
    await vnc_store.delete_virtual_machine(UID, hold=3600)
    assert UID not in double.database.objects
    assert interface_uuid(UID, 0) not in double.database.objects
    assert references(double, router.uuid, "virtual-machine") == set()
    assert await vnc_store.address_owners() == set()
    assert set(await vnc_store.held_owners()) == {interface_uuid(UID, 0)}


async def test_a_deletion_that_was_not_even_begun_does_not_disturb_the_pod(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi
) -> None:
    double.faults.reject(400, "no", matches="POST /prop-collection-update", times=1)
    with pytest.raises(StoreError):
        await vnc_store.delete_virtual_machine(UID, hold=3600)
    del double.requests[:]
    await vnc_store.put_virtual_machine(pod)
    assert double.requests == []
    assert await vnc_store.virtual_machines() == [pod]


async def test_a_new_pod_of_the_same_name_is_written_after_a_deletion_failed(
    vnc_store: VncStore, network: VirtualNetwork, pod: VirtualMachine, router: Made, double: ContrailApi
) -> None:
    double.faults.reject(400, "no", matches=f"DELETE /virtual-machine/{UID}", times=1)
    with pytest.raises(StoreError):
        await vnc_store.delete_virtual_machine(UID, hold=3600)
    written = await start_pod(vnc_store, [network], uid=GONE)
    assert await vnc_store.virtual_machines() == [written]
    assert UID not in double.database.objects
    assert references(double, router.uuid, "virtual-machine") == {GONE}


async def test_a_pod_is_written_after_its_deletion_failed(
    vnc_store: VncStore, network: VirtualNetwork, pod: VirtualMachine, router: Made, double: ContrailApi
) -> None:
    double.faults.reject(400, "no", matches="PUT /instance-ip", times=1)
    with pytest.raises(StoreError):
        await vnc_store.delete_virtual_machine(UID, hold=3600)
    other = await vnc_store.put_network(make_network("other", "10.2.0.0/24"))
    written = await start_pod(vnc_store, [other], uid=UID)
    assert await vnc_store.virtual_machines() == [written]
    interface = double.database.objects[interface_uuid(UID, 0)]
    assert set(interface.references["virtual-network"]) == {other.uuid}
    assert references(double, router.uuid, "virtual-machine") == {UID}

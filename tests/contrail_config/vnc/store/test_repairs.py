"""Repairs: what a race of two managers, or people, left on the server is found and put right."""

import pytest

from contrail_config.objects import VirtualMachine, VirtualNetwork, interface_uuid
from contrail_config.vnc.client import VncClient
from contrail_config.vnc.mapping import annotations
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill, cut_off
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.recorded_reflector import eventually
from tests.support.virtual_networks import allocate_one, make_network, start_pod

UID = "0a000000-0000-4000-8000-000000000001"
INTERFACE, ADDRESS = "virtual-machine-interface", "instance-ip"


@pytest.fixture
async def network(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network())


@pytest.fixture
async def pod(vnc_store: VncStore, network: VirtualNetwork, router: Made) -> VirtualMachine:
    """A pod with two interfaces, linked to its node."""
    return await start_pod(vnc_store, [network, network], uid=UID)


def state(double: ContrailApi) -> dict[str, list[tuple[str, list[str], list[str]]]]:
    """Interfaces with machines and networks, addresses with interfaces, and routers with machines."""
    kinds = {INTERFACE: ("virtual-machine", "virtual-network"), ADDRESS: (INTERFACE, "virtual-network")}
    kinds["virtual-router"] = ("virtual-machine", "project")
    return {
        kind: sorted(
            (
                str(stored.properties.get("instance_ip_address", stored.uuid)),
                sorted(stored.references.get(first, {})),
                sorted(stored.references.get(second, {})),
            )
            for stored in double.database.of_kind(KINDS[kind]).values()
        )
        for kind, (first, second) in kinds.items()
    }


def made(double: ContrailApi, kind: str, uuid: str) -> Made:
    return Made(kind, uuid, list(double.database.objects[uuid].fq_name))


def address_of(double: ContrailApi, interface: str) -> Made:
    (found,) = double.database.referrers(interface, ADDRESS)
    return made(double, ADDRESS, found.uuid)


async def test_a_complete_pod_is_not_written_again(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi
) -> None:
    del double.requests[:]
    await vnc_store.repairs.repair()
    assert {request.split()[1] for request in double.requests} == {"/list-bulk-collection"}


async def test_an_interface_that_somebody_deleted_is_made_again(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi, caller: Caller
) -> None:
    before, uuid = state(double), interface_uuid(UID, 1)
    await caller.refer(address_of(double, uuid), made(double, INTERFACE, uuid), "DELETE")
    await caller.delete(made(double, INTERFACE, uuid))
    await vnc_store.repairs.repair()
    assert state(double) == before


async def test_an_interface_that_two_managers_made_in_two_networks_is_in_its_own(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi, caller: Caller
) -> None:
    other = await vnc_store.put_network(make_network("other", "10.2.0.0/24"))
    before, uuid = state(double), interface_uuid(UID, 0)
    await caller.refer(made(double, INTERFACE, uuid), made(double, "virtual-network", other.uuid))
    assert state(double) != before
    await vnc_store.repairs.repair()
    assert state(double) == before


async def test_an_interface_that_tells_another_number_of_interfaces_is_made_again(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, caller: Caller, router: Made
) -> None:
    """A manager was killed while it gave the pod another one."""
    machine = await start_pod(vnc_store, [network] * 2, uid=UID)
    uuid = machine.interfaces[0].uuid
    before = state(double)
    update = {"field": "annotations", "operation": "set", "value": {"key": "index", "value": "0/3"}}
    assert (await caller.post("/prop-collection-update", {"uuid": uuid, "updates": [update]})).status == 200
    await vnc_store.repairs.repair()
    indexes = [
        annotations.from_object(each.properties)["index"] for each in double.database.of_kind(KINDS[INTERFACE]).values()
    ]
    assert sorted(indexes) == ["0/2", "1/2"]
    assert state(double) == before


async def test_an_address_that_somebody_unlinked_is_linked(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi, caller: Caller
) -> None:
    before, uuid = state(double), interface_uuid(UID, 0)
    await caller.refer(address_of(double, uuid), made(double, INTERFACE, uuid), "DELETE")
    await vnc_store.repairs.repair()
    assert state(double) == before


async def test_an_address_that_somebody_deleted_is_the_interfaces_again(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi, caller: Caller
) -> None:
    before, uuid = state(double), interface_uuid(UID, 0)
    await caller.delete(address_of(double, uuid))
    await eventually(lambda: len(vnc_store._cache.addresses.of_owner(uuid)) == 0)
    await vnc_store.repairs.repair()
    assert state(double) == before


async def test_an_address_that_another_has_taken_meanwhile_is_named_and_left(
    vnc_store: VncStore,
    network: VirtualNetwork,
    pod: VirtualMachine,
    double: ContrailApi,
    caller: Caller,
    caplog: pytest.LogCaptureFixture,
) -> None:
    uuid = interface_uuid(UID, 0)
    taken = pod.interfaces[0].addresses[0].address
    await caller.delete(address_of(double, uuid))
    await eventually(lambda: len(vnc_store._cache.addresses.of_owner(uuid)) == 0)
    await allocate_one(vnc_store, network, address=taken)
    await vnc_store.repairs.repair()
    assert f"{pod.name}: cannot be repaired: " in caplog.text
    assert taken in caplog.text
    assert [refs for _, refs, _ in state(double)["virtual-router"]] == [[UID]]


async def test_a_machine_that_nobody_commits_goes_when_it_is_found_twice(
    open_vnc: OpenVnc, vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made
) -> None:
    killed = await open_vnc(Kill(5))
    assert await cut_off(start_pod(killed, [network], uid=UID)) is None
    await vnc_store.repairs.repair()
    assert UID in double.database.objects
    await vnc_store.repairs.repair()
    assert UID not in double.database.objects
    assert not double.database.of_kind(KINDS[INTERFACE])


async def test_an_interface_whose_machine_is_gone_goes_and_those_of_others_stay(
    vnc_store: VncStore, pod: VirtualMachine, double: ContrailApi, caller: Caller
) -> None:
    before = state(double)
    theirs = await caller.create(
        INTERFACE,
        fq_name=["default-domain", "k8s-default", "theirs"],
        parent_type="project",
        virtual_network_refs=[{"to": list(pod.interfaces[0].network), "uuid": pod.interfaces[0].network_uuid}],
    )
    stored = double.database.objects[interface_uuid(UID, 0)]
    ours = await caller.create(
        INTERFACE,
        fq_name=["default-domain", "k8s-default", "ours"],
        parent_type="project",
        virtual_network_refs=[{"to": list(pod.interfaces[0].network), "uuid": pod.interfaces[0].network_uuid}],
        annotations=stored.properties["annotations"],
    )
    await vnc_store.repairs.repair()
    assert ours.uuid in double.database.objects
    await vnc_store.repairs.repair()
    assert ours.uuid not in double.database.objects
    assert theirs.uuid in double.database.objects
    await caller.delete(theirs)
    assert state(double) == before


@pytest.mark.parametrize("hold", [0, 60])
async def test_an_address_whose_network_is_gone_can_be_freed(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, vnc: VncClient, caller: Caller, hold: float
) -> None:
    """Somebody deleted the network while the address was created."""
    await allocate_one(vnc_store, network, UID)
    (address,) = double.database.of_kind(KINDS[ADDRESS]).values()
    double.database.remove(double.database.objects[network.uuid])
    assert (await caller.delete(made(double, ADDRESS, address.uuid))).status == 500
    await vnc_store.release([UID], hold=hold)
    assert address.uuid not in double.database.objects
    assert network.uuid not in double.database.objects


async def test_an_address_that_a_pod_does_not_have_goes_when_it_is_found_twice(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made
) -> None:
    """Such as one of a network that the pod no longer wants, if the answer to its claim was lost."""
    other = await vnc_store.put_network(make_network("other", "10.9.0.0/24"))
    machine = await start_pod(vnc_store, [network], uid=UID)
    owner = machine.interfaces[0].uuid
    stray = await allocate_one(vnc_store, other, owner)
    reserved = machine.interfaces[0].addresses[0].address  # as in the pod network, for an isolated namespace
    wide = await vnc_store.put_network(make_network("wide", "10.0.0.0/8"))
    await allocate_one(vnc_store, wide, owner, address=reserved)
    await vnc_store.repairs.repair()
    assert stray in addresses_of(double)
    await vnc_store.repairs.repair()
    assert sorted(addresses_of(double)) == [reserved, reserved]


def addresses_of(double: ContrailApi) -> list[str]:
    """All that are not held."""
    found = [each.properties for each in double.database.of_kind(KINDS[ADDRESS]).values()]
    return [str(each["instance_ip_address"]) for each in found if "held-until" not in str(each)]

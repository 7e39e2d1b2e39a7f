"""Leftovers: IPAMs, hidden networks and pods that a writer could not finish go while the manager runs."""

import asyncio

import msgspec
import pytest

from contrail_config.errors import InUseError, StoreError
from contrail_config.objects import VirtualNetwork, interface_uuid
from contrail_config.vnc.reference import Reference
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill, cut_off
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.recorded_reflector import eventually
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod

UID = "0a000000-0000-4000-8000-000000000001"
CREATED_IPAM = 2
"""Writes until a network's project and IPAM are there."""


@pytest.fixture
async def network(vnc_store: VncStore) -> VirtualNetwork:
    return await vnc_store.put_network(make_network())


def ipams(double: ContrailApi) -> set[str]:
    """Returns the names of IPAMs that the server does not have from the start."""
    names = {stored.fq_name[-1] for stored in double.database.of_kind(KINDS["network-ipam"]).values()}
    return names - {"default-network-ipam", "service-chain-flat-ipam"}


async def test_an_ipam_whose_network_was_deleted_before_a_kill_goes_when_it_is_found_twice(
    open_vnc: OpenVnc, vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi
) -> None:
    killed = await open_vnc(Kill(1))
    await cut_off(killed.delete_network(network.uuid))
    assert network.uuid not in double.database.objects
    await vnc_store.repairs.repair()
    assert len(ipams(double)) == 1
    await vnc_store.repairs.repair()
    assert ipams(double) == set()


async def test_an_ipam_whose_network_was_not_created_before_a_kill_goes_when_it_is_found_twice(
    open_vnc: OpenVnc, double: ContrailApi
) -> None:
    killed = await open_vnc(Kill(CREATED_IPAM))
    await cut_off(killed.put_network(make_network()))
    assert len(ipams(double)) == 1
    following = await open_vnc()
    for _ in range(2):
        await following.repairs.repair()
    assert ipams(double) == set()


async def test_an_ipam_whose_network_is_created_between_two_rounds_stays(
    open_vnc: OpenVnc, double: ContrailApi
) -> None:
    killed = await open_vnc(Kill(CREATED_IPAM))
    await cut_off(killed.put_network(make_network()))
    following = await open_vnc()
    await following.repairs.repair()
    await following.put_network(make_network())
    await following.repairs.repair()
    assert len(ipams(double)) == 1


async def test_an_ipam_of_another_program_stays(vnc_store: VncStore, double: ContrailApi, caller: Caller) -> None:
    fq_name = ["default-domain", "default-project", "theirs-ipam"]
    await caller.create("network-ipam", fq_name=fq_name, parent_type="project")
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert ipams(double) == {"theirs-ipam"}


@pytest.mark.parametrize("failing", ["DELETE /virtual-network/", "DELETE /network-ipam/"])
async def test_a_network_that_could_not_be_deleted_after_its_last_hold_goes_later(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, clock: FakeClock, failing: str
) -> None:
    owner = new_owner()
    await allocate_one(vnc_store, network, owner)
    await vnc_store.release([owner], hold=5)
    await vnc_store.delete_network(network.uuid)
    clock.advance(6)
    double.faults.reject(400, "no", matches=failing, times=1)
    other = await vnc_store.put_network(make_network("other", "10.2.0.0/24"))
    with pytest.raises(StoreError):
        await vnc_store._expire()
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert network.uuid not in double.database.objects
    assert ipams(double) == {f"{other.fq_name[-1].removesuffix('-network')}-ipam"}


async def test_a_retired_network_that_somebody_else_used_goes_later(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, caller: Caller
) -> None:
    """No address of ours is released then that would have it looked at."""
    await vnc_store.put_network(msgspec.structs.replace(network, retired=True))
    theirs = await caller.interface(Made("virtual-network", network.uuid, list(network.fq_name)))
    with pytest.raises(InUseError):
        await vnc_store.delete_network(network.uuid)
    await vnc_store.repairs.repair()
    assert [each.uuid for each in await vnc_store.networks()] == [network.uuid]
    await caller.delete(theirs)
    await vnc_store.repairs.repair()
    assert await vnc_store.networks() == []
    assert network.uuid not in double.database.objects


async def test_a_retired_network_in_which_a_pod_is_stays(vnc_store: VncStore, network: VirtualNetwork) -> None:
    await start_pod(vnc_store, [network], uid=UID)
    retired = await vnc_store.put_network(msgspec.structs.replace(network, retired=True))
    await vnc_store.repairs.repair()
    assert await vnc_store.networks() == [retired]


async def test_addresses_of_a_deletion_that_another_manager_began_are_held_until_its_end(
    open_vnc: OpenVnc,
    vnc_store: VncStore,
    network: VirtualNetwork,
    double: ContrailApi,
    router: Made,
    clock: FakeClock,
) -> None:
    await start_pod(vnc_store, [network], uid=UID)
    killed = await open_vnc(Kill(1))
    await cut_off(killed.delete_virtual_machine(UID, hold=60))
    await eventually(lambda: vnc_store._cache.machines.get(UID) is None)
    clock.advance(20)
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert UID not in double.database.objects
    (record,) = vnc_store._cache.addresses
    assert record.owner == interface_uuid(UID, 0)
    assert record.held_until == pytest.approx(clock() + 40, abs=0.01)
    clock.advance(41)
    await vnc_store._expire()
    assert not double.database.of_kind(KINDS["instance-ip"])


async def test_a_pod_that_is_being_written_is_no_leftover(
    vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    link = vnc_store.routers.link

    async def link_late(node: str, target: Reference) -> None:
        begun.set()
        await go_on.wait()
        await link(node, target)

    monkeypatch.setattr(vnc_store.routers, "link", link_late)
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(start_pod(vnc_store, [network], uid=UID))
        await begun.wait()
        listed = double.requests.count("POST /list-bulk-collection")
        recovering = tasks.create_task(vnc_store.recover_virtual_machines())
        await eventually(lambda: double.requests.count("POST /list-bulk-collection") > listed)
        go_on.set()
    assert await vnc_store.virtual_machines() == [writing.result()]
    assert recovering.result() in ([], [writing.result()])
    assert len(double.database.of_kind(KINDS["virtual-machine-interface"])) == 1


FAULTS = {
    "written": (409, "Delete when resource still referred: ['x']", f"DELETE /virtual-machine/{UID}"),
    "deleted": (404, f"Unknown id: {UID}", f"GET /virtual-machine/{UID}"),
    "failing": (500, "Internal Server Error", f"DELETE /virtual-machine/{UID}"),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_leftover_that_cannot_be_deleted_now_does_not_end_a_start(
    open_vnc: OpenVnc, vnc_store: VncStore, network: VirtualNetwork, double: ContrailApi, router: Made, fault: str
) -> None:
    """Another manager may still be writing it, or be deleting it too."""
    await cut_off(start_pod(await open_vnc(Kill(4)), [network], uid=UID))
    assert UID in double.database.objects
    status, text, request = FAULTS[fault]
    double.faults.reject(status, text, matches=request)
    assert await vnc_store.recover_virtual_machines() == []
    assert UID in double.database.objects
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert UID not in double.database.objects

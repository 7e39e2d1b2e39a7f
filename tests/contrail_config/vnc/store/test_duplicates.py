"""Duplicates: objects of one name and different uuids, which two writers created at the same time."""

import asyncio
from collections.abc import Awaitable

import pytest

from contrail_config.errors import ConflictError, StoreUnavailableError
from contrail_config.objects import VirtualNetwork, interface_uuid
from contrail_config.vnc.mapping.networks import ipam_name
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.contrail_config.vnc.store.test_vnc_store_kills import Kill
from tests.contrail_config.vnc.store.test_vnc_store_two_managers import seen_by
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made, subnet
from tests.support.recorded_reflector import eventually
from tests.support.virtual_machines import make_pending
from tests.support.virtual_networks import allocate_one, make_network, start_pod

OLD, NEW = "0a000000-0000-4000-8000-000000000001", "0a000000-0000-4000-8000-000000000002"
"""Uids of a pod before and after it was created again."""

PODS = ("virtual-machine", "virtual-machine-interface", "instance-ip")


def counted(double: ContrailApi) -> dict[str, int]:
    return {kind: len(double.database.of_kind(KINDS[kind])) for kind in PODS}


async def outcome(write: Awaitable[object]) -> str:
    """Returns the type of the error of a write, or ok."""
    try:
        await write
    except (ConflictError, StoreUnavailableError) as error:
        return type(error).__name__
    return "ok"


@pytest.fixture
async def managers(open_vnc: OpenVnc, double: ContrailApi) -> list[VncStore]:
    """Two that write at once; they know the network, and no event tells one what the other does."""
    one, other = await open_vnc(), await open_vnc()
    network = await one.put_network(make_network())
    await seen_by(other, network.uuid)
    double.watch_settings.resumed.clear()
    return [one, other]


@pytest.fixture
async def network(managers: list[VncStore]) -> VirtualNetwork:
    (network,) = await managers[1].networks()
    return network


async def at_once(double: ContrailApi, *writes: Awaitable[object]) -> list[str]:
    """Runs writes whose first requests pass the checks of the server together."""
    double.pauses.race(len(writes))
    return await asyncio.gather(*map(outcome, writes))


def named(double: ContrailApi, name: str) -> list[str]:
    return double.database.named("virtual-machine", (name,))


async def test_of_two_virtual_machines_of_one_name_the_next_attempt_leaves_one_whole(
    managers: list[VncStore], network: VirtualNetwork, double: ContrailApi, router: Made
) -> None:
    for number, (store, uid) in enumerate(zip(managers, (OLD, NEW), strict=True)):
        await start_pod(store, [network], f"other-{number}")  # whose project and virtual router both look up then
        await allocate_one(store, network, interface_uuid(uid, 0))
    writes = (start_pod(store, [network], uid=uid) for store, uid in zip(managers, (OLD, NEW), strict=True))
    assert await at_once(double, *writes) == ["StoreUnavailableError"] * 2
    leader = managers[1]
    machine = await start_pod(leader, [network], uid=NEW)
    assert named(double, machine.name) == [NEW]
    assert machine in await leader.virtual_machines()
    double.watch_settings.resumed.set()
    await eventually(lambda: len(leader._cache.addresses.of_owner(interface_uuid(OLD, 0))) == 1)
    await leader.release([interface_uuid(OLD, 0)], hold=0)
    assert counted(double) == dict.fromkeys(PODS, 3)
    assert NEW in double.database.objects[router.uuid].references["virtual-machine"]


async def test_a_virtual_machine_of_the_name_that_is_whole_is_the_holder(
    managers: list[VncStore], network: VirtualNetwork, double: ContrailApi, router: Made
) -> None:
    old, new = (make_pending("p1", uid=uid) for uid in (OLD, NEW))
    one, leader = managers
    assert await at_once(double, one.put_pending(old), leader.put_pending(new)) == ["ok", "ok"]
    assert sorted(named(double, old.name)) == [OLD, NEW]
    with pytest.raises(ConflictError) as caught:
        await start_pod(leader, [network], uid=NEW)
    assert caught.value.holder == OLD
    double.watch_settings.resumed.set()
    await eventually(lambda: len(leader._cache.machines.named(old.name)) == 2)
    machine = await start_pod(leader, [network], uid=NEW)
    assert named(double, old.name) == [NEW]
    assert await leader.virtual_machines() == [machine]


async def test_a_virtual_machine_of_two_that_nobody_writes_again_goes_when_it_is_found_twice(
    open_vnc: OpenVnc, vnc_store: VncStore, double: ContrailApi, router: Made
) -> None:
    network = await vnc_store.put_network(make_network())
    killed = [await open_vnc(Kill(2)) for _ in range(2)]
    for store, uid in zip(killed, (OLD, NEW), strict=True):
        await seen_by(store, network.uuid)
        await allocate_one(store, network, interface_uuid(uid, 0))
    writes = (start_pod(store, [network], uid=uid) for store, uid in zip(killed, (OLD, NEW), strict=True))
    await at_once(double, *writes)
    name = make_pending().name
    assert sorted(named(double, name)) == [OLD, NEW]
    for _ in range(2):
        await vnc_store.repairs.repair()
    assert named(double, name) == []


async def test_a_network_that_another_program_created_at_the_same_time_is_left_to_it(
    vnc_store: VncStore, double: ContrailApi, caller: Caller
) -> None:
    await vnc_store.put_network(make_network("first", "10.2.0.0/24"))  # with the project
    wanted = make_network()
    ipam = await caller.create("network-ipam", fq_name=list(ipam_name(wanted)), parent_type="project")
    link = {**ipam.reference, "attr": {"ipam_subnets": [subnet("10.1.0.0/24")]}}
    body = {"fq_name": list(wanted.fq_name), "parent_type": "project", "network_ipam_refs": [link]}
    double.pauses.race(2)
    theirs, _ = await asyncio.gather(caller.create("virtual-network", **body), vnc_store.put_network(wanted))
    assert len(double.database.named("virtual-network", wanted.fq_name)) == 2
    await vnc_store.repairs.repair()
    assert double.database.named("virtual-network", wanted.fq_name) == [theirs.uuid]
    with pytest.raises(ConflictError, match=theirs.uuid):
        await vnc_store.put_network(wanted)

"""VncStore: two managers at once, and others who change the server's objects."""

import asyncio

import pytest

from contrail_config.errors import AddressUnavailableError, ConflictError
from contrail_config.store import Change, ChangeType
from contrail_config.vnc.store import VncStore
from tests.contrail_config.vnc.store.conftest import OpenVnc
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, make_network, new_owner, start_pod


async def seen_by(store: VncStore, *uuids: str) -> None:
    """Waits until a store knows networks."""
    async with asyncio.timeout(10), store.watch_networks() as changes:
        missing = set(uuids)
        while missing:
            change = await anext(changes)
            if change.object is not None:
                missing.discard(change.object.uuid)


async def test_two_managers_never_allocate_one_address_twice(open_vnc: OpenVnc) -> None:
    one, other = await open_vnc(), await open_vnc()
    network = await one.put_network(make_network())
    await seen_by(other, network.uuid)
    allocated = await asyncio.gather(*(allocate_one(store, network) for store in (one, other) for _ in range(30)))
    assert len(set(allocated)) == 60


async def test_two_managers_give_one_owner_one_address(open_vnc: OpenVnc, double: ContrailApi) -> None:
    one, other = await open_vnc(), await open_vnc()
    network = await one.put_network(make_network())
    await seen_by(other, network.uuid)
    await allocate_one(one, network)  # the choice of the other manager differs, unless it was told
    owner = new_owner()
    double.watch_settings.resumed.clear()  # no event says what the other one did
    double.pauses.race(2)
    assert len(set(await asyncio.gather(*(allocate_one(store, network, owner) for store in (one, other))))) == 1
    assert await one.address_owners() >= {owner}
    assert len(double.database.of_kind(KINDS["instance-ip"])) == 2


async def test_an_address_whose_answer_was_lost_is_the_owners(vnc_store: VncStore, double: ContrailApi) -> None:
    network = await vnc_store.put_network(make_network())
    double.watch_settings.resumed.clear()
    double.faults.reset_after_write.append("POST /instance-ips")
    assert await allocate_one(vnc_store, network) == "10.1.0.2"
    assert await allocate_one(vnc_store, network) == "10.1.0.3"
    assert len(double.database.of_kind(KINDS["instance-ip"])) == 2


async def test_two_managers_that_write_one_pod_write_it_once(open_vnc: OpenVnc, double: ContrailApi) -> None:
    one, other = await open_vnc(), await open_vnc()
    network = await one.put_network(make_network())
    await seen_by(other, network.uuid)
    machine = await start_pod(one, [network])
    async with asyncio.timeout(10), other.watch_virtual_machines() as changes:
        while (await anext(changes)).object != machine:
            pass
    await other.put_virtual_machine(machine)
    assert len(double.database.of_kind(KINDS["virtual-machine-interface"])) == 1


async def test_two_managers_that_make_one_network_make_it_once(open_vnc: OpenVnc) -> None:
    one, other = await open_vnc(), await open_vnc()
    stored = await asyncio.gather(one.put_network(make_network()), other.put_network(make_network()))
    assert stored[0] == stored[1]


async def test_an_address_that_was_taken_by_hand_is_left_out(vnc_store: VncStore, caller: Caller) -> None:
    network = await vnc_store.put_network(make_network())
    made = Made("virtual-network", network.uuid, list(network.fq_name))
    await caller.address(made, "10.1.0.2")
    assert await allocate_one(vnc_store, network) == "10.1.0.3"
    with pytest.raises(AddressUnavailableError, match="already allocated to another interface"):
        await allocate_one(vnc_store, network, address="10.1.0.2")


async def test_a_name_of_others_is_a_conflict(vnc_store: VncStore, caller: Caller) -> None:
    machine = make_virtual_machine()
    foreign = await caller.create("virtual-machine", fq_name=[machine.name])
    with pytest.raises(ConflictError) as caught:
        await vnc_store.put_virtual_machine(machine)
    assert caught.value.holder == foreign.uuid


async def test_a_network_of_others_is_not_ours(vnc_store: VncStore, caller: Caller) -> None:
    await caller.network()
    assert await vnc_store.networks() == []


async def test_what_was_deleted_by_hand_is_deleted_for_watchers(vnc_store: VncStore, caller: Caller) -> None:
    machine = make_virtual_machine()
    await vnc_store.put_virtual_machine(machine)
    async with asyncio.timeout(10), vnc_store.watch_virtual_machines() as changes:
        assert [(await anext(changes)).type for _ in range(2)] == [ChangeType.ADDED, ChangeType.SYNCED]
        await caller.delete(Made("virtual-machine", machine.uuid, [machine.name]))
        assert await anext(changes) == Change(ChangeType.DELETED, machine)


async def test_a_project_that_was_deleted_by_hand_is_made_again(vnc_store: VncStore, caller: Caller) -> None:
    network = await vnc_store.put_network(make_network())
    await vnc_store.delete_network(network.uuid)
    name = list(network.fq_name[:2])
    found = await caller.post("/fqname-to-id", {"type": "project", "fq_name": name})
    assert (await caller.delete(Made("project", found.json["uuid"], name))).status == 200
    assert (await vnc_store.put_network(make_network())).fq_name == network.fq_name

"""Allocator: claims that fail, and addresses that others have."""

import ipaddress

import pytest

from contrail_config.errors import ExhaustedError, StoreError
from contrail_config.objects import VirtualNetwork
from contrail_config.vnc.allocator import FORGOTTEN_AFTER, MAX_TAKEN, NEXT_TRY
from contrail_config.vnc.store import VncStore
from tests.support.contrail_api.kinds import KINDS
from tests.support.contrail_api.server import ContrailApi
from tests.support.contrail_callers import Caller, Made
from tests.support.fake_clock import FakeClock
from tests.support.virtual_networks import allocate_one, make_network, new_owner, request

ADDRESSES = ("10.1.0.10", "10.1.0.11", "10.1.0.12")


def on_server(double: ContrailApi) -> set[str]:
    """Returns the addresses that the server has given."""
    stored = double.database.of_kind(KINDS["instance-ip"]).values()
    return {one.properties["instance_ip_address"] for one in stored}


def fail_last_of_three(double: ContrailApi) -> None:
    """Has the server refuse the third claim from now on, and the first deletion of one."""
    double.faults.reject(400, "no", matches="DELETE /instance-ip/")
    claims = 0

    def count(target: str) -> None:
        nonlocal claims
        claims += target == "POST /instance-ips"
        if claims == len(ADDRESSES):
            double.faults.before_request = None
            double.faults.reject(400, "no", matches="POST /instance-ips")

    double.faults.before_request = count


async def test_an_address_whose_claim_failed_is_free_although_another_claim_could_not_be_deleted(
    vnc_store: VncStore, double: ContrailApi
) -> None:
    network = await vnc_store.put_network(make_network())
    fail_last_of_three(double)
    with pytest.raises(StoreError):
        await vnc_store.allocate([request(network, address=address) for address in ADDRESSES])
    (left,) = on_server(double)
    for address in set(ADDRESSES) - {left}:
        assert await allocate_one(vnc_store, network, address=address) == address


async def taken_by_others(caller: Caller, network: VirtualNetwork) -> list[Made]:
    """Has others take all addresses of a network that the server gives."""
    made = Made("virtual-network", network.uuid, list(network.fq_name))
    hosts = ipaddress.ip_network(network.subnets[0].cidr).hosts()
    answers = [await caller.try_address(made, str(host)) for host in hosts]
    assert any(answer.status == 200 for answer in answers)
    return [each for each in caller.made if each.kind == "instance-ip"]


async def test_an_allocation_goes_on_after_the_addresses_of_others_that_the_one_before_tried(
    vnc_store: VncStore, caller: Caller
) -> None:
    network = await vnc_store.put_network(make_network("left", "10.1.0.0/25"))
    free = (await taken_by_others(caller, network))[MAX_TAKEN + 5]
    address = await caller.address_of(free)
    await caller.delete(free)
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(vnc_store, network)
    assert caught.value.next_free_in == NEXT_TRY
    assert await allocate_one(vnc_store, network) == address


async def test_an_address_that_others_free_is_found_in_a_network_that_was_exhausted(
    vnc_store: VncStore, caller: Caller
) -> None:
    network = await vnc_store.put_network(make_network("left", "10.1.0.0/28"))
    freed, *_ = await taken_by_others(caller, network)
    address = await caller.address_of(freed)
    with pytest.raises(ExhaustedError) as caught:
        await allocate_one(vnc_store, network)
    assert caught.value.next_free_in == FORGOTTEN_AFTER
    await caller.delete(freed)
    assert await allocate_one(vnc_store, network) == address


async def test_an_allocation_does_not_look_at_all_addresses_of_its_network(
    vnc_store: VncStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = await vnc_store.put_network(make_network())
    owner = new_owner()
    await allocate_one(vnc_store, network, owner)
    await vnc_store.release([owner], hold=60)
    with monkeypatch.context() as unread:
        unread.setattr(vnc_store._cache.addresses, "of_network", None)
        assert await allocate_one(vnc_store, network) == "10.1.0.3"
    clock.advance(61)
    assert await allocate_one(vnc_store, network, address="10.1.0.2") == "10.1.0.2"

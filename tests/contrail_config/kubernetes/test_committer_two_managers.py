"""Committer: two managers write to one server concurrently, as when both believe to be the leader."""

import asyncio
import random

import pytest

from contrail_config.errors import ConflictError, ExhaustedError
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.contrail_config.kubernetes.managers import Contention, OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.stored_objects import allocated_addresses
from tests.support.virtual_machines import make_virtual_machine
from tests.support.virtual_networks import allocate_one, interface_in, make_network, new_owner, request, start_pod


@pytest.fixture
async def managers(open_manager: OpenManager) -> list[KubernetesStore]:
    return [await open_manager() for _ in range(2)]


@pytest.fixture
async def network(managers: list[KubernetesStore]) -> VirtualNetwork:
    return await managers[0].put_network(make_network("left", "10.1.0.0/24", "fd00::/64"))


@pytest.mark.parametrize("contended", [False, True])
async def test_no_address_is_allocated_twice(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer, *, contended: bool
) -> None:
    if contended:
        server.faults = Contention()
    owners = [new_owner() for _ in range(120)]
    allocated = await asyncio.gather(*(allocate_one(random.choice(managers), network, owner) for owner in owners))
    assert len(set(allocated)) == len(owners)
    expected = {(network.uuid, address): owner for address, owner in zip(allocated, owners, strict=True)}
    assert allocated_addresses(server) == expected


async def test_no_address_is_allocated_twice_during_releases(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    server.faults = Contention()
    stored: dict[str, str] = {}

    async def churn(manager: KubernetesStore) -> None:
        for _ in range(8):
            goes, stays = new_owner(), new_owner()
            await manager.allocate([request(network, goes), request(network, goes, family=6)])
            stored[stays] = await allocate_one(manager, network, stays)
            await manager.release([goes], hold=0)

    await asyncio.gather(*(churn(manager) for manager in managers * 3))
    assert len(set(stored.values())) == len(stored)
    assert allocated_addresses(server) == {(network.uuid, address): owner for owner, address in stored.items()}


async def test_all_of_the_last_addresses_are_allocated(managers: list[KubernetesStore], server: FakeApiServer) -> None:
    small = await managers[0].put_network(make_network("small", "10.2.0.0/27"))
    asked = [allocate_one(manager, small) for manager in managers for _ in range(20)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert len({answer for answer in answers if isinstance(answer, str)}) == len(allocated_addresses(server)) == 29
    assert sum(isinstance(answer, ExhaustedError) for answer in answers) == 11


async def test_a_requested_address_is_allocated_once(managers: list[KubernetesStore], network: VirtualNetwork) -> None:
    asked = [allocate_one(manager, network, address="10.1.0.77") for manager in managers]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(isinstance(answer, str) for answer in answers) == [False, True]


async def test_an_allocation_is_atomic(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    """The second address goes to the other manager when the first one is already written."""
    calls = [
        manager.allocate([request(network, address=f"10.1.0.{first}"), request(network, address="10.1.0.200")])
        for manager, first in zip(managers, (10, 80), strict=True)
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    (granted,) = [answer for answer in answers if isinstance(answer, list)]
    assert {address for _, address in allocated_addresses(server)} == {address.address for address in granted}


async def test_an_owner_requested_by_both_has_one_address(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    owners = [new_owner() for _ in range(20)]
    answers = [
        await asyncio.gather(*(allocate_one(manager, network, owner) for manager in managers)) for owner in owners
    ]
    assert all(one == other for one, other in answers)
    assert len(allocated_addresses(server)) == len(owners)


async def test_a_manager_does_not_replace_a_virtual_machine_that_it_never_read(
    managers: list[KubernetesStore], network: VirtualNetwork
) -> None:
    """The addresses of the pod stay allocated although the other manager releases what it allocated."""
    first, second = managers
    running = await start_pod(first, [network])
    (interface,) = running.interfaces
    (rival,) = await second.allocate([request(network, interface.uuid, address="10.1.0.99")])
    other = make_virtual_machine(uid=running.uuid, interfaces=(interface_in(network, interface.uuid, rival),))
    with pytest.raises(ConflictError, match="already written by another manager"):
        await second.put_virtual_machine(other)
    await second.release([interface.uuid], hold=0)
    assert await second.virtual_machine(running.uuid) == running


async def test_a_second_manager_adopts_the_virtual_machine_of_the_first(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    first, second = managers
    running = await start_pod(first, [network, network])
    assert await start_pod(second, [network, network], uid=running.uuid) == running
    assert len(allocated_addresses(server)) == 2


async def test_an_address_of_an_existing_virtual_machine_is_not_released(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    first, second = managers
    running = await start_pod(first, [network])
    await second.virtual_machines()
    await second.release([running.interfaces[0].uuid], hold=0)
    assert allocated_addresses(server) == {(network.uuid, "10.1.0.2"): running.interfaces[0].uuid}

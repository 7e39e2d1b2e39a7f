"""Several stores write to one server at the same moment, as managers do when two of them lead."""

import asyncio
import random

import pytest

from contrail_config.errors import ConflictError, ExhaustedError
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import VirtualNetwork
from tests.contrail_config.kubernetes.managers import Contention, OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.kept_in_cluster import given_addresses
from tests.support.machines import make_machine
from tests.support.networks import give, interface_in, make_network, new_owner, request, start_pod


@pytest.fixture
async def managers(open_manager: OpenManager) -> list[KubernetesStore]:
    return [await open_manager() for _ in range(2)]


@pytest.fixture
async def network(managers: list[KubernetesStore]) -> VirtualNetwork:
    return await managers[0].put_network(make_network("left", "10.1.0.0/24", "fd00::/64"))


@pytest.mark.parametrize("contended", [False, True])
async def test_all_that_is_given_is_given_once(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer, *, contended: bool
) -> None:
    if contended:
        server.faults = Contention()
    owners = [new_owner() for _ in range(120)]
    given = await asyncio.gather(*(give(random.choice(managers), network, owner) for owner in owners))
    assert len(set(given)) == len(owners)
    expected = {(network.uuid, address): owner for address, owner in zip(given, owners, strict=True)}
    assert given_addresses(server) == expected


async def test_what_is_freed_and_given_again_meanwhile_is_given_once(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    server.faults = Contention()
    kept: dict[str, str] = {}

    async def churn(manager: KubernetesStore) -> None:
        for _ in range(8):
            goes, stays = new_owner(), new_owner()
            await manager.allocate([request(network, goes), request(network, goes, family=6)])
            kept[stays] = await give(manager, network, stays)
            await manager.release([goes], hold=0)

    await asyncio.gather(*(churn(manager) for manager in managers * 3))
    assert len(set(kept.values())) == len(kept)
    assert given_addresses(server) == {(network.uuid, address): owner for owner, address in kept.items()}


async def test_the_last_addresses_are_shared_without_a_rest(
    managers: list[KubernetesStore], server: FakeApiServer
) -> None:
    small = await managers[0].put_network(make_network("small", "10.2.0.0/27"))
    asked = [give(manager, small) for manager in managers for _ in range(20)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert len({answer for answer in answers if isinstance(answer, str)}) == len(given_addresses(server)) == 29
    assert sum(isinstance(answer, ExhaustedError) for answer in answers) == 11


async def test_one_wish_is_granted_once(managers: list[KubernetesStore], network: VirtualNetwork) -> None:
    asked = [give(manager, network, address="10.1.0.77") for manager in managers]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sorted(isinstance(answer, str) for answer in answers) == [False, True]


async def test_all_of_a_call_is_granted_or_none_of_it(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    """The second wish is lost to the other manager when the first one is saved already."""
    calls = [
        manager.allocate([request(network, address=f"10.1.0.{first}"), request(network, address="10.1.0.200")])
        for manager, first in zip(managers, (10, 80), strict=True)
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    (granted,) = [answer for answer in answers if isinstance(answer, list)]
    assert {address for _, address in given_addresses(server)} == {address.address for address in granted}


async def test_an_owner_that_both_ask_for_has_one_address(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    owners = [new_owner() for _ in range(20)]
    answers = [await asyncio.gather(*(give(manager, network, owner) for manager in managers)) for owner in owners]
    assert all(one == other for one, other in answers)
    assert len(given_addresses(server)) == len(owners)


async def test_a_machine_is_not_replaced_by_a_manager_that_never_saw_it(
    managers: list[KubernetesStore], network: VirtualNetwork
) -> None:
    """What the pod uses stays given too, though the other manager takes back all that it gave."""
    first, second = managers
    running = await start_pod(first, [network])
    (interface,) = running.interfaces
    (rival,) = await second.allocate([request(network, interface.uuid, address="10.1.0.99")])
    other = make_machine(uid=running.uuid, interfaces=(interface_in(network, interface.uuid, rival),))
    with pytest.raises(ConflictError, match="already written by another manager"):
        await second.put_virtual_machine(other)
    await second.release([interface.uuid], hold=0)
    assert await second.virtual_machine(running.uuid) == running


async def test_a_second_manager_takes_over_what_the_first_one_wrote(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    first, second = managers
    running = await start_pod(first, [network, network])
    assert await start_pod(second, [network, network], uid=running.uuid) == running
    assert len(given_addresses(server)) == 2


async def test_an_address_that_a_machine_bears_is_not_released(
    managers: list[KubernetesStore], network: VirtualNetwork, server: FakeApiServer
) -> None:
    first, second = managers
    running = await start_pod(first, [network])
    await second.virtual_machines()
    await second.release([running.interfaces[0].uuid], hold=0)
    assert given_addresses(server) == {(network.uuid, "10.1.0.2"): running.interfaces[0].uuid}

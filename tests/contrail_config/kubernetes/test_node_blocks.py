"""Blocks that belong to nodes, as the store writes them: node, borrowed addresses, and what other managers read."""

import asyncio

import pytest

from contrail_config.errors import AddressUnavailableError
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode, VirtualNetwork
from tests.contrail_config.kubernetes.managers import Contention, OpenManager
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner


@pytest.fixture
async def network(manager: KubernetesStore) -> VirtualNetwork:
    """A network of four blocks that is routed by block."""
    return await manager.put_network(make_network("pods", "10.1.0.0/24", forwarding_mode=ForwardingMode.L3))


def nodes(server: FakeApiServer) -> dict[str, str | None]:
    """The node of each block, by its first address."""
    specs = [block["spec"] for block in server.storage.objects(BLOCK_KIND).values()]
    return {spec["first"]: spec.get("node") for spec in specs}


def borrowers(server: FakeApiServer) -> dict[str, str]:
    """The node of each borrowed address."""
    entries = block_entries(server.storage.objects(BLOCK_KIND).values())
    return {entry.address: entry.borrower for entry in entries if entry.borrower is not None}


async def test_blocks_state_their_node(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    assert await allocate_one(manager, network, node="a") == "10.1.0.2"
    assert await allocate_one(manager, network, node="b") == "10.1.0.64"
    assert nodes(server) == {"10.1.0.0": "a", "10.1.0.64": "b"}
    assert borrowers(server) == {}


async def test_a_requested_address_may_be_borrowed(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await allocate_one(manager, network, node="a")
    owner = new_owner()
    await allocate_one(manager, network, owner, node="b", address="10.1.0.9")
    assert borrowers(server) == {"10.1.0.9": "b"}
    (summary,) = [block["status"] for block in server.storage.objects(BLOCK_KIND).values()]
    assert summary == {"given": 2, "held": 0, "borrowed": 1}
    await manager.release([owner])
    assert borrowers(server) == {}


async def test_a_requested_address_in_no_block_makes_a_block_of_the_node(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await allocate_one(manager, network, node="b", address="10.1.0.200")
    assert await allocate_one(manager, network, node="b") == "10.1.0.201"
    assert nodes(server) == {"10.1.0.192": "b"}


async def test_another_manager_uses_the_blocks_of_each_node(
    network: VirtualNetwork, manager: KubernetesStore, open_manager: OpenManager, server: FakeApiServer
) -> None:
    for node in ("a", "b", "c", "d", "e"):
        await allocate_one(manager, network, node=node)
    before = borrowers(server)
    assert set(before.values()) == {"e"}
    second = await open_manager()
    assert await allocate_one(second, network, node="c") == "10.1.0.129"
    assert borrowers(server) == before


async def test_the_address_of_a_node_is_given_to_no_pod(manager: KubernetesStore) -> None:
    network = await manager.put_network(make_network("pods", "10.1.0.0/22", forwarding_mode=ForwardingMode.L3))
    with pytest.raises(AddressUnavailableError, match="the address of the node"):
        await allocate_one(manager, network, node="a", address="10.1.0.64")


async def test_an_empty_block_goes_to_the_next_node_that_needs_one(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, clock: FakeClock
) -> None:
    owner = new_owner()
    await allocate_one(manager, network, owner, node="a")
    for node in ("b", "c", "d"):
        await allocate_one(manager, network, node=node)
    await manager.release([owner], hold=5)
    clock.advance(5)
    assert await allocate_one(manager, network, node="e") == "10.1.0.3"
    assert nodes(server)["10.1.0.0"] == "e"
    assert borrowers(server) == {}
    clock.advance(CLEANUP_DELAY)
    await manager.address_owners()
    assert len(nodes(server)) == 4


@pytest.mark.parametrize("node", [None, "", "a b", "a\n10.1.0.9 owner", "@", "A"])
async def test_an_owner_without_a_valid_node_gets_an_address_of_a_block_without_a_node(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, node: str | None
) -> None:
    assert await allocate_one(manager, network, node=node) == "10.1.0.2"
    assert nodes(server) == {"10.1.0.0": None}
    assert len(block_entries(server.storage.objects(BLOCK_KIND).values())) == 1


async def test_blocks_of_other_networks_belong_to_no_node(manager: KubernetesStore, server: FakeApiServer) -> None:
    network = await manager.put_network(make_network("blue", "10.1.0.0/24"))
    for node in ("a", "b"):
        await allocate_one(manager, network, node=node)
    assert nodes(server) == {"10.1.0.0": None}


async def test_two_managers_know_every_borrowed_address(
    network: VirtualNetwork, manager: KubernetesStore, open_manager: OpenManager, server: FakeApiServer
) -> None:
    managers = [manager, await open_manager()]
    server.faults = Contention()
    asked = [(new_owner(), f"node-{number % 6}") for number in range(120)]
    await asyncio.gather(
        *(allocate_one(managers[n % 2], network, owner, node=node) for n, (owner, node) in enumerate(asked))
    )
    node_of = dict(asked)
    for block in server.storage.objects(BLOCK_KIND).values():
        for entry in block_entries([block]):
            expected = node_of[entry.owner]
            assert entry.borrower == (None if expected == block["spec"]["node"] else expected)

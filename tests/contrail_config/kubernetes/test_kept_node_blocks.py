"""Node blocks: a node without pods keeps its own address in a block, at the cost of no address of a pod."""

import pytest

from contrail_config.errors import AddressUnavailableError, NotFoundError
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.node_owner import node_owner
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode, Subnet, VirtualNetwork, network_uuid
from contrail_config.store import UNPLUGGED_HOLD
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.address_blocks import block_entries
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_clock import FakeClock
from tests.support.stored_objects import BLOCK_KIND
from tests.support.virtual_networks import allocate_one, make_network, new_owner

ROUTED = ForwardingMode.L3


@pytest.fixture
async def network(manager: KubernetesStore) -> VirtualNetwork:
    """A network of 16 blocks that is routed by block."""
    return await manager.put_network(make_network("pods", "10.1.0.0/22", forwarding_mode=ROUTED))


def nodes(server: FakeApiServer) -> dict[str, str | None]:
    """The node of each block, by its first address."""
    specs = [block["spec"] for block in server.storage.objects(BLOCK_KIND).values()]
    return {spec["first"]: spec.get("node") for spec in specs}


def kept(server: FakeApiServer) -> dict[str, str]:
    """The addresses of nodes, by owner."""
    entries = block_entries(server.storage.objects(BLOCK_KIND).values())
    return {entry.owner: entry.address for entry in entries if entry.held is None and "/" in entry.owner}


async def test_a_node_gets_a_block_in_which_its_own_address_is_allocated(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    assert await manager.node_blocks.keep(network.uuid, "a")
    assert await manager.node_blocks.keep(network.uuid, "b")
    assert nodes(server) == {"10.1.0.0": "a", "10.1.0.64": "b"}
    assert kept(server) == {node_owner("a"): "10.1.0.2", node_owner("b"): "10.1.0.64"}


async def test_it_gets_one_of_each_family(manager: KubernetesStore, server: FakeApiServer) -> None:
    name = ("default-domain", "k8s-blue", "dual")
    subnets = (Subnet("10.1.0.0/22", "10.1.0.1"), Subnet("fd00::/64", "fd00::1"))
    network = await manager.put_network(VirtualNetwork(name, network_uuid(name), subnets, forwarding_mode=ROUTED))
    assert await manager.node_blocks.keep(network.uuid, "a")
    assert nodes(server) == {"10.1.0.0": "a", "fd00::": "a"}


async def test_a_node_keeps_one_block_also_with_another_manager(
    manager: KubernetesStore, network: VirtualNetwork, open_manager: OpenManager, server: FakeApiServer
) -> None:
    await manager.node_blocks.keep(network.uuid, "a")
    writes = [request for request in server.requests if "addressblocks" in request and not request.startswith("watch")]
    second = await open_manager()
    for each in (manager, second):
        assert await each.node_blocks.keep(network.uuid, "a")
    assert nodes(server) == {"10.1.0.0": "a"}
    assert [request for request in server.requests if request in {"create addressblocks", "update addressblocks"}] == [
        request for request in writes if request in {"create addressblocks", "update addressblocks"}
    ]


async def test_the_block_stays_when_the_last_pod_goes_and_pods_get_all_other_addresses(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, clock: FakeClock
) -> None:
    owner = new_owner()
    assert await allocate_one(manager, network, owner, node="a") == "10.1.0.3"
    await manager.node_blocks.keep(network.uuid, "a")
    assert nodes(server) == {"10.1.0.0": "a"}
    await manager.release([owner], hold=0.0)
    clock.advance(2 * CLEANUP_DELAY)
    await manager.address_owners()
    assert nodes(server) == {"10.1.0.0": "a"}
    with pytest.raises(AddressUnavailableError, match="the address of the node"):
        await allocate_one(manager, network, node="a", address="10.1.0.2")


async def test_nodes_that_own_addresses_are_no_interfaces(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await manager.node_blocks.keep(network.uuid, "a")
    assert await manager.address_owners() == set()
    assert not await manager.has_addresses(network.uuid)
    assert await manager.node_blocks.nodes() == {"a"}
    assert kept(server)


async def test_nodes_without_pods_get_no_block_beyond_three_quarters_and_pods_get_every_address(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    found = [await manager.node_blocks.keep(network.uuid, f"node-{number}") for number in range(20)]
    assert found == [True] * 12 + [False] * 8
    for _ in range(1024 - 16 - 3):  # but the network's own address, the gateway, the broadcast address
        await allocate_one(manager, network, node="late")
    assert len(nodes(server)) == 16


async def test_a_network_of_few_blocks_has_none_for_nodes_without_pods(
    manager: KubernetesStore, server: FakeApiServer
) -> None:
    small = await manager.put_network(make_network("small", "10.2.0.0/24", forwarding_mode=ROUTED))
    assert not await manager.node_blocks.keep(small.uuid, "a")
    assert nodes(server) == {}


async def test_networks_that_are_not_routed_have_none(manager: KubernetesStore, server: FakeApiServer) -> None:
    bridged = await manager.put_network(make_network("blue", "10.2.0.0/20"))
    assert not await manager.node_blocks.keep(bridged.uuid, "a")
    assert nodes(server) == {}


async def test_the_block_of_a_node_that_is_gone_is_free_after_a_hold(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer, clock: FakeClock
) -> None:
    await manager.node_blocks.keep(network.uuid, "a")
    await manager.node_blocks.release("a")
    assert await manager.node_blocks.nodes() == set()
    assert kept(server) == {}
    await manager.node_blocks.keep(network.uuid, "b")
    assert nodes(server) == {"10.1.0.0": "a", "10.1.0.64": "b"}
    for seconds in (UNPLUGGED_HOLD, CLEANUP_DELAY, CLEANUP_DELAY):
        clock.advance(seconds)
        await manager.address_owners()
    assert nodes(server) == {"10.1.0.64": "b"}


async def test_a_node_that_comes_back_gets_its_address_again(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await manager.node_blocks.keep(network.uuid, "a")
    await manager.node_blocks.release("a")
    await manager.node_blocks.keep(network.uuid, "b")
    await manager.node_blocks.keep(network.uuid, "a")
    assert kept(server) == {node_owner("a"): "10.1.0.2", node_owner("b"): "10.1.0.64"}


async def test_a_network_can_go_while_nodes_keep_blocks_which_follow_its_subnets(
    manager: KubernetesStore, network: VirtualNetwork, server: FakeApiServer
) -> None:
    await manager.node_blocks.keep(network.uuid, "a")
    await manager.delete_network(network.uuid)
    with pytest.raises(NotFoundError):
        await manager.node_blocks.keep(network.uuid, "a")
    again = await manager.put_network(make_network("pods", "10.9.0.0/22", forwarding_mode=ROUTED))
    assert await manager.node_blocks.keep(again.uuid, "a")
    assert kept(server) == {node_owner("a"): "10.9.0.2"}

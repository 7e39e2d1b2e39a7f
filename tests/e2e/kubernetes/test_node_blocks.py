"""Address blocks that belong to nodes, on a real API server: stored with their node, deleted when they are empty."""

import asyncio

from contrail_config.kube.client import KubeClient
from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.store import KubernetesStore
from contrail_config.objects import ForwardingMode
from tests.support.address_blocks import block_entries
from tests.support.fake_clock import FakeClock
from tests.support.real_apiserver.server import ApiServer
from tests.support.virtual_networks import allocate_one, make_network, new_owner

BLOCKS = "/apis/opencontrail.org/v1alpha1/addressblocks"


async def test_blocks_of_nodes_are_stored_and_deleted(api_server: ApiServer, client: KubeClient) -> None:
    await ensure_crds(client)
    clock = FakeClock()
    store = KubernetesStore(client, clock=clock, flush_interval=0.0)
    network = await store.put_network(make_network("pods", "10.1.0.0/25", forwarding_mode=ForwardingMode.L3))
    owners = [new_owner() for _ in "abc"]
    for owner, node in zip(owners, "abc", strict=True):
        await allocate_one(store, network, owner, node=node)
    blocks = api_server.ask("GET", BLOCKS)["items"]
    assert [block["spec"]["node"] for block in blocks] == ["a", "b"]
    assert [entry.borrower for entry in block_entries(blocks) if entry.owner == owners[2]] == ["c"]
    assert sum(block["status"]["borrowed"] for block in blocks) == 1

    await store.release(owners, hold=5)
    clock.advance(5)
    await store.address_owners()
    clock.advance(CLEANUP_DELAY)
    async with asyncio.timeout(20):
        while api_server.ask("GET", BLOCKS)["items"]:  # noqa: ASYNC110 - deleted without an operation
            await asyncio.sleep(0.2)
    await store.close()

"""Committer: a pod costs the API server one write of its virtual machine; block writes are shared with other pods."""

import asyncio

import pytest

from contrail_config.kubernetes.committer import FLUSH_INTERVAL
from tests.contrail_config.kubernetes.managers import OpenManager, writes
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.virtual_networks import make_network, start_pod

PODS = 100


@pytest.mark.machine
async def test_a_hundred_pods_per_second_need_less_than_one_block_write_each(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager = await open_manager(flush_interval=FLUSH_INTERVAL)
    networks = [await manager.put_network(make_network(name, cidr)) for name, cidr in CIDRS.items()]
    server.requests.clear()
    async with asyncio.TaskGroup() as pods:
        for number in range(PODS):
            pods.create_task(start_pod(manager, networks, f"p{number}"))
            await asyncio.sleep(0.01)
    assert writes(server).count("create virtualmachines") == PODS
    assert len(writes(server)) < 2.2 * PODS  # at 100 pods/s; a slower host has larger batches


async def test_concurrent_pods_share_their_block_writes(open_manager: OpenManager, server: FakeApiServer) -> None:
    manager = await open_manager()
    networks = [await manager.put_network(make_network(name, cidr)) for name, cidr in CIDRS.items()]
    server.requests.clear()
    await asyncio.gather(*(start_pod(manager, networks, f"p{number}") for number in range(PODS)))
    assert len(writes(server)) <= PODS + 3 * 4  # each network has two blocks, one of them perhaps in two batches


async def test_a_pod_needs_no_read(open_manager: OpenManager, server: FakeApiServer) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network())
    await start_pod(manager, [network], "first")
    server.requests.clear()
    await start_pod(manager, [network], "second")
    assert server.requests == ["update addressblocks", "create virtualmachines"]


async def test_a_large_network_has_blocks_only_for_allocated_addresses(
    open_manager: OpenManager, server: FakeApiServer
) -> None:
    manager = await open_manager()
    network = await manager.put_network(make_network("wide", "10.32.0.0/12"))
    server.requests.clear()
    await asyncio.gather(*(start_pod(manager, [network] * 3, f"p{number}") for number in range(50)))
    assert writes(server).count("create addressblocks") == 3


CIDRS = {"pods": "10.32.0.0/12", "left": "10.1.0.0/16", "right": "10.2.0.0/16"}

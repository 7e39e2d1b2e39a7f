"""What others wrote into an address block, such as fields of a newer release, survives allocations and releases."""

from typing import Any

import pytest

from contrail_config.errors import InUseError
from contrail_config.objects import VirtualNetwork
from tests.contrail_config.kubernetes.managers import OpenManager
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.writes import merge
from tests.support.stored_objects import BLOCK_KIND, allocated_addresses
from tests.support.virtual_networks import allocate_one, make_network, new_owner

NEWER: dict[str, Any] = {
    "metadata": {"labels": {"newer": "label"}, "annotations": {"newer": "annotation"}},
    "spec": {"added": "by the next release"},
    "status": {"added": "by the next release"},
}


@pytest.fixture
async def network(open_manager: OpenManager, server: FakeApiServer) -> VirtualNetwork:
    """A network with one allocated address, in a block that a newer release has written since."""
    writer = await open_manager()
    network = await writer.put_network(make_network())
    await allocate_one(writer, network)
    server.storage.put(BLOCK_KIND, merge(block(server), NEWER))
    return network


def block(server: FakeApiServer) -> dict[str, Any]:
    (found,) = server.storage.objects(BLOCK_KIND).values()
    return found


async def test_they_survive_an_allocation_and_a_release(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    manager, owner = await open_manager(), new_owner()
    for _ in range(2):
        address = await allocate_one(manager, network, owner)
        assert allocated_addresses(server)[network.uuid, address] == owner
        assert merge(block(server), NEWER) == block(server)
        await manager.release([owner])
        assert merge(block(server), NEWER) == block(server)


async def test_those_of_an_address_survive_an_allocation_beside_it(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    first, second = new_owner(), new_owner()
    lines = f"10.1.0.2 {first} @node-1 zone=a\n10.1.0.3 {second} 1.0 99999999999.0 @node-1 since=b zone=c\n"
    server.storage.put(BLOCK_KIND, merge(block(server), {"spec": {"addresses": lines}}))
    manager = await open_manager()
    assert await manager.address_owners() == {first}
    assert await allocate_one(manager, network) == "10.1.0.4"
    kept = [line.split() for line in block(server)["spec"]["addresses"].splitlines()]
    assert kept[0] == ["10.1.0.2", first, "@node-1", "zone=a"]
    assert (kept[1][:2], kept[1][4:]) == (["10.1.0.3", second], ["@node-1", "since=b", "zone=c"])
    with pytest.raises(InUseError):
        await manager.delete_network(network.uuid)


async def test_those_of_an_address_survive_its_release_and_a_shorter_hold(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    owner = new_owner()
    server.storage.put(
        BLOCK_KIND, merge(block(server), {"spec": {"addresses": f"10.1.0.2 {owner} @node-1 since=b zone=c\n"}})
    )
    manager = await open_manager()
    for hold in (1000.0, 100.0):
        await manager.release([owner], hold=hold)
        address, former, start, end, *unknown = block(server)["spec"]["addresses"].split()
        assert (address, former, unknown) == ("10.1.0.2", owner, ["since=b", "zone=c"])
        assert float(end) - float(start) == hold


async def test_they_survive_a_write_of_a_manager_that_did_not_know_them(
    open_manager: OpenManager, server: FakeApiServer, network: VirtualNetwork
) -> None:
    manager = await open_manager()
    await allocate_one(manager, network)
    server.storage.put(BLOCK_KIND, merge(block(server), {"spec": {"later": "unseen when the write is planned"}}))
    await allocate_one(manager, network)
    assert block(server)["spec"]["later"] == "unseen when the write is planned"
    assert merge(block(server), NEWER) == block(server)

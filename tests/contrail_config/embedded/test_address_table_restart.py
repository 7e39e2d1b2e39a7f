"""The search for the next address continues after a restart where it was."""

from pathlib import Path

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualNetwork
from tests.support.virtual_networks import allocate_one, make_network, new_owner


async def next_after_restart(store: SqliteStore, path: Path, network: VirtualNetwork) -> str:
    await store.close()
    reopened = await SqliteStore.open(path)
    address = await allocate_one(reopened, network)
    await reopened.close()
    return address


async def test_the_search_continues_after_sequential_addresses(store: SqliteStore, path: Path) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    await allocate_one(store, network, owner)
    await allocate_one(store, network)
    await store.release([owner], hold=0)
    assert await next_after_restart(store, path, network) == "10.1.0.4"


async def test_the_search_continues_after_requested_addresses(store: SqliteStore, path: Path) -> None:
    network = await store.put_network(make_network())
    for requested in ("10.1.0.77", "10.1.0.5", "10.1.0.4"):
        await allocate_one(store, network, address=requested)
    await allocate_one(store, network)
    assert await next_after_restart(store, path, network) == "10.1.0.7"


async def test_the_search_continues_after_a_held_address(store: SqliteStore, path: Path) -> None:
    network = await store.put_network(make_network())
    owner = new_owner()
    await allocate_one(store, network)
    await allocate_one(store, network, owner, address="10.1.0.40")
    await store.release([owner], hold=1e9)
    assert await next_after_restart(store, path, network) == "10.1.0.41"

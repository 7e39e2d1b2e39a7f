"""Changes of concurrent writes are delivered in the order in which the writes were acknowledged."""

import asyncio

from contrail_config.embedded.store import SqliteStore
from contrail_config.store import WatchStart
from tests.support.virtual_machines import make_virtual_machine


async def test_concurrent_changes_are_delivered_in_the_order_of_acknowledgement(store: SqliteStore) -> None:
    acknowledged: list[str] = []

    async def put(pod: str) -> None:
        await store.put_virtual_machine(make_virtual_machine(pod))
        acknowledged.append(pod)

    async with store.watch_virtual_machines(start=WatchStart.NOW) as changes:
        await asyncio.gather(*(put(f"p{n}") for n in range(100)))
        delivered = [await anext(changes) for _ in range(100)]
    assert [change.object.pod for change in delivered if change.object] == acknowledged

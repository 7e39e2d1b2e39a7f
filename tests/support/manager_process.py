"""Manager process on an embedded store (the argument is its path), for tests that kill it.

It serves `POD_COUNT` pods of three interfaces each, and prints the name of each pod whose virtual machine is written.
"""

import asyncio
import sys

from contrail_config.embedded.store import SqliteStore
from manager.configuration import ManagerConfiguration
from manager.source import Applied, Listed, Nad, Pod
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import running_manager

POD_COUNT = 200


def objects() -> list[Nad | Pod]:
    """The objects of its source."""
    nads = [make_nad("net-a"), make_nad("net-b", cidr="10.2.0.0/16,fd00:2::/64")]
    return [*nads, *(make_pod(f"pod-{number}", networks="net-a,net-b") for number in range(POD_COUNT))]


async def main(path: str) -> None:
    """Runs until it is killed."""
    store = await SqliteStore.open(path)
    async with running_manager(store, ManagerConfiguration()) as running, store.watch_virtual_machines() as changes:
        running.scripted.send(*(Applied(each) for each in objects()), Listed())
        async for change in changes:
            if change.object is not None:
                sys.stdout.write(f"{change.object.pod}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

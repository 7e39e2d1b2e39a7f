"""Manager process on a store (the argument is its place, see `open_at`), for tests that kill it.

It serves `POD_COUNT` pods of three interfaces each, and prints the name of each pod whose virtual machine is written.
"""

import asyncio
import sys

from manager.configuration import ManagerConfiguration
from manager.source import Applied, Listed, Nad, Pod
from tests.support.pods import make_nad, make_pod
from tests.support.running_manager import running_manager
from tests.support.stores_with_events import open_at

POD_COUNT = 200


def objects() -> list[Nad | Pod]:
    """The objects of its source."""
    nads = [make_nad("net-a"), make_nad("net-b", cidr="10.2.0.0/16,fd00:2::/64")]
    return [*nads, *(make_pod(f"pod-{number}", networks="net-a,net-b") for number in range(POD_COUNT))]


async def main(place: str) -> None:
    """Runs until it is killed."""
    async with (
        open_at(place) as store,
        running_manager(store, ManagerConfiguration()) as running,
        store.watch_virtual_machines() as changes,
    ):
        running.scripted.send(*(Applied(each) for each in objects()), Listed())
        async for change in changes:
            if change.object is not None:
                sys.stdout.write(f"{change.object.pod}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

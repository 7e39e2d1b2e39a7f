"""Process that writes to a store as fast as it can until it is killed, and prints each acknowledged operation.

Lines: `opening`, `open`, `put UUID` after a virtual machine is written, `going UUID` before its deletion, `gone UUID`
after.
"""

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualNetwork
from tests.support.virtual_networks import make_network, start_pod

CONCURRENCY = 32
NETWORKS = [make_network("left", "10.1.0.0/16"), make_network("right", "10.1.0.0/16"), make_network("third")]
POD_NETWORKS = [NETWORKS[0], NETWORKS[1], NETWORKS[0]]
"""Networks of the interfaces of each pod."""


def report(line: str) -> None:
    os.write(1, f"{line}\n".encode())  # unbuffered: lines written before the kill are in the pipe


async def write(store: SqliteStore, networks: list[VirtualNetwork], numbers: "itertools.count[int]") -> None:
    for number in numbers:
        virtual_machine = await start_pod(store, networks, f"p{number}")
        report(f"put {virtual_machine.uuid}")
        if number % 3 == 0:
            report(f"going {virtual_machine.uuid}")
            await store.delete_virtual_machine(virtual_machine.uuid)
            report(f"gone {virtual_machine.uuid}")


async def main(path: str) -> None:
    report("opening")
    store = await SqliteStore.open(path)
    for network in NETWORKS:
        await store.put_network(network)
    report("open")
    numbers = itertools.count()
    await asyncio.gather(*(write(store, POD_NETWORKS, numbers) for _ in range(CONCURRENCY)))


@contextlib.contextmanager
def heavy_writer(path: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """Starts the process and yields it with its stdout; kills it at the end."""
    command = [sys.executable, "-m", "tests.contrail_config.embedded.heavy_writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))

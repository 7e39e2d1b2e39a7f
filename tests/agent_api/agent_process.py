"""An agent in a process of its own, for tests that kill it or block: `python -m tests.agent_api.agent_process FOLDER`.

It serves the pod of the samples with two interfaces, and prints its Unix socket and its URL as one line.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent_api.handlers import vm_cfg
from contrail_config.embedded.store import SqliteStore
from tests.support.agent import DEADLINE, serve_agent
from tests.support.machines import SAMPLE_VM, left_interface, make_machine, sample_interface


class AgentProcess(NamedTuple):
    """A process that listens."""

    process: subprocess.Popen[bytes]
    socket: str
    url: str

    def kill(self) -> None:
        """Kills it as `kill -9` does."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def started(folder: Path) -> Iterator[AgentProcess]:
    """Starts one with its files below the folder, and kills it at the end."""
    command = [sys.executable, "-m", "tests.agent_api.agent_process", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        socket, url = process.stdout.readline().decode().split()
        agent = AgentProcess(process, socket, url)
        try:
            yield agent
        finally:
            agent.kill()


async def main(folder: Path) -> None:
    store = await SqliteStore.open(folder / "store" / "config.db")
    await store.put_virtual_machine(
        make_machine(uid=SAMPLE_VM, interfaces=(sample_interface(), left_interface(SAMPLE_VM, 1)))
    )
    async with serve_agent(store, folder) as served:
        await served.agent.virtual_machines.wait_for("k8s__default__p1", seconds=DEADLINE)
        sys.stdout.write(f"{served.socket} http://{served.address}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    vm_cfg.MAX_WAIT = 0.1  # seconds: nobody is to wait long for what never comes
    asyncio.run(main(Path(sys.argv[1])))

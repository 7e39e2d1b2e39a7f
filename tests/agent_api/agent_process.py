"""An agent in a separate process, for tests that kill or block it: `python -m tests.agent_api.agent_process FOLDER`.

It serves the sample pod with two interfaces, and a Linux datapath on TCP too. It prints its Unix socket and its URL in
one line.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agent_api.datapath.kind import Datapath
from agent_api.handlers import waiting
from contrail_config.embedded.store import SqliteStore
from tests.support.served_agent import DEADLINE, serve_agent
from tests.support.virtual_machines import SAMPLE_VM, left_interface, make_virtual_machine, sample_interface


class AgentProcess(NamedTuple):
    """A listening agent process."""

    process: subprocess.Popen[bytes]
    socket: str
    url: str

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def started(folder: Path) -> Iterator[AgentProcess]:
    """Starts an agent with its files below the folder, and kills it at the end."""
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
        make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(), left_interface(SAMPLE_VM, 1)))
    )
    async with serve_agent(store, folder, datapath=Datapath.LINUX, tcp_is_local=True) as served:
        await served.agent.virtual_machines.wait_for("k8s__default__p1", seconds=DEADLINE)
        sys.stdout.write(f"{served.socket} http://{served.address}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    waiting.MAX_WAIT = 0.1  # seconds, so that requests for unknown pods time out quickly
    asyncio.run(main(Path(sys.argv[1])))

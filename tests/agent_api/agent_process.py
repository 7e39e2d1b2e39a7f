"""An agent in a process of its own, for tests that kill it: `python -m tests.agent_api.agent_process FOLDER SOCKET`."""

import asyncio
import sys
from pathlib import Path

from prometheus_client import CollectorRegistry

from agent_api.agent import Agent
from agent_api.application import agent_application, agent_runner
from agent_api.unix_socket import serve_unix
from contrail_config.embedded.store import SqliteStore
from tests.support.machines import NODE


async def main(folder: Path, socket: str) -> None:
    store = await SqliteStore.open(folder / "store" / "config.db")
    agent = Agent(store=store, node=NODE, ports_dir=str(folder / "ports"), registry=CollectorRegistry())
    await agent.load_ports()
    runner = agent_runner(agent_application(agent, take_writes=True))
    await runner.setup()
    async with serve_unix(runner, socket):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await agent.run()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))

"""An agent in a process of its own, for tests that kill it: `python -m tests.agent_api.agent_process FOLDER`."""

import asyncio
import sys
from pathlib import Path

from contrail_config.embedded.store import SqliteStore
from tests.support.agent import serve_agent


async def main(folder: Path) -> None:
    store = await SqliteStore.open(folder / "store" / "config.db")
    async with serve_agent(store, folder) as served:
        sys.stdout.write(f"{served.socket}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

"""Entry point of the server process."""

import asyncio
import sys

from tests.bench.kubernetes.scripted_apiserver.connection import Connection
from tests.bench.kubernetes.scripted_apiserver.server import Server


async def main(pods: int) -> None:
    """Serves until stdin ends."""
    server = Server(pods=pods)
    listener = await asyncio.get_running_loop().create_server(lambda: Connection(server), "127.0.0.1", 0)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

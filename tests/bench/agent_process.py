"""Agent process with an embedded store and pods: `python -m tests.bench.agent_process FOLDER`.

Prints its listeners and memory use as one line of JSON, and exits at the end of stdin. It has two additional endpoints
for the benchmark: the number of waiting requests, and the write of another virtual machine.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from agent_api.application import agent_application, agent_runner
from agent_api.node_agent import NodeAgent
from agent_api.unix_socket import serve_unix
from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from contrail_service.listen import ListenAddress
from contrail_service.serving import serve_tcp
from tests.bench.agent_vm_cfg import INTERFACES, PODS, resident_kib
from tests.support.virtual_machines import NODE, make_virtual_machine, pod_interface


def pod(name: str) -> VirtualMachine:
    """The virtual machine of a pod with INTERFACES interfaces."""
    virtual_machine = make_virtual_machine(name)
    return make_virtual_machine(
        name,
        uid=virtual_machine.uuid,
        interfaces=tuple(pod_interface(virtual_machine.uuid, index) for index in range(INTERFACES)),
    )


def bench_routes(agent: NodeAgent, store: SqliteStore) -> list[web.RouteDef]:
    """The additional endpoints."""

    async def waiting(_request: web.Request) -> web.Response:
        return web.Response(text=str(len(agent.virtual_machines.waiters)))

    async def write(request: web.Request) -> web.Response:
        virtual_machine = pod(request.match_info["name"])
        started = time.monotonic()
        await store.put_virtual_machine(virtual_machine)
        return web.json_response({"started": started, "committed": time.monotonic()})

    return [web.get("/waiting", waiting), web.post("/write/{name}", write)]


async def main(folder: Path) -> None:
    """Serves until stdin ends."""
    store = await SqliteStore.open(folder / "store" / "config.db")
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(folder / "ports"), registry=CollectorRegistry())
    await agent.load_ports()
    runner = agent_runner(agent_application(agent, accept_writes=True, routes=bench_routes(agent, store)))
    await runner.setup()
    address = await serve_tcp(runner, ListenAddress("127.0.0.1", 0))
    async with serve_unix(runner, str(folder / "agent.sock")):
        running = asyncio.create_task(agent.run())
        empty = resident_kib("self")
        for number in range(PODS):
            await store.put_virtual_machine(pod(f"p{number}"))
        await agent.virtual_machines.wait_for(f"k8s__default__p{PODS - 1}", seconds=10)
        print(
            json.dumps(
                {
                    "socket": str(folder / "agent.sock"),
                    "port": address.port,
                    "empty_kib": empty,
                    "full_kib": resident_kib("self"),
                }
            ),
            flush=True,
        )
        await asyncio.to_thread(sys.stdin.read)
        running.cancel()
    await runner.cleanup()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

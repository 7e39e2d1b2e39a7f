"""Agent on a TCP address and a Unix socket, as the processes serve it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client import CollectorRegistry

from agent_api.application import agent_application, agent_runner
from agent_api.node_agent import NodeAgent
from agent_api.request_bodies import RequestBodyReader
from agent_api.unix_socket import serve_unix
from agent_api.virtual_machine_watch import WatchedStore
from agent_api.waiters import MAX_WAITING_REQUESTS
from contrail_service.listen import ListenAddress
from contrail_service.pages import status_routes
from contrail_service.serving import serve_tcp
from tests.support.virtual_machines import NODE

DEADLINE = 10.0  # seconds for each response


@dataclass(frozen=True)
class ServedAgent:
    """A running agent with a client for each listener."""

    agent: NodeAgent
    tcp: aiohttp.ClientSession
    unix: aiohttp.ClientSession
    address: ListenAddress
    socket: Path


@contextlib.asynccontextmanager
async def serve_agent(
    store: WatchedStore,
    folder: Path,
    *,
    tcp_writes: bool = True,
    root_peers_only: bool = False,
    body_reader: RequestBodyReader | None = None,
    limits: Mapping[str, Any] | None = None,
    max_waiting: int = MAX_WAITING_REQUESTS,
    tcp_is_local: bool = False,
    **options: Any,
) -> AsyncIterator[ServedAgent]:
    """Runs an agent with its ports directory and its socket below `folder`.

    `limits` are the connection limits; `tcp_is_local` serves on TCP what else only the Unix socket has; further options
    are those of `NodeAgent`.
    """
    registry = CollectorRegistry()
    socket = folder / "agent.sock"
    agent = NodeAgent(store=store, node=NODE, ports_dir=str(folder / "ports"), registry=registry, **options)
    await agent.load_ports()
    pages = await asyncio.to_thread(  # reads the version from a file
        status_routes, agent.readiness, registry, single_faults=agent.unconnected_ports, details=agent.details
    )
    runners = [
        agent_runner(
            agent_application(
                agent,
                accept_writes=writes,
                root_peers_only=checked,
                routes=pages,
                body_reader=body_reader,
                max_waiting=max_waiting,
                is_local=local,
            ),
            **limits or {},
        )
        for writes, checked, local in ((tcp_writes, root_peers_only, tcp_is_local), (True, False, True))
    ]
    async with contextlib.AsyncExitStack() as stack:
        for runner in runners:
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
        address = await serve_tcp(runners[0], ListenAddress("127.0.0.1", 0))
        await stack.enter_async_context(serve_unix(runners[1], str(socket)))
        await stack.enter_async_context(running(agent))
        timeout = aiohttp.ClientTimeout(total=DEADLINE)
        tcp = await stack.enter_async_context(aiohttp.ClientSession(f"http://{address}", timeout=timeout))
        unix = await stack.enter_async_context(
            aiohttp.ClientSession("http://agent", connector=aiohttp.UnixConnector(str(socket)), timeout=timeout)
        )
        yield ServedAgent(agent, tcp, unix, address, socket)


@contextlib.asynccontextmanager
async def running(agent: NodeAgent) -> AsyncIterator[None]:
    """Runs the agent until the context is left; raises its error there if it failed."""
    task = asyncio.create_task(agent.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(condition: Callable[[], object]) -> None:
    """Polls until the condition holds, for changes in the agent that no event reports."""
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0)


def port_of(vm_uuid: str, vmi_uuid: str, /, **other: Any) -> dict[str, Any]:
    """The body of `POST /vm` as the Contrail CNI plugin sends it; further keys have underscores for hyphens."""
    body = {
        "time": "2018-08-23 10:56:19.863169 +0000 UTC",
        "vm-id": "c" * 64,
        "vm-uuid": vm_uuid,
        "vm-name": "k8s__default__p1",
        "host-ifname": "tapeth0-aaaaaa",
        "vm-ifname": "eth0",
        "vm-namespace": "/proc/4711/ns/net",
        "vn-uuid": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
        "vmi-uuid": vmi_uuid,
    }
    return body | {key.replace("_", "-"): value for key, value in other.items()}


def instance_port_of(vm_uuid: str, vmi_uuid: str, /, **other: Any) -> dict[str, Any]:
    """The body of `POST /port` as nova's driver sends it; further keys have underscores for hyphens."""
    body = {
        "id": vmi_uuid,
        "instance-id": vm_uuid,
        "ip-address": "0.0.0.0",
        "ip6-address": "None",
        "vn-id": "773d9c45-2a91-4829-ad2f-7f70a7bb2b67",
        "display-name": "instance 1",
        "vm-project-id": "",
        "mac-address": "02:15:9b:59:1c:e5",
        "system-name": "tap159b591c-e5",
        "type": 0,
        "rx-vlan-id": -1,
        "tx-vlan-id": -1,
        "vhostuser-mode": 0,
        "author": "/usr/bin/vrouter-port-control",
        "time": "2018-08-23 10:56:19.863169",
    }
    return body | {key.replace("_", "-"): value for key, value in other.items()}

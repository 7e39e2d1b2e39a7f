"""The daemon on a node whose kernel lacks what the datapath needs: it says so and does not exit, so that DEL works."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from contrail_config.embedded.store import SqliteStore
from tests.support import without_netfilter
from tests.support.datapath_node import NodeDaemon, call_shim
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin_callers import await_listener
from tests.support.served_agent import ServedAgent, serve_agent
from tests.support.virtual_machines import left_interface, make_virtual_machine, pod_interface

UID = "d8b4a3f0-1d1c-4f0a-9d54-0d2f6f4a1c51"
MISSING = "kernel module nf_tables is missing: open a netlink socket: Protocol not supported"


@pytest.fixture
async def served(store: SqliteStore, tmp_path: Path) -> AsyncIterator[ServedAgent]:
    left = msgspec.structs.replace(left_interface(UID, 1), vni=5_100_001)
    await store.put_virtual_machine(make_virtual_machine("web", uid=UID, interfaces=(pod_interface(UID), left)))
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX) as served:
        yield served


@pytest.fixture
def daemon(served: ServedAgent, tmp_path: Path, make_netns: Callable[[str], Netns]) -> Iterator[NodeDaemon]:
    networks = NodeNetworks(tmp_path / "networks")
    settings = {
        "agent-socket": str(served.socket),
        "state-dir": str(tmp_path / "state"),
        "netns-dir": str(networks.folder),
    }
    daemon = NodeDaemon(tmp_path, settings)
    with make_netns("node").inside():
        daemon.launch(sys.executable, without_netfilter.__file__)
    yield daemon
    daemon.close()
    networks.close()


async def test_the_agent_names_the_module(served: ServedAgent, daemon: NodeDaemon) -> None:
    assert f"datapath: index 0: {MISSING}" in await _reasons(served)
    assert served.agent.missing_modules() == ("nf_tables",)
    assert daemon.is_running


async def test_add_fails_with_its_name_and_del_succeeds(daemon: NodeDaemon, make_netns: Callable[[str], Netns]) -> None:
    sandbox = make_netns("pod")
    await asyncio.to_thread(await_listener, str(daemon.socket))
    added = await _call(daemon, "ADD", sandbox)
    assert added["code"] == 104
    assert MISSING in added["msg"]
    assert sandbox.links() == []
    assert await _call(daemon, "DEL", sandbox) == {}


async def test_status_names_it(served: ServedAgent, daemon: NodeDaemon, make_netns: Callable[[str], Netns]) -> None:
    await _reasons(served)
    await asyncio.to_thread(await_listener, str(daemon.socket))
    failed = await _call(daemon, "STATUS", make_netns("pod"))
    assert failed["code"] == 50
    assert MISSING in failed["msg"]


async def _call(daemon: NodeDaemon, command: str, sandbox: Netns) -> Any:
    return await asyncio.to_thread(call_shim, daemon, command, "web", sandbox, namespace="default")


async def _reasons(served: ServedAgent) -> list[str]:
    """The agent's reasons for not being ready, once the daemon has reported."""
    async with asyncio.timeout(30):
        while True:
            async with served.unix.get("/readyz") as answer:
                reasons: list[str] = (await answer.json())["reasons"]
            if any(each.startswith("datapath: ") for each in reasons):
                return reasons
            await asyncio.sleep(0.02)

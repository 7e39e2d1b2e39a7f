"""Pods that the upstream plugin attached to our agent, after this plugin has replaced it on the node."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.served_agent import ServedAgent, port_of, serve_agent, until
from tests.support.upstream_plugin import Sandbox, UpstreamPlugin
from tests.support.virtual_machines import left_interface, make_virtual_machine, sample_interface


@pytest.fixture
async def served(store: SqliteStore, tmp_path: Path, plugin: Plugin) -> AsyncIterator[ServedAgent]:
    async with serve_agent(store, tmp_path) as served:
        plugin.settings |= {"agent-socket": str(served.socket)}
        yield served


@pytest.fixture
def upstream(served: ServedAgent, plugin: Plugin) -> UpstreamPlugin:
    return UpstreamPlugin(served.address, plugin.node, plugin.config_dir)


@pytest.fixture
async def pod(served: ServedAgent, store: SqliteStore, sandbox: Netns) -> PodSandbox:
    """A pod with two interfaces, which its agent knows."""
    pod = PodSandbox(sandbox.path, name="p1", namespace="default")
    interfaces = (sample_interface(), left_interface(pod.uid, 1))
    await store.put_virtual_machine(make_virtual_machine(uid=pod.uid, interfaces=interfaces))
    await until(lambda: served.agent.virtual_machines.find(pod.vm_name))
    return pod


async def test_del_detaches_them(
    served: ServedAgent, upstream: UpstreamPlugin, plugin: Plugin, pod: PodSandbox, sandbox: Netns
) -> None:
    await asyncio.to_thread(upstream.add, Sandbox(sandbox, pod.container))
    cache = plugin.config_dir.parent / "multus" / pod.vm_name
    cache.parent.mkdir()
    cache.write_text("[]")
    assert len(served.agent.ports) == 2
    message = (await asyncio.to_thread(plugin.check, pod, previous={"cniVersion": "1.0.0"})).failed(105)
    assert "record not found" in message  # code 3 would tell the runtime that there is nothing to clean up
    (await asyncio.to_thread(plugin.delete, pod)).succeeded()
    assert (plugin.node.links(), sandbox.links(), len(served.agent.ports)) == ([], [], 0)
    assert plugin.files() == []


async def test_posts_of_others_make_no_file_that_del_follows(
    served: ServedAgent, plugin: Plugin, pod: PodSandbox
) -> None:
    """Whoever can post to the agent chooses all values, those that upstream would derive too."""
    tap = f"tapeth0-{pod.uid}"[:14]
    plugin.node.ip("link", "add", tap, "type", "bridge")
    interface = served.agent.virtual_machines.all()[0].interfaces[0].uuid
    port = port_of(pod.uid, interface, **{"vm-id": pod.container, "host-ifname": tap, "vm-ifname": "eth0"})
    for _ in range(2):
        async with served.tcp.post("/vm", json=port) as answer:
            assert answer.status == 200
    (await asyncio.to_thread(plugin.delete, pod)).succeeded()
    assert plugin.node.links() == [tap]

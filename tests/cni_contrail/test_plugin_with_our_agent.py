"""The plugin with the real node agent, between config store and kernel."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import VirtualMachine
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.served_agent import ServedAgent, serve_agent
from tests.support.virtual_machines import left_interface, make_pending, make_virtual_machine, pod_interface


@pytest.fixture
async def served(store: SqliteStore, tmp_path: Path, plugin: Plugin) -> AsyncIterator[ServedAgent]:
    async with serve_agent(store, tmp_path) as served:
        plugin.settings |= {"agent-socket": str(served.socket), "poll-timeout": 3}
        yield served


@pytest.fixture
def pod(sandbox: Netns) -> PodSandbox:
    return PodSandbox(sandbox.path, name="p1", namespace="default")


@pytest.fixture
def machine(pod: PodSandbox) -> VirtualMachine:
    return make_virtual_machine(uid=pod.uid, interfaces=(pod_interface(pod.uid), left_interface(pod.uid, 1)))


async def test_a_pod_is_attached_checked_and_detached(
    served: ServedAgent, store: SqliteStore, plugin: Plugin, pod: PodSandbox, sandbox: Netns, machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(machine)
    added = (await asyncio.to_thread(plugin.add, pod)).succeeded().document
    assert sandbox.links() == ["eth0", "left"]
    assert added["interfaces"][1]["mac"] == machine.interfaces[0].mac
    assert added["ips"][0]["address"].startswith(machine.interfaces[0].addresses[0].address)
    async with served.unix.get(f"/vm/{pod.uid}") as answer:
        plugged = await answer.json()
    assert [each["id"] for each in plugged] == [each.uuid for each in machine.interfaces]
    (await asyncio.to_thread(plugin.check, pod, previous=added)).succeeded()
    (await asyncio.to_thread(plugin.delete, pod)).succeeded()
    async with served.unix.get(f"/vm/{pod.uid}") as answer:
        assert answer.status == 404
    assert plugin.node.links() == []


async def test_a_pod_whose_list_comes_later_is_attached_then(
    served: ServedAgent, store: SqliteStore, plugin: Plugin, pod: PodSandbox, sandbox: Netns, machine: VirtualMachine
) -> None:
    adding = asyncio.create_task(asyncio.to_thread(plugin.add, pod))
    while not len(served.agent.virtual_machines.waiters):  # noqa: ASYNC110 - the agent tells nobody when somebody waits
        await asyncio.sleep(0.01)
    await store.put_virtual_machine(machine)
    (await adding).succeeded()
    assert sandbox.links() == ["eth0", "left"]


async def test_a_meta_plugin_attaches_interfaces_one_by_one(
    served: ServedAgent, store: SqliteStore, plugin: Plugin, pod: PodSandbox, sandbox: Netns, machine: VirtualMachine
) -> None:
    await store.put_virtual_machine(machine)
    delegated = {"mode": "delegated"}
    for ifname, name in (("eth0", "contrail-k8s-cni"), ("left", "left")):
        (await asyncio.to_thread(plugin.add, pod, ifname, name=name, settings=delegated)).succeeded()
    assert sandbox.links() == ["eth0", "left"]
    (await asyncio.to_thread(plugin.delete, pod, "left", name="left", settings=delegated)).succeeded()
    async with served.unix.get(f"/vm/{pod.uid}/{machine.interfaces[0].uuid}") as answer:
        assert answer.status == 200
    async with served.unix.get(f"/vm/{pod.uid}/{machine.interfaces[1].uuid}") as answer:
        assert answer.status == 404


async def test_the_list_of_another_pod_of_the_name_is_ignored(
    served: ServedAgent, store: SqliteStore, plugin: Plugin, pod: PodSandbox
) -> None:
    await store.put_virtual_machine(make_virtual_machine())
    settings = {"poll-timeout": 0.5, "poll-retries": 1}
    message = (await asyncio.to_thread(plugin.add, pod, settings=settings)).failed(11)
    assert "default/p1" in message


@pytest.mark.parametrize("mode", ["thick", "delegated"])
async def test_the_error_of_a_pod_without_interfaces_names_what_it_waits_for(
    served: ServedAgent, store: SqliteStore, plugin: Plugin, pod: PodSandbox, sandbox: Netns, mode: str
) -> None:
    await store.put_pending(make_pending(uid=pod.uid))
    settings = {"poll-timeout": 0.1, "poll-retries": 5, "mode": mode}
    message = (await asyncio.to_thread(plugin.add, pod, settings=settings)).failed(11)
    assert message == (
        f"agent at unix:{served.socket} has no interfaces for pod default/p1 (k8s__default__p1) with uid {pod.uid}:"
        " NetworkNotFound: network attachment definition default/blue not found"
    )
    successor = PodSandbox(sandbox.path, name="p1", namespace="default")
    message = (await asyncio.to_thread(plugin.add, successor, settings=settings)).failed(11)
    assert message.endswith(f"with uid {successor.uid}")


@pytest.mark.parametrize("ifname", ["1a2b3c4d-5e", "a%b"])
async def test_a_port_that_somebody_posted_removes_no_link_and_fails_no_del(
    served: ServedAgent, plugin: Plugin, pod: PodSandbox, ifname: str
) -> None:
    """The agent keeps its ports in the directory in which DEL looks for those of the upstream plugin."""
    plugin.node.ip("link", "add", "tap1a2b3c4d-5e", "type", "veth", "peer", "name", "peer")
    port = {
        "vm-uuid": pod.uid,
        "vn-uuid": "11111111-0000-4000-8000-000000000001",
        "vmi-uuid": "11111111-0000-4000-8000-000000000002",
        "vm-id": pod.container,
        "vm-name": pod.vm_name,
        "host-ifname": "tap1a2b3c4d-5e",
        "vm-ifname": ifname,
    }
    async with served.tcp.post("/vm", json=port) as answer:
        assert answer.status == 200
    assert len(plugin.files()) == 1
    (await asyncio.to_thread(plugin.delete, pod)).succeeded()
    assert sorted(plugin.node.links()) == ["peer", "tap1a2b3c4d-5e"]
    assert len(plugin.files()) == 1


class TestStatus:
    @pytest.fixture
    async def ready(self, served: ServedAgent) -> ServedAgent:
        while served.agent.readiness():  # noqa: ASYNC110 - the agent tells nobody when it is ready
            await asyncio.sleep(0.01)
        return served

    async def test_a_ready_node_succeeds(self, ready: ServedAgent, plugin: Plugin) -> None:
        (await asyncio.to_thread(plugin.status)).succeeded()

    async def test_an_agent_without_its_virtual_machines_is_50(
        self, ready: ServedAgent, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ready.agent._watch, "problem", "the machines are not listed yet")
        assert "machines are not listed" in (await asyncio.to_thread(plugin.status)).failed(50)

    async def test_an_agent_without_its_ports_is_51(
        self, ready: ServedAgent, plugin: Plugin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(ready.agent.ports), "loaded", property(lambda table: False))
        assert "ports: not loaded yet" in (await asyncio.to_thread(plugin.status)).failed(51)

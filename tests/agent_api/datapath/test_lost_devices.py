"""Stale ports with a Linux datapath: host ends in network namespaces are not taken for lost."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_api.datapath.kind import Datapath
from agent_api.ports.directory import PortDirectory
from contrail_config.embedded.store import SqliteStore
from tests.agent_api.conftest import StartAgent
from tests.support.served_agent import ServedAgent, until
from tests.support.stored_ports import container_port, instance_port
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, left_interface, make_virtual_machine, sample_interface

LEFT_VMI = left_interface(SAMPLE_VM, 1).uuid
OTHER_VM, OTHER_VMI = "cccccccc-0000-4000-8000-000000000001", "cccccccc-0000-4000-8000-000000000002"


class Node:
    """An agent that has loaded ports, and the devices in the node's own namespace."""

    def __init__(self, store: SqliteStore, folder: Path, start_agent: StartAgent) -> None:
        self.devices: set[str] = set()
        self._store = store
        self._ports = PortDirectory(str(folder / "ports"))
        self._start_agent = start_agent

    async def start(self, *ports: Any, is_listed: bool = True) -> ServedAgent:
        """Starts an agent after it has persisted these ports, with the sample pod and its network of VNI 5."""
        await asyncio.to_thread(self._ports.load)
        await asyncio.to_thread(self._ports.change, write=ports)
        second = msgspec.structs.replace(left_interface(SAMPLE_VM, 1), vni=5)
        await self._store.put_virtual_machine(
            make_virtual_machine(uid=SAMPLE_VM, interfaces=(sample_interface(), second))
        )
        served = await self._start_agent(
            datapath=Datapath.LINUX, stale_timeout=3600, device_exists=self.devices.__contains__
        )
        await until(lambda: served.agent.virtual_machines.synced)
        served.agent.virtual_machines.synced = is_listed
        return served


@pytest.fixture
def node(store: SqliteStore, tmp_path: Path, start_agent: StartAgent) -> Node:
    return Node(store, tmp_path, start_agent)


async def left_after_cleaning(served: ServedAgent) -> set[str]:
    """Cleans up at once, and returns the interfaces that are still plugged."""
    cleaner = served.agent.stale_ports
    cleaner._timeout = 0
    await cleaner.clean_after_start()
    return {port.vmi_uuid for port in served.agent.ports.all()}


async def report(served: ServedAgent, **fields: Any) -> None:
    body = {"version": "v", "changes": 0, "repaired": 0, "seconds": 0.1, **fields}
    async with served.unix.post("/datapath", params={"follower": "test-1"}, json=body) as answer:
        assert (answer.status, await answer.json()) == (200, {})


async def test_a_host_end_in_a_namespace_stays_until_it_is_reported_missing(node: Node) -> None:
    served = await node.start(container_port(LEFT_VMI, host_ifname="tap1"))
    assert await left_after_cleaning(served) == {LEFT_VMI}
    await report(served, missing={"6": ["tap1"], "5": ["tap2"]})
    assert await left_after_cleaning(served) == {LEFT_VMI}
    await report(served, missing={"5": ["tap1"]})
    assert await left_after_cleaning(served) == set()


async def test_the_host_end_of_index_0_is_in_the_nodes_own_namespace(node: Node) -> None:
    served = await node.start(container_port(SAMPLE_VMI, host_ifname="tap0"))
    node.devices.add("tap0")
    assert await left_after_cleaning(served) == {SAMPLE_VMI}
    node.devices.clear()
    assert await left_after_cleaning(served) == set()


async def test_ports_of_a_deleted_virtual_machine_live_as_long_as_its_index_0(node: Node) -> None:
    ports = [
        container_port(vmi, vm_uuid=OTHER_VM, vm_name="k8s__default__gone", host_ifname=name)
        for vmi, name in ((OTHER_VMI, "tap0"), (LEFT_VMI, "tap1"))
    ]
    served = await node.start(*ports)
    node.devices.add("tap0")
    assert await left_after_cleaning(served) == {OTHER_VMI, LEFT_VMI}
    node.devices.clear()
    assert await left_after_cleaning(served) == set()


async def test_nothing_is_unplugged_before_the_virtual_machines_are_listed(node: Node) -> None:
    served = await node.start(container_port(SAMPLE_VMI, host_ifname="tap0"), is_listed=False)
    assert await left_after_cleaning(served) == {SAMPLE_VMI}


async def test_instances_are_in_the_nodes_own_namespace(node: Node) -> None:
    served = await node.start(instance_port(OTHER_VMI))
    assert await left_after_cleaning(served) == set()

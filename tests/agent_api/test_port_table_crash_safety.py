"""A killed agent: acknowledged ports are loaded by the next agent."""

import asyncio
import contextlib
import itertools
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent_api.ports.directory import PortDirectory
from tests.agent_api.agent_process import AgentProcess, started
from tests.support.served_agent import instance_port_of, port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, left_interface

CLIENTS = 8
ENOUGH = 100  # acknowledgements before the kill

OTHER_VMI = left_interface(SAMPLE_VM, 1).uuid


class Acknowledged:
    """Acknowledged state per interface; unknown if the last request got no response."""

    def __init__(self) -> None:
        self.plugged: set[str] = set()
        self.unplugged: set[str] = set()
        self.enough = asyncio.Event()

    def count(self) -> None:
        if len(self.plugged) + len(self.unplugged) >= ENOUGH:
            self.enough.set()


def container_ports(vm_uuid: str, vmi_uuids: list[str]) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Returns path and body to plug the ports, and the paths to unplug them."""
    ports = [port_of(vm_uuid, vmi_uuid, vm_name=f"k8s__default__{vm_uuid}") for vmi_uuid in vmi_uuids]
    return "/vm", ports, [f"/vm/{vm_uuid}"]


def instance_ports(vm_uuid: str, vmi_uuids: list[str]) -> tuple[str, list[dict[str, Any]], list[str]]:
    """Returns path and body to plug the ports, and the paths to unplug them."""
    ports = [instance_port_of(vm_uuid, vmi_uuid, type=2) for vmi_uuid in vmi_uuids]
    return "/port", ports, [f"/port/{vmi_uuid}" for vmi_uuid in vmi_uuids]


async def plug_and_unplug(client: aiohttp.ClientSession, acknowledged: Acknowledged) -> None:
    """Plugs ports of both types, one VirtualMachine after the other, and unplugs some, until the agent is gone."""
    with contextlib.suppress(aiohttp.ClientError):
        for number in itertools.count():
            vm_uuid, *vmi_uuids = (str(uuid.uuid4()) for _ in range(4))
            path, ports, unplug_paths = (container_ports if number % 2 else instance_ports)(vm_uuid, vmi_uuids)
            async with client.post(path, json=ports) as answer:
                assert answer.status == 200
            acknowledged.plugged.update(vmi_uuids)
            acknowledged.count()
            if number % 4 < 2:
                acknowledged.plugged.difference_update(vmi_uuids)
                for unplug_path in unplug_paths:
                    async with client.delete(unplug_path) as answer:
                        assert answer.status == 200
                acknowledged.unplugged.update(vmi_uuids)


@pytest.mark.parametrize("round_", range(3))
async def test_acknowledged_ports_survive_a_kill_under_load(tmp_path: Path, round_: int) -> None:
    acknowledged = Acknowledged()
    with started(tmp_path) as agent:
        connector = aiohttp.UnixConnector(agent.socket, limit=CLIENTS)
        async with aiohttp.ClientSession("http://agent", connector=connector) as client:
            clients = [asyncio.create_task(plug_and_unplug(client, acknowledged)) for _ in range(CLIENTS)]
            async with asyncio.timeout(30):
                await acknowledged.enough.wait()
                await asyncio.to_thread(agent.kill)
                await asyncio.gather(*clients)
    loaded = {port.vmi_uuid for port in await asyncio.to_thread(PortDirectory(str(tmp_path / "ports")).load)}
    assert acknowledged.plugged <= loaded
    assert not acknowledged.unplugged & loaded
    assert not (tmp_path / "ports" / "corrupt").exists()


async def test_responses_after_a_kill_are_the_same(tmp_path: Path) -> None:
    with started(tmp_path) as agent:
        await post(agent, "/vm", port_of(SAMPLE_VM, SAMPLE_VMI))
        await post(agent, "/port", instance_port_of(SAMPLE_VM, OTHER_VMI, type=2, rx_vlan_id=7, tx_vlan_id=8))
        await post(agent, "/gateway", [gateway()])
        before = await answers(agent)
        agent.kill()
    with started(tmp_path) as agent:
        assert await answers(agent) == before
    assert len(before["/vm"]) == 2


def gateway() -> dict[str, Any]:
    subnet = {"ip-address": "10.1.0.0", "prefix-len": 16}
    return {"interface": "vgw", "routing-instance": "d:p:v:v", "subnets": [subnet], "routes": [subnet]}


async def post(agent: AgentProcess, path: str, body: Any) -> None:
    async with aiohttp.ClientSession(agent.url) as client, client.post(path, json=body) as answer:
        assert answer.status == 200


async def answers(agent: AgentProcess) -> dict[str, Any]:
    """Returns the responses without their time."""
    found = {}
    async with aiohttp.ClientSession(agent.url) as client:
        for name, path in (
            ("/vm-cfg", "/vm-cfg/k8s__default__p1"),
            ("/vm", f"/vm/{SAMPLE_VM}"),
            ("/port", f"/port/{OTHER_VMI}"),
            ("/port of a container", f"/port/{SAMPLE_VMI}"),
            ("/gateway", "/gateway"),
        ):
            async with client.get(path) as answer:
                assert answer.status == 200, path
                found[name] = without_time(await answer.json())
    return found


def without_time(content: Any) -> Any:
    if isinstance(content, list):
        return [without_time(item) for item in content]
    return {key: value for key, value in content.items() if key != "time"}

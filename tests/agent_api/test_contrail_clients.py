"""Contrail's other clients of the agent: every request as they send it, every file as they write it."""

import asyncio
import json
from pathlib import Path

import pytest

from agent_api.ports.directory import PortDirectory
from tests.agent_api.conftest import StartAgent
from tests.support.raw_http import exchanged
from tests.support.served_agent import ServedAgent, until
from tests.support.stored_ports import instance_ports
from tests.support.upstream_clients import GatewayScript, HttpClient, PortControl, VcenterManager
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, left_interface

OTHER_VMI = left_interface(SAMPLE_VM, 1).uuid
VRF = "default-domain:admin:vn1:vn1"


@pytest.fixture
def ports(tmp_path: Path) -> Path:
    """The directory that agent and clients share."""
    return tmp_path / "ports"


class TestVrouterPortControl:
    """It writes the port's file before its POST and removes it before its DELETE."""

    @pytest.fixture
    def control(self, served: ServedAgent, ports: Path) -> PortControl:
        return PortControl(HttpClient(served.address), ports)

    async def test_adds_a_port_that_is_served_and_survives_a_restart(
        self, served: ServedAgent, control: PortControl, virtual_machine: None, ports: Path
    ) -> None:
        assert await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM, project="0" * 31 + "1") == 0
        async with served.tcp.get(f"/port/{SAMPLE_VMI}") as answer:
            item = await answer.json()
        assert (item["system-name"], item["vm-project-id"]) == (
            "tap1af4bee3-04",
            "00000000-0000-0000-0000-000000000001",
        )
        assert await asyncio.to_thread(PortDirectory(str(ports)).load) == served.agent.ports.all()

    async def test_deletes_it_with_its_file(self, served: ServedAgent, control: PortControl, ports: Path) -> None:
        await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM)
        assert await asyncio.to_thread(control.delete, SAMPLE_VMI) == 0
        assert len(served.agent.ports) == 0
        assert not (ports / SAMPLE_VMI).exists()

    async def test_enables_and_disables_a_remote_port(
        self, served: ServedAgent, control: PortControl, ports: Path
    ) -> None:
        await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM, kind=2)
        for change, state in ((control.enable, 1), (control.disable, 0), (control.disable, 0), (control.enable, 1)):
            assert await asyncio.to_thread(change, SAMPLE_VMI) == 0
            (port,) = instance_ports(served.agent.ports)
            assert port.link_state == json.loads((ports / SAMPLE_VMI).read_text())["link-state"] == state

    async def test_fails_where_it_fails_with_the_vrouter_agent(self, control: PortControl) -> None:
        assert await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM, mac_address="none") == 4
        assert await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM, rx_vlan_id=None) == 4
        await asyncio.to_thread(control.add, SAMPLE_VMI, SAMPLE_VM)
        assert await asyncio.to_thread(control.enable, SAMPLE_VMI) == 1

    async def test_files_written_while_no_agent_ran_are_loaded_by_the_next_one(
        self, start_agent: StartAgent, ports: Path
    ) -> None:
        await asyncio.to_thread(ports.mkdir)
        without_agent = PortControl(HttpClient(("127.0.0.1", 1)), ports)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.to_thread(without_agent.add, SAMPLE_VMI, SAMPLE_VM)
        served = await start_agent(device_exists=lambda _name: True)
        assert [port.vmi_uuid for port in served.agent.ports.all()] == [SAMPLE_VMI]


class TestVcenterManager:
    """After a restart it posts all its ports again."""

    async def test_adds_reads_enables_and_deletes_a_port(self, served: ServedAgent, virtual_machine: None) -> None:
        manager = VcenterManager(HttpClient(served.address))
        assert await asyncio.to_thread(manager.read_port, SAMPLE_VMI) is None
        assert await asyncio.to_thread(manager.add_port, SAMPLE_VMI, SAMPLE_VM, 2000)
        item = await asyncio.to_thread(manager.read_port, SAMPLE_VMI)
        assert item is not None
        assert (item["rx-vlan-id"], item["tx-vlan-id"], item["system-name"]) == (2000, 2000, SAMPLE_VMI)
        assert await asyncio.to_thread(manager.enable_port, SAMPLE_VMI)
        assert await asyncio.to_thread(manager.disable_port, SAMPLE_VMI)
        assert await asyncio.to_thread(manager.delete_port, SAMPLE_VMI)
        assert await asyncio.to_thread(manager.read_port, SAMPLE_VMI) is None

    async def test_after_its_restart_ports_not_posted_again_are_unplugged_and_link_states_kept(
        self, start_agent: StartAgent
    ) -> None:
        served = await start_agent(stale_timeout=0.5, device_exists=lambda _name: True)
        manager = VcenterManager(HttpClient(served.address))
        for vmi_uuid in (SAMPLE_VMI, OTHER_VMI):
            assert await asyncio.to_thread(manager.add_port, vmi_uuid, SAMPLE_VM, 2000)
        assert await asyncio.to_thread(manager.enable_port, SAMPLE_VMI)
        await asyncio.to_thread(manager.resynchronize, [(SAMPLE_VMI, SAMPLE_VM, 2000)])
        await until(lambda: len(served.agent.ports) == 1)
        (port,) = instance_ports(served.agent.ports)
        assert (port.vmi_uuid, port.link_state) == (SAMPLE_VMI, 1)
        assert set(manager.http.statuses) == {200}


class TestGatewayScript:
    """Its bodies are concatenated strings with irregular blanks."""

    async def test_creates_and_deletes_a_gateway(self, served: ServedAgent) -> None:
        script = GatewayScript(HttpClient(served.address))
        created = await asyncio.to_thread(script.create, "vgw1", VRF, ["1.2.3.0/24", "7.8.9.0/24"], ["8.8.8.0/24"])
        assert created
        (gateway,) = served.agent.gateways.all()
        assert (gateway.interface, gateway.routing_instance) == ("vgw1", VRF)
        assert [(subnet.ip_address, subnet.prefix_len) for subnet in gateway.subnets] == [
            ("1.2.3.0", 24),
            ("7.8.9.0", 24),
        ]
        assert await asyncio.to_thread(script.delete, "vgw1")
        assert served.agent.gateways.all() == []


async def test_syncports_of_curl_needs_no_body(served: ServedAgent) -> None:
    curl = b"POST /syncports HTTP/1.1\r\nHost: localhost:9091\r\nUser-Agent: curl/7.29.0\r\nAccept: */*\r\n\r\n"
    answer = await exchanged(served.address, curl)
    assert (answer.status, answer.json) == (200, {})

"""`/enable-port`, `/disable-port`: the link state of ports on ESXi hosts, which have no device on this host."""

import asyncio
import json
from pathlib import Path

import pytest

from agent_api.ports.directory import PortDirectory
from tests.support.served_agent import ServedAgent, instance_port_of, port_of
from tests.support.stored_ports import instance_ports
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI


async def post(served: ServedAgent, **other: object) -> None:
    async with served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI, **other)) as answer:
        assert answer.status == 200


async def put(served: ServedAgent, what: str, *, error: str | None = None) -> None:
    async with served.tcp.put(f"/{what}-port/{SAMPLE_VMI}") as answer:
        expected = (200, {}) if error is None else (500, {"error": error})
        assert (answer.status, await answer.json()) == expected


def link_state(served: ServedAgent) -> object:
    (port,) = instance_ports(served.agent.ports)
    return port.link_state


async def test_a_remote_port_is_down_until_it_is_enabled(served: ServedAgent) -> None:
    await post(served, type=2)
    for what, state in (("enable", 1), ("enable", 1), ("disable", 0), ("disable", 0), ("enable", 1)):
        await put(served, what)
        assert link_state(served) == state


async def test_the_link_state_is_persisted(served: ServedAgent, tmp_path: Path) -> None:
    await post(served, type=2)
    await put(served, "enable")
    root = tmp_path / "ports"
    assert json.loads((root / SAMPLE_VMI).read_text())["link-state"] == 1
    assert await asyncio.to_thread(PortDirectory(str(root)).load) == served.agent.ports.all()


async def test_posting_a_port_again_keeps_its_link_state(served: ServedAgent) -> None:
    await post(served, type=2)
    await put(served, "enable")
    await post(served, type=2, link_state=0, system_name="other")
    assert link_state(served) == 1
    (port,) = instance_ports(served.agent.ports)
    assert port.host_ifname == "other"


async def test_a_port_of_another_virtual_machine_or_type_starts_with_its_own_state(served: ServedAgent) -> None:
    await post(served, type=2)
    await put(served, "enable")
    await post(served, type=2, instance_id="bbbbbbbb-0000-4000-8000-000000000001")
    assert link_state(served) == 0
    await post(served, type=0)
    await post(served, type=2, link_state=1)
    assert link_state(served) == 1


@pytest.mark.parametrize("what", ["enable", "disable"])
class TestVrouterAgentErrors:
    """Status and message are those of the vrouter agent."""

    async def test_of_a_missing_port(self, served: ServedAgent, what: str) -> None:
        await put(served, what, error=f"{{Port Not found {SAMPLE_VMI}}}")

    async def test_of_a_container_port(self, served: ServedAgent, what: str) -> None:
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
        await put(served, what, error=f"{{Port Not found {SAMPLE_VMI}}}")

    @pytest.mark.parametrize("kind", [0, 1])
    async def test_of_a_port_with_a_device(self, served: ServedAgent, what: str, kind: int) -> None:
        await post(served, type=kind)
        await put(served, what, error=f"{{Incorrect Port type for {SAMPLE_VMI}}}")

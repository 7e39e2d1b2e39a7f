"""Instance ports are files `ports/<vmi-uuid>` in the format of the vrouter agent and its clients."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.instance import InstancePort
from agent_api.ports.port import Port
from tests.support.served_agent import ServedAgent, instance_port_of, port_of
from tests.support.stored_ports import container_port, instance_port
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, SAMPLE_VN

UPSTREAM_KEYS = [
    "id",
    "instance-id",
    "display-name",
    "ip-address",
    "ip6-address",
    "vn-id",
    "vm-project-id",
    "mac-address",
    "system-name",
    "type",
    "rx-vlan-id",
    "tx-vlan-id",
    "vhostuser-mode",
    "author",
    "time",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "ports"


@pytest.fixture
def directory(root: Path) -> PortDirectory:
    directory = PortDirectory(str(root))
    assert directory.load() == []
    return directory


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def instance_file(root: Path, content: Any) -> Path:
    place = root / SAMPLE_VMI
    place.write_text(content if isinstance(content, str) else json.dumps(content))
    return place


def only(ports: list[Port]) -> InstancePort:
    (port,) = ports
    assert isinstance(port, InstancePort)
    return port


async def test_a_plugged_port_is_a_file_in_the_vrouter_agents_format(served: ServedAgent, root: Path) -> None:
    async with served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 200
    assert files(root) == [SAMPLE_VMI]
    content = json.loads((root / SAMPLE_VMI).read_text())
    assert list(content) == UPSTREAM_KEYS
    assert content["author"] == "contrail-agent"
    assert (content["rx-vlan-id"], content["ip6-address"], content["vm-project-id"]) == (
        65535,
        "::",
        "00000000-0000-0000-0000-000000000000",
    )


async def test_the_file_of_a_remote_port_contains_its_link_state(served: ServedAgent, root: Path) -> None:
    await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI, type=2))
    content = json.loads((root / SAMPLE_VMI).read_text())
    assert list(content) == [*UPSTREAM_KEYS[:-2], "link-state", *UPSTREAM_KEYS[-2:]]
    assert content["link-state"] == 0


async def test_unplugging_a_port_removes_its_file(served: ServedAgent, root: Path) -> None:
    await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI))
    async with served.tcp.delete(f"/port/{SAMPLE_VMI}") as answer:
        assert (answer.status, await answer.json()) == (200, {})
    assert files(root) == []


async def test_a_file_already_removed_by_the_client_is_no_error(served: ServedAgent, root: Path) -> None:
    await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI))
    (root / SAMPLE_VMI).unlink()
    async with served.tcp.delete(f"/port/{SAMPLE_VMI}") as answer:
        assert answer.status == 200
    assert not served.agent.is_plugged(SAMPLE_VM)


async def test_ports_survive_a_restart(served: ServedAgent, directory: PortDirectory) -> None:
    await served.tcp.post("/port", json=[instance_port_of(SAMPLE_VM, SAMPLE_VMI, type=2, link_state=1)])
    assert await asyncio.to_thread(directory.load) == served.agent.ports.all()


class TestFilesOfContrailClients:
    """Files written by the vrouter agent and its clients."""

    def test_of_the_vrouter_agent_are_loaded(self, directory: PortDirectory, root: Path) -> None:
        instance_file(
            root,
            {
                "id": SAMPLE_VMI,
                "instance-id": SAMPLE_VM,
                "display-name": "vm1",
                "ip-address": "11.0.0.3",
                "ip6-address": "::",
                "vn-id": SAMPLE_VN,
                "vm-project-id": "9970147c-33b1-4bf7-8944-8968e708d430",
                "mac-address": "02:93:c2:c3:86:6e",
                "system-name": SAMPLE_VMI,
                "type": 2,
                "rx-vlan-id": 1999,
                "tx-vlan-id": 2000,
                "vhostuser-mode": 0,
                "link-state": 1,
                "author": "/usr/bin/contrail-vrouter-agent",
                "time": "426404:56:19.863169",
            },
        )
        port = only(directory.load())
        assert (port.kind, port.link_state, port.rx_vlan_id, port.tx_vlan_id) == (2, 1, 1999, 2000)
        assert (port.ip_address, port.project_uuid) == ("11.0.0.3", "9970147c-33b1-4bf7-8944-8968e708d430")
        assert port.author == "/usr/bin/contrail-vrouter-agent"

    def test_of_vrouter_port_control_with_its_forms_of_none_are_loaded(
        self, directory: PortDirectory, root: Path
    ) -> None:
        instance_file(root, instance_port_of(SAMPLE_VM, SAMPLE_VMI, type=2, vhostuser_mode=None))
        port = only(directory.load())
        assert (port.ip_address, port.ip6_address, port.rx_vlan_id, port.link_state) == ("0.0.0.0", "::", 65535, 0)
        assert port.vhostuser_mode == 0

    def test_disabled_by_vrouter_port_control_have_no_link_state_and_are_down(
        self, directory: PortDirectory, root: Path
    ) -> None:
        directory.change(write=[instance_port(type=2, link_state=1)])
        content = json.loads((root / SAMPLE_VMI).read_text())
        del content["link-state"]
        instance_file(root, content)
        assert only(directory.load()).link_state == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty"),
        ('{"id": "aaa', "truncated"),
        (json.dumps("{}"), "Expected `object`, got `str`"),
        ({"id": SAMPLE_VMI}, "missing required field `instance-id`"),
        (instance_port_of(SAMPLE_VM, SAMPLE_VMI, type=9), "Invalid enum value 9"),
        (
            instance_port_of(SAMPLE_VM, SAMPLE_VMI, ip_address="11.0.0"),
            "ip-address: '11.0.0' is not a valid IPv4 address",
        ),
        (instance_port_of(SAMPLE_VM, SAMPLE_VN), f"belongs to {SAMPLE_VN}"),
        (port_of(SAMPLE_VM, SAMPLE_VMI), "missing required field `id`"),
    ],
)
def test_an_invalid_file_is_quarantined_and_logged(
    directory: PortDirectory, root: Path, content: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    place = instance_file(root, content)
    assert directory.load() == []
    assert files(root) == [f"corrupt/{SAMPLE_VMI}.corrupt"]
    (record,) = caplog.records
    assert str(place) in record.getMessage()
    assert reason in record.getMessage()


def test_entries_without_a_uuid_name_or_not_regular_files_are_ignored(directory: PortDirectory, root: Path) -> None:
    (root / "notes.txt").write_text("by hand")
    (root / SAMPLE_VN).mkdir()
    os.symlink("/etc/passwd", root / SAMPLE_VMI)
    before = files(root)
    assert directory.load() == []
    assert files(root) == before


class TestInterfacePluggedAsContainerAndInstance:
    """It has one port, that of its latest POST, and one file."""

    async def test_a_container_port_replaces_an_instance_port(self, served: ServedAgent, root: Path) -> None:
        await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
        assert files(root) == [f"vm/k8s__default__p1/{SAMPLE_VMI}"]
        await served.tcp.delete(f"/port/{SAMPLE_VMI}")
        assert served.agent.is_plugged(SAMPLE_VM)

    async def test_an_instance_port_replaces_a_container_port(self, served: ServedAgent, root: Path) -> None:
        await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
        await served.tcp.post("/port", json=instance_port_of(SAMPLE_VM, SAMPLE_VMI))
        assert files(root) == [SAMPLE_VMI]
        await served.tcp.delete(f"/vm/{SAMPLE_VM}")
        assert served.agent.is_plugged(SAMPLE_VM)

    @pytest.mark.parametrize("newest", [0, 1])
    def test_the_newest_of_two_files_is_loaded(self, directory: PortDirectory, root: Path, newest: int) -> None:
        ports: list[Port] = [container_port(), instance_port()]
        for port in ports:
            directory.change(write=[port])
        for port, moment in zip(ports, (2, 1) if newest == 0 else (1, 2), strict=True):
            os.utime(directory.path(port), (moment, moment))
        assert [type(port) for port in directory.load()] == [(ContainerPort, InstancePort)[newest]]
        assert files(root) == [os.path.relpath(directory.path(ports[newest]), root)]

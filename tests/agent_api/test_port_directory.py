"""Ports are files in the vrouter agent's format, and a starting agent loads them."""

import asyncio
import json
import logging
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_api.ports.container import ContainerPort
from agent_api.ports.directory import PortDirectory
from agent_api.ports.port import Port
from tests.agent_api.conftest import StartAgent
from tests.support.served_agent import ServedAgent, port_of
from tests.support.virtual_machines import SAMPLE_VM, SAMPLE_VMI, SAMPLE_VN

Load = Callable[[], list[Port]]

VM_NAME = "k8s__default__p1"
UPSTREAM_KEYS = [
    "vm-uuid",
    "vn-uuid",
    "vmi-uuid",
    "vm-id",
    "vm-name",
    "host-ifname",
    "vm-ifname",
    "vm-namespace",
    "author",
    "time",
]


def contrail_plugin_file(**other: Any) -> str:
    """Returns a file as Contrail's CNI plugin writes it: the body of its POST, with the keys of newer releases."""
    body = port_of(SAMPLE_VM, SAMPLE_VMI, **other)
    return json.dumps(body | {"vhostuser-mode": 0, "vhostsocket-dir": ""}, indent="\t")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "ports"


@pytest.fixture
def place(root: Path) -> Path:
    """Path of the sample's port file; its directory exists."""
    (root / "vm" / VM_NAME).mkdir(parents=True)
    return root / "vm" / VM_NAME / SAMPLE_VMI


@pytest.fixture
def load(root: Path) -> Load:
    return PortDirectory(str(root)).load


def content_of(place: Path) -> Any:
    return json.loads(place.read_text())


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


async def test_a_plugged_port_is_a_file_in_upstreams_format(served: ServedAgent, root: Path) -> None:
    async with served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 200
    assert files(root) == [f"vm/{VM_NAME}/{SAMPLE_VMI}"]
    text = (root / "vm" / VM_NAME / SAMPLE_VMI).read_text()
    assert text.startswith('{\n\t"vm-uuid": "')
    content = json.loads(text)
    assert list(content) == UPSTREAM_KEYS
    assert content | {"time": ""} == port_of(SAMPLE_VM, SAMPLE_VMI, author="contrail-agent", time="")


@pytest.fixture
def written(request: pytest.FixtureRequest, place: Path) -> str:
    """What is in the sample's port file before the POST."""
    content: str = getattr(request, "param", contrail_plugin_file(time="2026-01-01 00:00:00.0 +0000 UTC"))
    place.write_text(content)
    return content


async def test_a_file_that_a_plugin_wrote_before_its_post_stays(
    served: ServedAgent, root: Path, place: Path, written: str
) -> None:
    async with served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 200
    assert content_of(place) == json.loads(written)
    async with served.tcp.delete(f"/vm/{SAMPLE_VM}") as answer:
        assert answer.status == 200
    assert files(root) == []


@pytest.mark.parametrize(
    "written",
    [
        *(contrail_plugin_file(**{key: "other"}) for key in ("host-ifname", "vm-id", "vm-ifname", "author")),
        *("", "{", "[]", "null"),
    ],
    indirect=True,
)
async def test_any_other_file_is_replaced(served: ServedAgent, place: Path, written: str) -> None:
    async with served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI)) as answer:
        assert answer.status == 200
    assert content_of(place) | {"time": ""} == port_of(SAMPLE_VM, SAMPLE_VMI, author="contrail-agent", time="")


async def test_unplugging_removes_the_file_and_the_empty_directory(served: ServedAgent, root: Path) -> None:
    other = str(uuid.uuid4())
    await served.tcp.post("/vm", json=[port_of(SAMPLE_VM, SAMPLE_VMI), port_of(SAMPLE_VM, other)])
    await served.tcp.delete(f"/vm/{SAMPLE_VM}/{SAMPLE_VMI}")
    assert files(root) == [f"vm/{VM_NAME}/{other}"]
    await served.tcp.delete(f"/vm/{SAMPLE_VM}")
    assert list((root / "vm").iterdir()) == []


async def test_a_file_already_removed_by_the_plugin_is_no_error(served: ServedAgent, root: Path) -> None:
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    (root / "vm" / VM_NAME / SAMPLE_VMI).unlink()
    (root / "vm" / VM_NAME).rmdir()
    async with served.tcp.delete(f"/vm/{SAMPLE_VM}") as answer:
        assert answer.status == 200
    assert not served.agent.is_plugged(SAMPLE_VM)


async def test_a_changed_virtual_machine_name_moves_the_file(served: ServedAgent, root: Path) -> None:
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI, vm_name="k8s__default__renamed"))
    assert files(root) == [f"vm/k8s__default__renamed/{SAMPLE_VMI}"]
    assert [path.name for path in (root / "vm").iterdir()] == ["k8s__default__renamed"]


async def test_another_virtual_machine_of_the_same_name_replaces_the_file(served: ServedAgent, root: Path) -> None:
    other = str(uuid.uuid4())
    await served.tcp.post("/vm", json=port_of(SAMPLE_VM, SAMPLE_VMI))
    await served.tcp.post("/vm", json=port_of(other, SAMPLE_VMI))
    assert json.loads((root / "vm" / VM_NAME / SAMPLE_VMI).read_text())["vm-uuid"] == other


async def test_ports_are_there_again_after_a_restart(start_agent: StartAgent, root: Path) -> None:
    before = await start_agent(device_exists=lambda _name: False)
    await before.tcp.post("/vm", json=[port_of(SAMPLE_VM, SAMPLE_VMI), port_of(SAMPLE_VM, str(uuid.uuid4()))])
    after = await asyncio.to_thread(PortDirectory(str(root)).load)
    assert sorted(after, key=lambda port: port.vmi_uuid) == sorted(
        before.agent.ports.all(), key=lambda port: port.vmi_uuid
    )


def test_a_file_of_contrails_cni_plugin_is_loaded(place: Path, load: Load) -> None:
    place.write_text(contrail_plugin_file())
    (port,) = load()
    assert isinstance(port, ContainerPort)
    assert (port.vm_uuid, port.vn_uuid, port.vmi_uuid) == (SAMPLE_VM, SAMPLE_VN, SAMPLE_VMI)
    assert (port.vm_id, port.vm_name, port.host_ifname) == ("c" * 64, VM_NAME, "tapeth0-aaaaaa")


@pytest.mark.parametrize("length", [255, 256, 400, 512])
def test_the_longest_virtual_machine_names_have_a_path(root: Path, length: int) -> None:
    port = ContainerPort(
        vm_uuid=SAMPLE_VM,
        vn_uuid=SAMPLE_VN,
        vmi_uuid=SAMPLE_VMI,
        vm_name="k8s__" + "n" * (length - 5),
        host_ifname="tap0",
    )
    directory = PortDirectory(str(root))
    directory.load()
    directory.change(write=[port])
    assert directory.load() == [port]
    directory.change(remove=[port])
    assert list((root / "vm").iterdir()) == []


def test_long_names_with_a_common_prefix_have_different_paths(root: Path) -> None:
    directory = PortDirectory(str(root))
    ports = [
        ContainerPort(
            vm_uuid=SAMPLE_VM,
            vn_uuid=SAMPLE_VN,
            vmi_uuid=str(uuid.uuid4()),
            vm_name="é" * 200 + end,
            host_ifname="tap0",
        )
        for end in "ab"
    ]
    directory.change(write=ports)
    assert len(list((root / "vm").iterdir())) == 2
    assert sorted(directory.load(), key=str) == sorted(ports, key=str)


class TestInvalidFiles:
    """Files left by the vrouter agent, a killed process or an editor."""

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "empty"),
            (b'{"vm-uuid": "aaaaaa', "truncated"),
            (b"\x00" * 600, "invalid character"),
            (b"[]", "Expected `object`, got `array`"),
            (b"\xff\xfe{}", "invalid"),
            (b'{"vm-uuid": 7}', "Expected `str`, got `int`"),
            (b"{}", "missing required field"),
            (b'{"x": ' + b"[" * 60_000, "recursion"),
            (contrail_plugin_file(vm_uuid="no-uuid").encode(), "vm-uuid: 'no-uuid' is not a valid uuid"),
            (
                contrail_plugin_file(vm_name="../elsewhere").encode(),
                "vm-name: '../elsewhere' is not a valid virtual machine name",
            ),
            (contrail_plugin_file(vm_name="k8s__default__other").encode(), "belongs to vm/k8s__default__other"),
            (contrail_plugin_file(vmi_uuid=SAMPLE_VN).encode(), f"belongs to vm/{VM_NAME}/{SAMPLE_VN}"),
            (contrail_plugin_file(vm_namespace="x" * 100_000).encode(), "truncated"),
        ],
    )
    def test_are_quarantined_and_logged(
        self,
        place: Path,
        root: Path,
        load: Load,
        content: bytes,
        reason: str,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        place.write_bytes(content)
        assert load() == []
        assert files(root) == [f"corrupt/{VM_NAME}/{SAMPLE_VMI}.corrupt"]
        assert (root / "corrupt" / VM_NAME / f"{SAMPLE_VMI}.corrupt").read_bytes() == content
        assert not place.parent.exists()
        (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert str(place) in record.getMessage()
        assert reason in record.getMessage()

    def test_do_not_prevent_the_loading_of_others(self, place: Path, load: Load) -> None:
        place.write_text(contrail_plugin_file())
        (place.parent / str(uuid.uuid4())).write_bytes(b"")
        assert [port.vmi_uuid for port in load()] == [SAMPLE_VMI]

    def test_are_quarantined_a_second_time(self, place: Path, root: Path, load: Load) -> None:
        for content in (b"first", b"second"):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content)
            load()
        assert (root / "corrupt" / VM_NAME / f"{SAMPLE_VMI}.corrupt").read_bytes() == b"second"

    def test_without_a_uuid_name_or_not_regular_are_ignored(
        self, place: Path, root: Path, load: Load, tmp_path: Path
    ) -> None:
        (place.parent / "notes.txt").write_text("by hand")
        (root / "vm" / "stray").write_text("no folder")
        (place.parent / SAMPLE_VN).mkdir()
        os.symlink("/etc/passwd", place)
        os.symlink(tmp_path, root / "vm" / "elsewhere")
        before = files(root)
        assert load() == []
        assert files(root) == before

    def test_staged_by_a_killed_process_are_removed(self, place: Path, root: Path, load: Load) -> None:
        place.write_text(contrail_plugin_file())
        (root / "unfinished" / "ports").mkdir(parents=True)
        (root / "unfinished" / "ports" / SAMPLE_VN).write_text('{"vm-uu')
        assert [port.vmi_uuid for port in load()] == [SAMPLE_VMI]
        assert files(root) == [f"vm/{VM_NAME}/{SAMPLE_VMI}"]


def test_the_newest_file_of_a_port_is_loaded(place: Path, root: Path, load: Load) -> None:
    newer = root / "vm" / "k8s__default__newer" / SAMPLE_VMI
    newer.parent.mkdir()
    newer.write_text(contrail_plugin_file(vm_name="k8s__default__newer"))
    place.write_text(contrail_plugin_file())
    os.utime(place, (1, 1))
    assert [port.vm_name for port in load()] == ["k8s__default__newer"]
    assert files(root) == [f"vm/k8s__default__newer/{SAMPLE_VMI}"]

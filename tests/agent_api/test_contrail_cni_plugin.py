"""Contrail's CNI plugin with this agent: a pod of four interfaces, from ADD to the removal of the last file."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from contrail_config.embedded.store import SqliteStore
from contrail_config.objects import InterfaceAddress, VirtualMachine, VirtualMachineInterface
from tests.agent_api.conftest import WaitForSync
from tests.support.netns import Netns
from tests.support.served_agent import ServedAgent, serve_agent, until
from tests.support.upstream_plugin import PluginError, Sandbox, UpstreamPlugin
from tests.support.virtual_machines import SAMPLE_VM, left_interface, make_virtual_machine, sample_interface

NAMES = ["eth0", "left", "eth2", "eth3"]


def attachment(index: int, network: str) -> VirtualMachineInterface:
    """An interface in the network of a NAD, without a requested name."""
    return msgspec.structs.replace(
        left_interface(SAMPLE_VM, index),
        addresses=(InterfaceAddress(f"10.1.{index}.5", 24, gateway=f"10.1.{index}.1"),),
        nad=f"default/{network}",
        config_name=network,
        interface=None,
        attachment=f"net{index}",
    )


@pytest.fixture
def virtual_machine() -> VirtualMachine:
    interfaces = (sample_interface(), left_interface(SAMPLE_VM, 1), attachment(2, "right"), attachment(3, "top"))
    return make_virtual_machine(uid=SAMPLE_VM, interfaces=interfaces)


@pytest.fixture
def ports(tmp_path: Path) -> Path:
    """The directory that agent and plugin share."""
    return tmp_path / "ports"


@pytest.fixture
def plugin(served: ServedAgent, ports: Path, make_netns: Callable[[str], Netns]) -> UpstreamPlugin:
    return UpstreamPlugin(served.address, make_netns("node"), ports / "vm")


@pytest.fixture
def sandbox(make_netns: Callable[[str], Netns]) -> Sandbox:
    return Sandbox(make_netns("pod"), "container-1")


def addresses(netns: Netns) -> dict[str, tuple[str, str]]:
    """Returns MAC and IPv4 address by name of every interface of a sandbox."""
    links = json.loads(netns.ip("-json", "-4", "address", "show"))
    return {
        link["ifname"]: (mac_of(netns, link["ifname"]), f"{address['local']}/{address['prefixlen']}")
        for link in links
        for address in link["addr_info"]
        if link["ifname"] != "lo"
    }


def mac_of(netns: Netns, name: str) -> str:
    (link,) = json.loads(netns.ip("-json", "link", "show", name))
    mac: str = link["address"]
    return mac


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def expected(virtual_machine: VirtualMachine) -> dict[str, tuple[str, str]]:
    return {
        name: (interface.mac, f"{interface.addresses[0].address}/{interface.addresses[0].prefix_length}")
        for name, interface in zip(NAMES, virtual_machine.interfaces, strict=True)
    }


async def test_it_attaches_reads_and_detaches_a_pod_of_four_interfaces(
    store: SqliteStore,
    served: ServedAgent,
    plugin: UpstreamPlugin,
    sandbox: Sandbox,
    virtual_machine: VirtualMachine,
    ports: Path,
) -> None:
    adding = asyncio.create_task(asyncio.to_thread(plugin.add, sandbox))
    await until(lambda: plugin.asked)
    await store.put_virtual_machine(virtual_machine)
    result = await adding
    assert result == {
        "interfaces": [{"name": "eth0", "mac": "02:15:9b:59:1c:e5"}],
        "ips": [{"version": "4", "address": "10.47.255.251/12", "gateway": "10.47.255.254"}],
        "routes": [{"dst": "0.0.0.0/0", "gw": "10.47.255.254"}],
        "dns": {"nameservers": ["10.47.255.253"]},
    }
    assert addresses(sandbox.netns) == expected(virtual_machine)
    assert sandbox.netns.ip("route", "show", "default").split()[:5] == [
        "default",
        "via",
        "10.47.255.254",
        "dev",
        "eth0",
    ]
    assert [asked for asked in plugin.asked if not asked.startswith("GET /vm-cfg")] == [
        *["POST /vm"] * 4,
        f"GET /vm/{SAMPLE_VM}",
    ]
    places = sorted(f"vm/k8s__default__p1/{interface.uuid}" for interface in virtual_machine.interfaces)
    assert files(ports) == places
    assert {port.vmi_uuid for port in served.agent.ports.all()} == {each.uuid for each in virtual_machine.interfaces}

    await asyncio.to_thread(plugin.delete, sandbox)
    assert plugin.asked[-1] == f"DELETE /vm/{SAMPLE_VM}"
    assert len(served.agent.ports) == 0
    assert files(ports) == []
    assert list((ports / "vm").iterdir()) == []
    assert (plugin.node.links(), sandbox.netns.links()) == ([], [])


async def test_it_attaches_them_one_by_one_under_a_meta_plugin(
    store: SqliteStore,
    served: ServedAgent,
    wait_for_sync: WaitForSync,
    plugin: UpstreamPlugin,
    sandbox: Sandbox,
    virtual_machine: VirtualMachine,
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    for network, ifname, name in (
        ("default", "eth0", "eth0"),
        ("left", "net1", "left"),  # the name requested by the pod always wins
        ("right", "eth2", "eth2"),
        ("top", "eth3", "eth3"),
    ):
        result = await asyncio.to_thread(plugin.add_one, sandbox, network=network, ifname=ifname)
        assert result["interfaces"][0]["name"] == name
    assert addresses(sandbox.netns) == expected(virtual_machine)
    assert plugin.asked == [
        "GET /vm-cfg/k8s__default__p1",
        *(
            asked
            for interface in virtual_machine.interfaces
            for asked in ("POST /vm", f"GET /vm/{SAMPLE_VM}/{interface.uuid}")
        ),
    ]
    await asyncio.to_thread(plugin.delete, sandbox)
    assert len(served.agent.ports) == 0


async def test_the_agents_files_protect_a_newer_sandbox_as_the_plugins_own_do(
    store: SqliteStore,
    served: ServedAgent,
    wait_for_sync: WaitForSync,
    plugin: UpstreamPlugin,
    sandbox: Sandbox,
    virtual_machine: VirtualMachine,
    make_netns: Callable[[str], Netns],
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    await asyncio.to_thread(plugin.add, sandbox)
    older = Sandbox(make_netns("older"), "container-0")
    await asyncio.to_thread(plugin.delete, older)
    assert len(served.agent.ports) == 4
    assert addresses(sandbox.netns) == expected(virtual_machine)


async def test_it_times_out_for_a_pod_that_never_appears(plugin: UpstreamPlugin, sandbox: Sandbox) -> None:
    plugin.poll_timeout = 0
    with pytest.raises(PluginError, match="PollVmCfg"):
        await asyncio.to_thread(plugin.add, sandbox)
    assert plugin.asked == ["GET /vm-cfg/k8s__default__p1"] * plugin.poll_retries


async def test_it_detaches_after_a_restart_of_the_agent(
    store: SqliteStore,
    wait_for_sync: WaitForSync,
    plugin: UpstreamPlugin,
    sandbox: Sandbox,
    virtual_machine: VirtualMachine,
    ports: Path,
    tmp_path: Path,
) -> None:
    await store.put_virtual_machine(virtual_machine)
    await wait_for_sync()
    await asyncio.to_thread(plugin.add, sandbox)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "ports").symlink_to(ports)
    async with serve_agent(store, tmp_path / "later") as later:
        assert len(later.agent.ports) == 4
        plugin.address = later.address
        await asyncio.to_thread(plugin.delete, sandbox)
        assert len(later.agent.ports) == 0
        assert files(ports) == []

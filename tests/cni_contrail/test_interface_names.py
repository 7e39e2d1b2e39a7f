"""Interface names in the sandbox and on the host, and names that are rejected before anything is created."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni_contrail.errors import Code, PluginError
from cni_contrail.interfaces.names import alias, host_name, sandbox_names
from cni_contrail.pod import PodIdentity
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, ServePod, make_vmis
from tests.support.served_interfaces import node_agent_list


def test_index_0_has_the_runtimes_name_and_others_are_numbered() -> None:
    assert sandbox_names(node_agent_list(make_vmis(3)).interfaces, "eth0") == ["eth0", "eth1", "eth2"]
    assert sandbox_names(node_agent_list(make_vmis(3)).interfaces, "net7") == ["net7", "eth1", "eth2"]


def test_a_requested_name_is_used_except_at_index_0() -> None:
    vmis = make_vmis(3)
    vmis[0] = vmis[0].annotated(interface="mgmt")
    vmis[2] = vmis[2].annotated(interface="left")
    assert sandbox_names(node_agent_list(vmis).interfaces, "eth0") == ["eth0", "eth1", "left"]


@pytest.mark.parametrize("requested", ["eth0", "eth1"])
def test_duplicate_names_are_rejected_with_both_interfaces(requested: str) -> None:
    vmis = make_vmis(3)
    vmis[2] = vmis[2].annotated(interface=requested)
    other = vmis[0] if requested == "eth0" else vmis[1]
    with pytest.raises(PluginError) as caught:
        sandbox_names(node_agent_list(vmis).interfaces, "eth0")
    assert caught.value.code == Code.INTERFACE_NAMES
    assert other.uuid in caught.value.message
    assert vmis[2].uuid in caught.value.message
    assert requested in caught.value.message


@pytest.mark.parametrize("name", ["0123456789abcdef", "a b", "a/b", "..", "a:b", "ääääääää"])
def test_an_invalid_link_name_is_rejected_with_its_interface(name: str) -> None:
    vmis = make_vmis(2)
    vmis[1] = vmis[1].annotated(interface=name)
    with pytest.raises(PluginError) as caught:
        sandbox_names(node_agent_list(vmis).interfaces, "eth0")
    assert caught.value.code == Code.INTERFACE_NAMES
    assert vmis[1].uuid in caught.value.message


@given(st.text(min_size=1), st.text(min_size=1, max_size=15))
def test_a_host_name_is_the_start_of_the_base32_digest(container: str, ifname: str) -> None:
    digest = hashlib.blake2b(f"{container}/{ifname}".encode(), digest_size=8).digest()
    assert host_name(container, ifname) == "tap" + base64.b32encode(digest).decode().lower()[:12]


def test_host_names_are_unique_per_container_and_attachment() -> None:
    names = {host_name(f"{container:064x}", f"interface{index:05}") for container in range(50) for index in range(50)}
    assert len(names) == 2500
    assert {len(name) for name in names} == {15}


def test_an_alias_fits_into_the_kernels_255_bytes() -> None:
    text = alias("c" * 64, PodIdentity("n" * 63, "p" * 253, ""), "5c1e7a52-9d0b-4f5e-8a43-0d6f3c1b7e10")
    assert len(text) == 255
    assert text.startswith("contrail cccccccccccc nnn")


def test_nothing_is_created_for_duplicate_names(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 3)
    agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(interface="eth2"), vmis[2]])
    message = plugin.add(pod).failed(103)
    assert vmis[1].uuid in message
    assert vmis[2].uuid in message
    assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])
    assert agent.received("POST") == []


def test_requested_names_are_used_in_the_sandbox(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, serve_pod: ServePod
) -> None:
    vmis = serve_pod(agent, 3)
    agent.serve(pod.vm_name, [vmis[0], vmis[1].annotated(interface="interface123456"), vmis[2]])
    result = plugin.add(pod, "primary0").succeeded().document
    assert sandbox.links() == ["primary0", "interface123456", "eth2"]
    assert result["interfaces"][1]["name"] == "primary0"
    plugin.delete(pod, "primary0").succeeded()
    assert plugin.node.links() == []

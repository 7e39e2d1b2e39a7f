"""Nested mode as far as it needs no VLAN of the kernel: plans, names and what is rejected before a link is created."""

import errno
from collections.abc import Callable
from dataclasses import replace

import pytest

from cni_contrail.errors import PluginError
from cni_contrail.interfaces.names import vlan_link_name
from cni_contrail.interfaces.planning import plan_interfaces
from cni_contrail.link.errors import KernelError
from cni_contrail.link.macvlans import temporary_name
from cni_contrail.link.plan import InterfacePlan
from cni_contrail.link.vlan_links import explained
from cni_contrail.pod import PodIdentity
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import NO_VLAN, ScriptedAgent, ServePod, Vmi, make_vmis
from tests.support.served_interfaces import node_agent_list

NESTED = {"vif-type": "macvlan", "parent-interface": "uplink"}


@pytest.fixture
def nothing_is_left(plugin: Plugin, sandbox: Netns) -> Callable[[], None]:
    def check() -> None:
        assert (plugin.node.links(), sandbox.links(), plugin.files()) == ([], [], [])

    return check


def planned(vmis: list[Vmi], parent: str = "eth0") -> list[InterfacePlan]:
    served = node_agent_list(vmis).interfaces
    return plan_interfaces(
        served,
        [f"eth{each.position}" for each in served],
        served,
        container_id="c1",
        pod=PodIdentity("demo", "web-0", ""),
        mtu=1500,
        primary_is_ours=True,
        parent=parent,
    )


def in_vlans(*vlans: object) -> list[Vmi]:
    return [replace(vmi, vlan=vlan) for vmi, vlan in zip(make_vmis(len(vlans)), vlans, strict=True)]


def test_each_interface_is_planned_over_its_vlan() -> None:
    plans = planned(in_vlans(1, 4094, 1), parent="ens3")
    assert [(plan.parent, plan.vlan_id) for plan in plans] == [("ens3", 1), ("ens3", 4094), ("ens3", 1)]
    assert [plan.host_name for plan in plans] == [vlan_link_name("ens3", vlan) for vlan in (1, 4094, 1)]


def test_the_vlan_does_not_matter_without_nested_mode() -> None:
    for vlan in (NO_VLAN, None, "x"):
        [plan] = planned(in_vlans(vlan), parent="")
        assert (plan.parent, plan.vlan_id) == ("", 0)
        assert plan.host_name.startswith("tap")


@pytest.mark.parametrize("vlan", [NO_VLAN, None, 0, -1, 4095, True, "100", 100.0, [100]])
def test_an_unusable_vlan_is_rejected(vlan: object) -> None:
    with pytest.raises(PluginError, match=r"vlan-id must be a whole number from 1 to 4094") as rejected:
        planned(in_vlans(7, vlan))
    assert rejected.value.code == 100
    assert "1 (demo/net-1" in rejected.value.message


def test_vlan_links_of_different_parents_and_vlans_have_different_names() -> None:
    names = {vlan_link_name(parent, vlan) for parent in ("eth0", "eth1", "bond0.5") for vlan in range(1, 4095)}
    assert len(names) == 3 * 4094
    assert {len(name) for name in names} == {15}
    assert vlan_link_name("eth0", 12).startswith("vlan12-")


def test_temporary_names_differ_between_interfaces_and_containers() -> None:
    plans = planned(in_vlans(5, 5))
    other = [plan._replace(alias=plan.alias.replace("c1", "c2")) for plan in plans]
    names = {temporary_name(plan) for plan in (*plans, *other)}
    assert len(names) == 4
    assert {len(name) for name in names} == {15}


@pytest.mark.parametrize(("kind", "module"), [("vlan", "8021q"), ("macvlan", "macvlan")])
def test_a_missing_kernel_module_is_named(kind: str, module: str) -> None:
    error = KernelError("eth0: create", errno.EOPNOTSUPP, "Operation not supported (Unknown device type)")
    assert f"load module {module}" in str(explained(error, kind))
    challenged = KernelError(
        "eth0: create", errno.EOPNOTSUPP, "Operation not supported (VLANs not supported on device)"
    )
    assert explained(challenged, kind) is challenged


def test_an_agent_without_vlans_is_an_error_before_anything_is_created(
    agent: ScriptedAgent,
    plugin: Plugin,
    pod: PodSandbox,
    serve_pod: ServePod,
    nothing_is_left: Callable[[], None],
) -> None:
    """As the agent of this project serves its interfaces."""
    serve_pod(agent, 2)
    message = plugin.add(pod, settings=NESTED).failed(100)
    assert "not 65535, which means none: the agent has no VLAN for it" in message
    nothing_is_left()
    plugin.delete(pod, settings=NESTED).succeeded()


def test_a_missing_parent_is_an_error_of_the_configuration(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, nothing_is_left: Callable[[], None]
) -> None:
    serve_pod(agent, change=lambda vmi: replace(vmi, vlan=100))
    assert "parent-interface: link uplink not found" in plugin.add(pod, settings=NESTED).failed(7)
    nothing_is_left()
    assert "parent-interface: link uplink not found" in plugin.status(settings=NESTED).failed(50)


def test_a_parent_that_is_down_is_worth_another_try(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, node: Netns, serve_pod: ServePod
) -> None:
    node.ip("link", "add", "uplink", "type", "veth", "peer", "name", "end")
    serve_pod(agent, change=lambda vmi: replace(vmi, vlan=100))
    assert "parent-interface: link uplink is down" in plugin.add(pod, settings=NESTED).failed(11)
    assert "parent-interface: link uplink is down" in plugin.status(settings=NESTED).failed(50)
    assert plugin.files() == []

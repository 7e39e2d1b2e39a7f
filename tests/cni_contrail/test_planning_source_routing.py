"""Source routing is planned where subnets of a pod's interfaces overlap; CHECK and DEL know its rules."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cni_contrail.interfaces.planning import plan_interfaces
from cni_contrail.pod import PodIdentity
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, Subnet, Vmi, make_vmis
from tests.support.served_interfaces import node_agent_list, vrouter_agent_list

SHARED = [
    [Subnet("10.1.0.5", 24, "10.1.0.1"), Subnet("fd00:1:1::5", 64, "fd00:1:1::1")],
    [Subnet("10.1.0.6", 24, "10.1.0.1"), Subnet("fd00:1:1::6", 64, "fd00:1:1::1")],
    [Subnet("10.1.2.5", 24, "10.1.2.1")],
]
"""The third interface is in a subnet of its own."""
DELEGATED = {"mode": "delegated"}


def vmis(subnets: list[list[Subnet]], uid: str = "") -> list[Vmi]:
    made = make_vmis(len(subnets), uid=uid)
    return [replace(vmi, subnets=tuple(own)) for vmi, own in zip(made, subnets, strict=True)]


def planned(*subnets: Subnet) -> list[list[str]]:
    """`address gateway table` of each interface's source routing, for interfaces with one address each."""
    interfaces = node_agent_list(vmis([[each] for each in subnets])).interfaces
    names = [f"eth{each.position}" for each in interfaces]
    plans = plan_interfaces(
        interfaces, names, interfaces, container_id="c", pod=PodIdentity("", "p", ""), mtu=1500, primary_is_ours=True
    )
    return [[f"{each.address} {each.gateway} {each.table}" for each in plan.source_routing] for plan in plans]


class TestThePlan:
    def test_addresses_in_one_subnet(self) -> None:
        assert planned(
            Subnet("10.0.0.5", 24, "10.0.0.1"), Subnet("10.9.0.5", 24, "10.9.0.1"), Subnet("10.0.0.6", 24)
        ) == [["10.0.0.5 10.0.0.1 1000"], [], ["10.0.0.6 None 1002"]]

    def test_a_subnet_within_another(self) -> None:
        assert planned(
            Subnet("10.0.0.5", 8, "10.0.0.1"), Subnet("10.9.0.5", 24, "10.9.0.1"), Subnet("11.0.0.5", 24)
        ) == [["10.0.0.5 10.0.0.1 1000"], ["10.9.0.5 10.9.0.1 1001"], []]

    def test_a_single_address_within_a_subnet(self) -> None:
        assert planned(Subnet("fd00::5", 128, "fd00::1"), Subnet("fd00::6", 64)) == [
            ["fd00::5 fd00::1 1000"],
            ["fd00::6 None 1001"],
        ]

    def test_a_subnet_of_everything(self) -> None:
        assert planned(Subnet("10.0.0.5", 0), Subnet("192.0.2.5", 24)) == [
            ["10.0.0.5 None 1000"],
            ["192.0.2.5 None 1001"],
        ]

    def test_other_subnets_and_families_have_none(self) -> None:
        assert planned(Subnet("10.0.0.5", 24), Subnet("10.0.1.5", 24), Subnet("fd00::5", 24)) == [[], [], []]


class TestThePlanWithUnknownAddresses:
    """A Contrail vrouter agent reports the addresses of an interface after it is plugged."""

    def planned(self, networks: str, plugged: int) -> tuple[list[str], list[int | None]]:
        """Source routing and metrics of the plugged interface, where `networks` has one letter per interface."""
        made = [
            replace(vmi, network=f"773d9c45-2a91-4829-ad2f-00000000000{letter}")
            for vmi, letter in zip(make_vmis(len(networks)), networks, strict=True)
        ]
        interfaces = vrouter_agent_list(made, plugged=[plugged]).interfaces
        [plan] = plan_interfaces(
            [interfaces[plugged]],
            ["net1"],
            interfaces,
            container_id="c",
            pod=PodIdentity("", "p", ""),
            mtu=1500,
            primary_is_ours=True,
        )
        return [each.address for each in plan.source_routing], [each.metric for each in plan.addresses]

    def test_another_interface_of_the_network_counts_as_being_in_its_subnets(self) -> None:
        assert self.planned("abb", plugged=1) == (["10.1.1.5", "fd00:1:2::5"], [0, 0])

    def test_one_of_lower_index_is_preferred(self) -> None:
        assert self.planned("abb", plugged=2) == (["10.1.2.5", "fd00:1:3::5"], [2, 258])

    def test_interfaces_of_other_networks_do_not_count(self) -> None:
        assert self.planned("abb", plugged=0) == ([], [0, 0])


@pytest.fixture
def shared(agent: ScriptedAgent, pod: PodSandbox) -> list[Vmi]:
    made = vmis(SHARED, pod.uid)
    agent.serve(pod.vm_name, made)
    return made


def rules(sandbox: Netns) -> list[str]:
    """Source and table of rules with a table of ours."""
    found = [*json.loads(sandbox.ip("-j", "rule")), *json.loads(sandbox.ip("-j", "-6", "rule"))]
    return sorted(f"{rule['src']} {rule['table']}" for rule in found if str(rule["table"]).isdecimal())


OURS = ["10.1.0.5 1000", "10.1.0.6 1001", "fd00:1:1::5 1000", "fd00:1:1::6 1001"]


def test_a_pod_with_two_interfaces_in_one_network_is_attached_checked_and_detached(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, shared: list[Vmi]
) -> None:
    result = plugin.add(pod).succeeded().document
    assert rules(sandbox) == OURS
    plugin.check(pod, previous=result).succeeded()
    sandbox.ip("rule", "del", "from", "10.1.0.6", "table", "1001")
    assert "no rule from 10.1.0.6" in plugin.check(pod, previous=result).failed(105)
    plugin.delete(pod).succeeded()
    assert rules(sandbox) == []
    assert plugin.files() == []


def test_delegated_attachments_have_rules_of_their_own(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, shared: list[Vmi]
) -> None:
    plugin.add(pod, settings=DELEGATED).succeeded()
    result = plugin.add(pod, "net1", name="net-1", settings=DELEGATED).succeeded().document
    assert rules(sandbox) == OURS
    plugin.check(pod, "net1", name="net-1", settings=DELEGATED, previous=result).succeeded()
    plugin.delete(pod, "net1", name="net-1", settings=DELEGATED).succeeded()
    assert rules(sandbox) == ["10.1.0.5 1000", "fd00:1:1::5 1000"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_delegated_attachments_with_a_vrouter_agent_have_rules_if_they_are_in_one_network(
    vrouter_agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, order: tuple[int, int]
) -> None:
    first, second, other = vmis(SHARED, pod.uid)
    vrouter_agent.serve(pod.vm_name, [first, replace(second, network=first.network), other])
    attachments = [("eth0", "contrail-k8s-cni"), ("net1", "net-1")]
    for position in order:
        ifname, name = attachments[position]
        result = plugin.add(pod, ifname, name=name, settings=DELEGATED).succeeded().document
        plugin.check(pod, ifname, name=name, settings=DELEGATED, previous=result).succeeded()
    plugin.add(pod, "net2", name="net-2", settings=DELEGATED).succeeded()
    assert rules(sandbox) == OURS
    assert "dev eth0" in sandbox.ip("route", "get", "10.1.0.9")
    assert "dev net1" in sandbox.ip("route", "get", "10.1.0.9", "from", "10.1.0.6")
    assert "dev net1" in sandbox.ip("-6", "route", "get", "fd00:1:1::9", "from", "fd00:1:1::6")
    for ifname, name in attachments:
        plugin.delete(pod, ifname, name=name, settings=DELEGATED).succeeded()
    assert rules(sandbox) == []


def test_a_failed_add_leaves_no_rule(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, sandbox: Netns, shared: list[Vmi]
) -> None:
    agent.reject("POST")
    plugin.add(pod).failed(101)
    assert rules(sandbox) == []


def test_rules_of_another_sandbox_are_kept(
    plugin: Plugin, pod: PodSandbox, shared: list[Vmi], make_netns: Callable[[str], Netns]
) -> None:
    plugin.add(pod).succeeded()
    other = make_netns("pod")
    other.ip("rule", "add", "from", "10.1.0.5", "table", "1000", "priority", "1000")
    plugin.delete(pod, netns=other.path).succeeded()
    assert rules(other) == ["10.1.0.5 1000"]


def test_a_record_of_an_earlier_version_without_source_routing_is_read(
    plugin: Plugin, pod: PodSandbox, shared: list[Vmi]
) -> None:
    result = plugin.add(pod).succeeded().document
    record: dict[str, Any] = plugin.record(pod)
    for interface in record["interfaces"]:
        del interface["plan"]["source_routing"]
    plugin.record_path(pod).write_text(json.dumps(record))
    plugin.check(pod, previous=result).succeeded()
    plugin.delete(pod).succeeded()
    assert plugin.files() == []

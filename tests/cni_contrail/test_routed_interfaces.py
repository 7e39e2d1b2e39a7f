"""Index 0 that the host routes: connected by ADD, both families, checked, and gone with DEL."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.plugin import Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, Vmi, make_vmis

GATEWAYS = ["10.1.0.1", "fd00:1:1::1"]


class Attached(NamedTuple):
    """An attached pod, its sandbox, and the last part of its addresses."""

    pod: PodSandbox
    sandbox: Netns
    number: int

    @property
    def addresses(self) -> tuple[str, str]:
        """Its IPv4 and its IPv6 address."""
        return f"10.1.0.{self.number}", f"fd00:1:1::{self.number}"


def routed(vmi: Vmi, number: int) -> Vmi:
    subnets = tuple(replace(each, address=f"{each.address[:-1]}{number}") for each in vmi.subnets)
    return replace(vmi, subnets=subnets, datapath={"routed": GATEWAYS})


@pytest.fixture
def attach_next(plugin: Plugin, agent: ScriptedAgent, make_netns: Callable[[str], Netns]) -> Callable[[], Attached]:
    """Attaches another pod; the addresses of the first end in 5, those of the second in 6."""
    numbers = itertools.count(5)

    def attach() -> Attached:
        number, sandbox = next(numbers), make_netns("pod")
        pod = PodSandbox(sandbox.path, name=f"web-{number}")
        agent.serve(pod.vm_name, [routed(vmi, number) for vmi in make_vmis(1, uid=pod.uid)])
        plugin.add(pod).succeeded()
        return Attached(pod, sandbox, number)

    return attach


def test_pods_and_the_node_reach_each_other_in_both_families(
    attach_next: Callable[[], Attached], plugin: Plugin
) -> None:
    first, second = attach_next(), attach_next()
    for address in (*second.addresses, *GATEWAYS):
        assert reaches(first.sandbox, address)
    for address in first.addresses:
        assert reaches(plugin.node, address)


def test_check_accepts_it_and_del_removes_everything_but_the_filter(
    plugin: Plugin, agent: ScriptedAgent, pod: PodSandbox, sandbox: Netns
) -> None:
    agent.serve(pod.vm_name, [routed(vmi, 5) for vmi in make_vmis(1, uid=pod.uid)])
    added = plugin.add(pod).succeeded().document
    plugin.check(pod, previous=added).succeeded()
    assert {route["dst"] for route in added["routes"]} >= {"10.1.0.1/32", "10.1.0.0/24", "fd00:1:1::1/128"}
    plugin.delete(pod).succeeded()
    assert plugin.node.links() == []
    assert "10.1.0.5" not in plugin.node.ip("route", "show", "table", "all")


def test_a_pod_cannot_send_from_another_address(attach_next: Callable[[], Attached]) -> None:
    first, second = attach_next(), attach_next()
    first.sandbox.ip("address", "add", "10.1.0.99/32", "dev", "lo")
    first.sandbox.ip("route", "replace", "10.1.0.0/24", "via", "10.1.0.1", "dev", "eth0", "src", "10.1.0.99")
    assert not reaches(first.sandbox, second.addresses[0], timeout=1)


def test_a_first_pod_begins_no_connection_to_the_outside_before_the_masquerade_is_known(
    attach_next: Callable[[], Attached], plugin: Plugin, make_netns: Callable[[str], Netns]
) -> None:
    outside, node = make_netns("outside"), plugin.node
    node.ip("link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns", outside.name)
    for namespace, link, address in ((node, "uplink", "192.0.2.1"), (outside, "eth0", "192.0.2.2")):
        namespace.ip("address", "add", f"{address}/24", "dev", link)
        namespace.ip("link", "set", link, "up")
    outside.ip("route", "add", "10.1.0.0/24", "via", "192.0.2.1")
    pod = attach_next()
    pod.sandbox.ip("route", "replace", "192.0.2.0/24", "via", GATEWAYS[0])
    assert reaches(outside, pod.addresses[0])
    assert not reaches(pod.sandbox, "192.0.2.2", timeout=0.5)


def test_pods_of_isolated_networks_do_not_meet(
    plugin: Plugin, agent: ScriptedAgent, make_netns: Callable[[str], Netns]
) -> None:
    sandboxes = []
    for number, network in ((5, {}), (6, {"isolated-network": 7}), (7, {"isolated-network": 7})):
        sandbox = make_netns("pod")
        pod = PodSandbox(sandbox.path, name=f"web-{number}")
        vmis = [routed(vmi, number) for vmi in make_vmis(1, uid=pod.uid)]
        agent.serve(pod.vm_name, [replace(vmi, datapath=vmi.datapath | network) for vmi in vmis])
        plugin.add(pod).succeeded()
        sandboxes.append(sandbox)
    cluster, first, second = sandboxes
    assert reaches(first, "10.1.0.7")
    assert reaches(second, "fd00:1:1::6")
    for source, address in ((cluster, "10.1.0.6"), (first, "10.1.0.5"), (second, "fd00:1:1::5")):
        assert not reaches(source, address, timeout=0.5)


def test_an_interface_that_the_datapath_does_not_connect_fails_the_add(
    plugin: Plugin, agent: ScriptedAgent, pod: PodSandbox
) -> None:
    refused = {"refused": "network a:b:c: not connected: it has no VNI yet"}
    index_0, index_1 = make_vmis(2, uid=pod.uid)
    agent.serve(pod.vm_name, [routed(index_0, 5), replace(index_1, datapath=refused)])
    assert "network a:b:c: not connected: it has no VNI yet" in plugin.add(pod).failed(101)
    assert plugin.node.links() == []
    agent.serve(pod.vm_name, [routed(vmi, 5) for vmi in make_vmis(1, uid=pod.uid)])
    plugin.add(pod).succeeded()


@pytest.mark.parametrize("datapath", [{"isolated-network": -1}, {"refused": 5}])
def test_malformed_keys_of_the_datapath_are_rejected(
    plugin: Plugin, agent: ScriptedAgent, pod: PodSandbox, datapath: dict[str, object]
) -> None:
    agent.serve(pod.vm_name, [replace(vmi, datapath=datapath) for vmi in make_vmis(1, uid=pod.uid)])
    assert next(iter(datapath)) in plugin.add(pod).failed(100)


@pytest.mark.parametrize("gateways", ["10.1.0.1", [5], ["10.1.0"], {"gateways": []}])
def test_malformed_gateways_of_the_agent_are_rejected(
    plugin: Plugin, agent: ScriptedAgent, pod: PodSandbox, gateways: object
) -> None:
    agent.serve(pod.vm_name, [replace(vmi, datapath={"routed": gateways}) for vmi in make_vmis(1, uid=pod.uid)])
    assert "routed" in plugin.add(pod).failed(100)

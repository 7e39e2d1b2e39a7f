"""Host ends in the namespaces of their networks: created there, connected, checked, and removed."""

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from cni_contrail.datapath.namespaces import name_of
from tests.cni_contrail.conftest import until
from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.scripted_agents import ScriptedAgent, Vmi, make_vmis

_numbers = itertools.count(100_000 + os.getpid() % 1000 * 1000)


@pytest.fixture
def vnis() -> list[int]:
    return [next(_numbers) for _ in range(3)]


@pytest.fixture
def served(agent: ScriptedAgent, vnis: list[int], networks: NodeNetworks) -> Callable[..., list[Vmi]]:
    """Serves a pod with an interface in each network: `served(pod, 5)`, whose addresses end in the number."""

    def serve(pod: PodSandbox, last: int) -> list[Vmi]:
        vmis = [_in_network(vmi, vni, last) for vmi, vni in zip(make_vmis(3, uid=pod.uid), vnis, strict=True)]
        agent.serve(pod.vm_name, vmis)
        return vmis

    return serve


def _in_network(vmi: Vmi, vni: int, last: int) -> Vmi:
    subnets = tuple(replace(each, address=f"{each.address[:-1]}{last}") for each in vmi.subnets)
    datapath = {"network-namespace": name_of(vni), "bridge": "br0"}
    mac = f"{vmi.mac[:-2]}{last:02x}"  # the rest may be equal to that of another pod
    return replace(vmi, mac=mac, subnets=subnets, datapath=datapath)


class Attached(NamedTuple):
    """An attached pod and its sandbox; its addresses end in `number`."""

    pod: PodSandbox
    sandbox: Netns
    number: int

    def address(self, position: int) -> str:
        """IPv4 address of an interface."""
        return f"10.1.{position}.{self.number}"


Pair = tuple[Attached, Attached]


@pytest.fixture
def attach_next(
    plugin: Plugin, make_netns: Callable[[str], Netns], served: Callable[..., list[Vmi]]
) -> Callable[[], Attached]:
    """Attaches another pod; the addresses of the first end in 5, those of the second in 6."""
    numbers = itertools.count(5)

    def attach() -> Attached:
        number, sandbox = next(numbers), make_netns("pod")
        pod = PodSandbox(sandbox.path, name=f"web-{number}")
        served(pod, number)
        plugin.add(pod).succeeded()
        return Attached(pod, sandbox, number)

    return attach


@pytest.fixture
def pair(attach_next: Callable[[], Attached]) -> Pair:
    return attach_next(), attach_next()


def test_an_attached_pod_reaches_the_others_of_each_network(
    pair: Pair, networks: NodeNetworks, plugin: Plugin, vnis: list[int]
) -> None:
    first = pair[0].sandbox
    for position in range(3):
        for target in (f"10.1.{position}.6", f"fd00:1:{position + 1:x}::6"):
            assert reaches(first, target)
    assert plugin.node.links() == []
    assert [len(networks.ports(vni)) for vni in vnis] == [2, 2, 2]


def test_a_pod_is_attached_where_a_link_of_the_kernel_has_the_usual_index_of_a_bridge(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, networks: NodeNetworks, served: Callable[..., list[Vmi]],
    attach_next: Callable[[], Attached], vnis: list[int],
) -> None:  # fmt: skip
    """A bridge has the name of such a link here, since not every kernel has these tunnels."""
    os.close(networks.namespaces.open(vnis[1]))
    networks.run(vnis[1], "ip", "link", "add", "tunl0", "index", "2", "type", "bridge")
    served(pod, 9)
    result = plugin.add(pod).succeeded().document
    other = attach_next()
    for position in range(3):
        assert reaches(sandbox, other.address(position))
    plugin.check(pod, previous=result).succeeded()
    plugin.delete(pod).succeeded()
    assert [len(networks.ports(vni)) for vni in vnis] == [1, 1, 1]


def test_del_removes_the_host_ends_of_all_networks(
    pair: Pair, networks: NodeNetworks, plugin: Plugin, vnis: list[int]
) -> None:
    plugin.delete(pair[0].pod).succeeded()
    assert [len(networks.ports(vni)) for vni in vnis] == [1, 1, 1]
    assert pair[0].sandbox.links() == []
    plugin.delete(pair[0].pod).succeeded()
    plugin.delete(pair[1].pod, netns="").succeeded()
    assert [networks.ports(vni) for vni in vnis] == [[], [], []]


def test_del_without_a_record_finds_the_host_ends(
    pair: Pair, networks: NodeNetworks, plugin: Plugin, vnis: list[int]
) -> None:
    plugin.record_path(pair[0].pod).unlink()
    plugin.delete(pair[0].pod).succeeded()
    assert [len(networks.ports(vni)) for vni in vnis] == [1, 1, 1]


def test_del_never_deletes_a_link_of_another_sandbox(
    pair: Pair, networks: NodeNetworks, plugin: Plugin, vnis: list[int]
) -> None:
    plugin.delete(pair[0].pod, netns=pair[1].pod.netns).succeeded()
    assert [len(networks.ports(vni)) for vni in vnis] == [1, 1, 1]
    assert pair[1].sandbox.links() == ["eth0", "eth1", "eth2"]


def test_check_compares_the_host_ends_with_their_networks(
    plugin: Plugin, pod: PodSandbox, networks: NodeNetworks, served: Callable[..., list[Vmi]], vnis: list[int]
) -> None:
    served(pod, 5)
    result = plugin.add(pod).succeeded().document
    plugin.check(pod, previous=result).succeeded()
    [port] = networks.ports(vnis[1])
    networks.run(vnis[1], "ip", "link", "set", port, "nomaster")
    assert name_of(vnis[1]) in plugin.check(pod, previous=result).failed(105)
    networks.namespaces.delete(vnis[2])
    assert "does not exist" in plugin.check(pod, previous=result).failed(105)


def test_a_failed_add_leaves_no_host_end(
    plugin: Plugin, pod: PodSandbox, sandbox: Netns, networks: NodeNetworks, served: Callable[..., list[Vmi]],
    vnis: list[int],
) -> None:  # fmt: skip
    served(pod, 5)
    sandbox.ip("link", "add", "eth2", "type", "veth", "peer", "name", "other")
    plugin.add(pod).failed(102)
    assert [networks.ports(vni) for vni in vnis] == [[], [], []]
    assert sorted(sandbox.links()) == ["eth2", "other"]


def test_an_add_makes_a_network_again_that_somebody_deleted(
    pair: Pair, networks: NodeNetworks, attach_next: Callable[[], Attached], vnis: list[int]
) -> None:
    networks.run(vnis[0], "ip", "link", "delete", "br0")
    networks.namespaces.delete(vnis[1])
    networks.run(vnis[2], "nft", "flush", "ruleset")
    third, fourth = attach_next(), attach_next()
    for position in range(3):
        assert reaches(third.sandbox, fourth.address(position))


def test_orphans_in_networks_are_swept(
    plugin: Plugin, networks: NodeNetworks, attach_next: Callable[[], Attached], vnis: list[int]
) -> None:
    orphan = attach_next()
    orphan.sandbox.delete()
    until(lambda: [networks.ports(vni) for vni in vnis] == [[], [], []])  # they go with the sandbox
    attach_next()
    until(lambda: not plugin.record_path(orphan.pod).exists())


@pytest.mark.parametrize(
    ("datapath", "named"),
    [
        ({"network-namespace": "other-7", "bridge": "br0"}, "network-namespace"),
        ({"network-namespace": "contrail-07", "bridge": "br0"}, "network-namespace"),
        ({"network-namespace": "contrail-7/..", "bridge": "br0"}, "network-namespace"),
        ({"network-namespace": 7, "bridge": "br0"}, "network-namespace"),
        ({"network-namespace": "contrail-7"}, "bridge"),
        ({"network-namespace": "contrail-7", "bridge": "br1"}, "bridge"),
    ],
)
def test_a_malformed_network_of_the_agent_is_rejected(
    plugin: Plugin, pod: PodSandbox, agent: ScriptedAgent, networks: NodeNetworks, datapath: dict[str, Any], named: str
) -> None:
    agent.serve(pod.vm_name, [replace(vmi, datapath=datapath) for vmi in make_vmis(1, uid=pod.uid)])
    outcome: Outcome = plugin.add(pod)
    assert named in outcome.failed(100)
    assert networks.namespaces.existing() == set()


def test_an_interface_that_the_agent_refuses_fails_the_add(
    plugin: Plugin, pod: PodSandbox, agent: ScriptedAgent, networks: NodeNetworks
) -> None:
    first, second = make_vmis(2, uid=pod.uid)
    refused = {"network-namespace": "contrail-7", "bridge": "br0", "refused": "VNI 7: not connected, said the agent"}
    agent.serve(pod.vm_name, [first, replace(second, datapath=refused)])
    assert "interface 1: VNI 7: not connected, said the agent" in plugin.add(pod).failed(101)
    assert networks.namespaces.existing() == set()

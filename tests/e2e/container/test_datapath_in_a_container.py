"""Pods of a node whose daemon is in a container with the rights of the manifest: they reach each other, whatever
happens to the container."""

from cni_contrail.datapath.namespaces import name_of
from tests.e2e.container.podman_node import PodmanNode

VNI = 7


def test_pods_reach_each_other_and_outlive_the_container(node: PodmanNode) -> None:
    node.desired.set(VNI)
    assert node.desired.await_report()["problems"] == {}
    first, second = node.add(VNI), node.add(VNI)
    assert first.reaches(second)
    (pinned,) = node.pins(VNI)

    node.kill_daemon()
    assert first.reaches(second)
    node.start_daemon()
    third = node.add(VNI)
    assert node.pins(VNI) == [pinned]
    assert third.reaches(first)
    assert "10.1.1.1/24" in node.host.run("ip", "-n", name_of(VNI), "address", "show", "dev", "br0")


def test_a_network_has_its_tunnel_before_and_after_it_is_pinned(node: PodmanNode) -> None:
    node.host.run("ip", "link", "add", "underlay", "type", "veth", "peer", "name", "wire")
    node.host.run("ip", "address", "add", "192.0.2.1/24", "dev", "underlay")
    node.host.run("ip", "link", "set", "underlay", "up")
    node.desired.set_tunnel("192.0.2.1", "192.0.2.2")
    node.desired.set(VNI)
    assert node.desired.await_report()["problems"] == {}
    node.add(VNI)
    for _ in range(2):
        assert "dst 192.0.2.2" in node.host.run("bridge", "-n", name_of(VNI), "fdb", "show", "dev", "vx0")
        node.kill_daemon()
        node.start_daemon()


def test_the_container_removes_a_network_from_its_host(node: PodmanNode) -> None:
    node.desired.set(VNI)
    node.desired.await_report()
    pod = node.add(VNI)
    node.call("DEL", pod).succeeded()
    node.desired.set()
    node.await_removal(VNI)

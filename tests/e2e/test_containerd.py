"""Containers started by containerd on the network; container `web` is pod `default/default-web`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.containerd import Containerd
from tests.e2e.interfaces import default_gateways, interfaces
from tests.e2e.node import MakePod, Node


@pytest.fixture(scope="module", autouse=True)
def containerd(node: Node, busybox: Path) -> Iterator[Containerd]:
    containerd = Containerd(node, busybox)
    yield containerd
    containerd.forget()


def test_a_container_has_every_interface_of_its_pod(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    pod = make_pod("default-web", networks="blue, green@front")
    web = containerd.start("web")
    web.wait_until_started()
    assert list(node.allocated(pod)) == ["eth0", "eth1", "front"]
    assert interfaces(web.ip) == node.allocated(pod)
    assert default_gateways(web.ip) == {"10.32.0.1": "eth0", "fd00:10::1": "eth1"}
    assert len(node.plugged(pod)) == 3
    web.end()
    assert node.plugged(pod) == []


def test_a_container_that_ends_by_itself_is_detached(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    pod = make_pod("default-short", networks="blue")
    ended = containerd.run("short", "ip addr")
    assert ended.returncode == 0, ended.stderr
    assert interfaces(lambda *_: ended.stdout) == node.allocated(pod)
    assert node.plugged(pod) == []


def test_a_new_container_of_the_same_name_gets_the_same_interfaces(containerd: Containerd, make_pod: MakePod) -> None:
    make_pod("default-again", networks="blue")
    first, second = (containerd.run("again", "ip addr") for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert interfaces(lambda *_: second.stdout) == interfaces(lambda *_: first.stdout)


def test_containers_start_concurrently(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    names = [f"crowd-{number}" for number in range(5)]
    pods = [make_pod(f"default-{name}", networks="blue, blue, green") for name in names]
    load = [containerd.start(name) for name in names]
    for container in load:
        container.wait_until_started()
    assert [interfaces(container.ip) for container in load] == [node.allocated(pod) for pod in pods]
    for container in load:
        container.end()


def test_a_container_waits_for_its_pods_interfaces(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    late = containerd.start("late")
    node.wait_until(lambda: "late" in containerd.containers(), what="started late")
    pod = make_pod("default-late", networks="blue")
    late.wait_until_started()
    assert interfaces(late.ip) == node.allocated(pod)
    late.end()


def test_a_container_of_an_unknown_pod_never_runs(containerd: Containerd, node: Node) -> None:
    with node.plugin_settings(poll_timeout=0.1, poll_retries=2):
        assert "has no interfaces for pod default/default-stranger" in containerd.rejected("stranger")


def test_a_pod_without_its_manifest_is_detached(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    node.add_pod("default-orphan", networks="blue")
    orphan = containerd.start("orphan")
    orphan.wait_until_started()
    node.remove_pod("default-orphan")
    orphan.end()
    assert node.host.net.links() == []


def test_a_container_is_detached_while_the_agent_is_down(containerd: Containerd, node: Node, make_pod: MakePod) -> None:
    pod = make_pod("default-alone", networks="blue")
    alone = containerd.start("alone")
    alone.wait_until_started()
    node.kill()
    alone.end()
    assert node.host.net.links() == []
    node.start()
    make_pod("default-next")
    assert containerd.run("next", "true").returncode == 0
    assert node.plugged(pod) == []

"""A node of Contrail with pods is taken over, and goes back as `docs/contrail-api.md` says, with the pods of both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.container.contrail_node import ContrailNode
from tests.e2e.container.installed_node import InstalledNode, pod_of_the_uninstaller, pod_that_takes_over
from tests.support.documentation import blocks
from tests.support.scripted_agents import VrouterAgent


@pytest.fixture(params=["10-contrail.conf", "10-tf-cni.conf"])
def contrail_node(request: pytest.FixtureRequest, installed: InstalledNode, tmp_path: Path) -> Iterator[ContrailNode]:
    with VrouterAgent(str(tmp_path / "unused.sock")) as agent:
        yield ContrailNode(installed, agent, request.param)


def take_over(node: ContrailNode) -> None:
    pod = pod_that_takes_over()
    node.installed.start("installer", pod)
    node.installed.until(lambda: node.installed.says("installer", pod) == (0, ""), "it has taken over")


def says_the_uninstaller(node: ContrailNode, answer: tuple[int, str]) -> None:
    uninstaller = pod_of_the_uninstaller()
    node.installed.until(lambda: node.installed.says("uninstaller", uninstaller) == answer, str(answer))


def test_the_uninstaller_waits_for_our_pods_only(contrail_node: ContrailNode) -> None:
    node, files = contrail_node, contrail_node.files()
    theirs, moved = node.attach(), node.attach()
    before = (node.network(theirs), node.ports(theirs))
    take_over(node)
    assert (node.network(theirs), node.ports(theirs)) == before
    ours = node.attach()
    node.end(moved)

    node.installed.stop()
    node.installed.start("uninstaller", pod_of_the_uninstaller())
    says_the_uninstaller(node, (1, f"waiting: pods with interfaces: {ours.vm_name}\n"))
    node.end(ours)
    says_the_uninstaller(node, (0, ""))
    assert node.files() == files
    assert node.ports(theirs) == before[1]
    node.end(theirs)
    node.end(node.attach())
    assert_without_pods(node)


def test_our_pods_stay_if_the_files_are_moved_by_hand(contrail_node: ContrailNode) -> None:
    node, files = contrail_node, contrail_node.files()
    theirs = node.attach()
    take_over(node)
    ours = node.attach()
    before = [(node.network(pod), node.ports(pod)) for pod in (theirs, ours)]

    node.installed.stop()
    node.installed.node.kill_daemon()
    (script,) = (each for each in blocks("contrail-api", language="sh") if ".upstream" in each)
    node.host.run("bash", "-ec", script)
    assert node.files() == files
    assert [(node.network(pod), node.ports(pod)) for pod in (theirs, ours)] == before
    for pod in (theirs, ours, node.attach()):
        node.end(pod)
    assert_without_pods(node)

    records = node.host.path(f"/run/contrail/cni/{ours.container}")
    assert records.exists()
    node.installed.node.start_daemon()
    take_over(node)
    node.installed.stop()
    node.installed.start("uninstaller", pod_of_the_uninstaller())
    says_the_uninstaller(node, (0, ""))
    assert node.files() == files
    assert not records.exists()


def assert_without_pods(node: ContrailNode) -> None:
    node.installed.until(lambda: not node.host.run("ip", "link", "show", "type", "veth"), "without host ends")
    assert node.agent.ports == {}
    assert list(node.host.path("/var/lib/contrail/ports/vm").iterdir()) == []

"""Removal as the page on operations has it, on nodes that have pods; it comes last."""

import json

import pytest

from tests.e2e.kubelet.checkout import documented
from tests.e2e.kubelet.cluster import TIMEOUT, Cluster
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.pod_cgroups import commands, pod_cgroups
from tests.e2e.polling import wait_until

Files = dict[str, list[str]]
"""Names of files by folder."""

NAMESPACE = "contrail-uninstall"
INSTALLED: Files = {
    "/etc/cni/net.d": ["10-contrail.conflist"],
    "/etc/contrail": ["cni.json"],
    "/opt/cni/bin": ["contrail-k8s-cni", "contrail-loopback", "loopback"],
}
"""The files of the installer on nodes that had no plugin before."""

FOLDERS = ("/etc/contrail", "/run/contrail", "/var/lib/contrail")
"""The folders of the programs."""

KEPT_SETTINGS = {"setting net/ipv4/ip_forward is 1"}
"""Forwarding stays, as other programs may rely on it."""


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaced by tests that even the manifests leave nothing."""


@pytest.fixture(scope="module")
def _users_have_pods(cluster: Cluster) -> None:
    """A Deployment, which drains move, and a DaemonSet, which they leave."""
    for workload in ("web", "steady"):
        cluster.apply(workload)
    cluster("rollout", "status", "daemonset/steady", TIMEOUT)
    cluster("rollout", "status", "deployment/web", TIMEOUT)


@pytest.fixture(scope="module")
def installed_files_in_turn(cluster: Cluster, _users_have_pods: None) -> list[list[Files]]:
    """Uninstalls; the files of each node while its last pod runs, and after that."""
    until_pods_are_gone, last = removal_from_nodes(cluster).rstrip().rsplit("\n", 1)
    cluster.checkout.run_script(until_pods_are_gone)
    remaining = {pod.name for pod in cluster.pods("steady")}
    for name in sorted(remaining):
        wait_until(lambda name=name: name in waiting_for(cluster), what=f"waiting for {name}")  # type: ignore[misc]
    with_pods = [installed_files(node) for node in cluster.nodes]
    cluster("delete", "daemonset", "steady", "--cascade=foreground", TIMEOUT)
    cluster.checkout.run_script(last)
    return [with_pods, [installed_files(node) for node in cluster.nodes]]


@pytest.fixture(scope="module")
def _manifests_are_deleted(cluster: Cluster, installed_files_in_turn: list[list[Files]]) -> None:
    cluster.delete("web")
    cluster.checkout.run("operations", "kubectl delete -k cluster")
    cluster.checkout.run("operations", "kubectl delete -f deploy/crds")


def test_files_stay_on_nodes_until_their_last_pod_is_gone(installed_files_in_turn: list[list[Files]]) -> None:
    with_pods, without = installed_files_in_turn
    assert with_pods == [INSTALLED, INSTALLED]
    assert without == [{folder: [] for folder in INSTALLED}] * 2


@pytest.mark.usefixtures("_manifests_are_deleted")
def test_nothing_is_left_in_the_cluster_but_definitions_of_others(cluster: Cluster) -> None:
    assert [name for name in names(cluster, "namespaces") if "contrail" in name] == []
    assert names(cluster, "crd") == ["network-attachment-definitions.k8s.cni.cncf.io"]


@pytest.mark.usefixtures("_manifests_are_deleted")
def test_nothing_is_left_on_a_node(cluster: Cluster) -> None:
    datapath, files = (documented("operations", each) for each in ("ip netns list", "rm -f /run/contrail"))
    for node, initial in zip(cluster.nodes, cluster.initial_kernel_objects, strict=True):
        await_no_pods(node)
        node.host.call("bash", "-c", datapath)  # an error that an object does not exist can be ignored
        node.host.run("bash", "-c", files)  # which removes empty folders, and no file that it does not name
        assert node.kernel_objects() - initial == KEPT_SETTINGS
        assert node.host.net.links() == ["eth0"]
        assert mounts_left(node) == []
        assert [folder for folder in FOLDERS if node.host.path(folder).exists()] == []


def removal_from_nodes(cluster: Cluster) -> str:
    """The commands of the page for all nodes, with which removal begins."""
    commands = documented("operations", "kubectl cordon NODE")
    return commands.replace("NODE", " ".join(node.name for node in cluster.nodes))


def await_no_pods(node: Node) -> None:
    """Waits until kubelet has removed the control groups of all pods."""
    wait_until(
        lambda: list(pod_cgroups(node.host)) == [],
        what=f"without pods: {node.name}",
        otherwise=lambda: "\n".join(f"{folder}: {commands(folder)}" for folder in pod_cgroups(node.host)),
    )


def waiting_for(cluster: Cluster) -> str:
    """What the pods that uninstall log."""
    return cluster.kubectl("-n", NAMESPACE, "logs", "-l", f"app.kubernetes.io/name={NAMESPACE}", "--tail=-1")


def installed_files(node: Node) -> Files:
    """What is in the folders of the installer."""
    return {folder: sorted(file.name for file in node.host.path(folder).iterdir()) for folder in INSTALLED}


def names(cluster: Cluster, kind: str) -> list[str]:
    """All objects of a kind."""
    return [item["metadata"]["name"] for item in json.loads(cluster.kubectl("get", kind, "-o", "json"))["items"]]


def mounts_left(node: Node) -> list[str]:
    """Mounts of namespaces and of pods' volumes."""
    mounts = (line.split()[4] for line in node.host.path("/proc/1/mountinfo").read_text().splitlines())
    return [mount for mount in mounts if mount.startswith(("/run/netns/", "/run/contrail/", "/var/lib/kubelet/pods/"))]

"""The commands of `docs/multus.md` move a cluster to Multus, with its own DaemonSet, and back, node by node."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cni_contrail.installer.installation import CONFIGURATIONS
from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.test_workloads import actual_addresses
from tests.e2e.polling import wait_until
from tests.support.documentation import blocks

_PAGE = "multus"
_KUSTOMIZATION = "# cluster/kustomization.yaml"
_APPLY = "kubectl apply -k cluster"
_MOVE = "POD="
_DELETE = "kubectl -n kube-system delete daemonset"
_STANDALONE = "resources: [../deploy/overlays/standalone]\n"
_CREDENTIALS_OF_MULTUS = "multus.d"
_OF_ONE_CALL = ["eth0"]
_OF_MULTUS = ["eth0", "front", "net1"]
_CONFIGURATION_OF_MULTUS = "00-multus.conf"


class Switch:
    """The commands of the page, in a checkout whose folder `cluster` has the kustomization."""

    def __init__(self, cluster: Cluster, checkout: Path) -> None:
        self._cluster = cluster
        self._checkout = checkout
        self._kustomization = checkout / "cluster" / "kustomization.yaml"
        self._kustomization.parent.mkdir(exist_ok=True)

    def to_multus(self) -> None:
        """Moves all nodes."""
        self._configure(_block(_KUSTOMIZATION, language="yaml").replace("newName: REGISTRY/contrail-multinet, ", ""))
        self._move_nodes("multus=yes")

    def to_standalone(self) -> None:
        """Moves all nodes back, and deletes what belonged to Multus."""
        self._configure(_STANDALONE)
        self._move_nodes("multus-\n")
        self._run(_block(_DELETE))

    def _configure(self, kustomization: str) -> None:
        self._kustomization.write_text(kustomization)
        self._run(_block(_APPLY))

    def _move_nodes(self, label: str) -> None:
        for node in self._cluster.nodes:
            self._run(_block(_MOVE, containing=label).replace("NODE", node.name))

    def _run(self, script: str) -> None:
        self._cluster.kubectl.shell(f"cd {self._checkout}\n{script}")


def _block(beginning: str, *, containing: str = "", language: str = "sh") -> str:
    """The block of the page that begins so and contains a text."""
    (found,) = (each for each in blocks(_PAGE, language=language) if each.startswith(beginning) and containing in each)
    return found


@pytest.fixture(scope="module")
def switch(cluster: Cluster, checkout: Path) -> Switch:
    return Switch(cluster, checkout)


@pytest.fixture(scope="module")
def pods_before(cluster: Cluster) -> list[Pod]:
    """Pods of the standalone cluster."""
    return running_pods(cluster)


@pytest.fixture(scope="module")
def pods_of_multus(cluster: Cluster, switch: Switch, pods_before: list[Pod]) -> list[Pod]:
    """The same after the move to Multus."""
    assert pods_before
    switch.to_multus()
    return running_pods(cluster)


@pytest.fixture(scope="module")
def pods_afterwards(cluster: Cluster, switch: Switch, pods_of_multus: list[Pod]) -> Iterator[list[Pod]]:
    """The same after the move back."""
    assert pods_of_multus
    switch.to_standalone()
    yield running_pods(cluster)
    cluster.delete("web")


def test_the_plugin_makes_all_interfaces_before_the_move(cluster: Cluster, pods_before: list[Pod]) -> None:
    assert_connected(cluster, pods_before, ["eth0", "eth1", "front"])


def test_multus_makes_one_interface_in_each_call(cluster: Cluster, pods_of_multus: list[Pod]) -> None:
    assert_connected(cluster, pods_of_multus, ["eth0", "net1", "front"])
    assert of_all_nodes(cluster) == [_OF_MULTUS] * 2
    for node in cluster.nodes:
        assert (configurations(node) / _CONFIGURATION_OF_MULTUS).exists()


def test_the_event_of_a_pod_has_the_names_that_multus_gives(cluster: Cluster, pods_of_multus: list[Pod]) -> None:
    for pod in pods_of_multus:
        selected = f"--field-selector=reason=InterfacesAssigned,involvedObject.uid={pod.uid}"
        (event,) = cluster.get("events", selected)["items"]
        for name, addresses in pod.addresses.items():
            assert name in event["message"], event["message"]
            assert all(address in event["message"] for address in addresses), event["message"]


def test_a_deleted_pod_of_multus_leaves_nothing(cluster: Cluster, pods_of_multus: list[Pod]) -> None:
    removed = pods_of_multus[0]
    cluster("delete", "pod", removed.name, TIMEOUT)
    running_pods(cluster)
    wait_until(lambda: removed.uid not in cluster.virtual_machines(), what="released")
    wait_until(lambda: of_all_nodes(cluster) == [_OF_MULTUS] * 2, what=f"without {removed.name}")


def test_the_plugin_makes_all_interfaces_again_after_the_move_back(
    cluster: Cluster, pods_afterwards: list[Pod]
) -> None:
    assert_connected(cluster, pods_afterwards, ["eth0", "eth1", "front"])
    for node in cluster.nodes:
        left = {file.name for file in configurations(node).iterdir()}
        assert not left & {_CONFIGURATION_OF_MULTUS, _CREDENTIALS_OF_MULTUS}
        kept = node.host.path("/var/lib/cni/multus").rglob("*")  # what Multus keeps of each container
        assert [file for file in kept if file.is_file()] == []
    assert of_all_nodes(cluster) == [_OF_ONE_CALL] * 2


def running_pods(cluster: Cluster) -> list[Pod]:
    """Applies the workload, and waits until its pods run; one is on each node."""
    cluster.apply("web")
    cluster.await_deployment("web")
    return cluster.addressed_pods("web")


def assert_connected(cluster: Cluster, pods: list[Pod], names: list[str]) -> None:
    """Each pod has the interfaces, with the addresses of its status, and reaches the other in all networks."""
    first, second = pods
    assert {first.node, second.node} == {node.name for node in cluster.nodes}
    for source, target in ((first, second), (second, first)):
        assert list(source.addresses) == names
        assert actual_addresses(cluster, source) == source.addresses
        cluster.await_reachable(source, target)


def configurations(node: Node) -> Path:
    """The folder of network configurations."""
    return node.host.path(CONFIGURATIONS)


def of_all_nodes(cluster: Cluster) -> list[list[str]]:
    """`attachments` of each node."""
    return [attachments(node) for node in cluster.nodes]


def attachments(node: Node) -> list[str]:
    """Of each record of the plugin, the interface that its call was for."""
    records = (json.loads(file.read_text()) for file in node.host.path("/run/contrail/cni").rglob("*.json"))
    return sorted(record["ifname"] for record in records)

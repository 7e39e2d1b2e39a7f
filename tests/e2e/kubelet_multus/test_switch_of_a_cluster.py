"""The commands of `docs/multus.md` move a cluster to Multus thick, with its own DaemonSet, and back; then to thin."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cni_contrail.installer.installation import CONFIGURATIONS
from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.node import Node
from tests.e2e.kubelet.test_workloads import actual_addresses
from tests.e2e.kubelet_multus.switch import THICK, THIN, Switch
from tests.e2e.polling import wait_until

_WITHOUT_MULTUS = ["10-contrail.conflist"]
_OF_ONE_CALL = ["eth0"]
_OF_MULTUS = ["eth0", "front", "net1"]


@pytest.fixture(scope="module", params=[THICK, THIN], ids=["thick", "thin"])
def switch(request: pytest.FixtureRequest, cluster: Cluster, checkout: Path) -> Switch:
    """The switch to each kind of Multus, one after the other."""
    return Switch(cluster, checkout, request.param)


@pytest.fixture(scope="module")
def pods_before(cluster: Cluster, switch: Switch) -> list[Pod]:
    """Pods of the standalone cluster, before the switch."""
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


def test_multus_makes_one_interface_in_each_call(cluster: Cluster, switch: Switch, pods_of_multus: list[Pod]) -> None:
    assert_connected(cluster, pods_of_multus, ["eth0", "net1", "front"])
    assert of_all_nodes(cluster) == [_OF_MULTUS] * 2
    for node in cluster.nodes:
        generated = json.loads((configurations(node) / switch.multus.configuration).read_text())
        assert switch.multus.example in (None, generated)


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
        assert [file.name for file in configurations(node).iterdir()] == _WITHOUT_MULTUS
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

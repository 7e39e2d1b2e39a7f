"""Downgrade to the previous release, parts of both releases side by side, and upgrade, in this order.

All of it happens while pods start and end, and under the traffic of pods that run from the first test to the last.
"""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.cluster import TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.crowd import crowd_starts
from tests.e2e.kubelet.release import CHECKOUT, Release, previous_image, previous_release
from tests.e2e.kubelet.starting_pods import every_pod_starts, restarts
from tests.e2e.kubelet.traffic import no_loss
from tests.e2e.polling import wait_until

_CONTAINERS = {"daemonset/contrail-node": ("agent", "cnid", "installer"), "deployment/contrail-manager": ("manager",)}


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder, since pods of the manifests come and go."""


@pytest.fixture(scope="module")
def previous(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The previous release, whose image is on the nodes."""
    for node in cluster.nodes:
        node.import_image(previous_image())
    return previous_release(tmp_path_factory.mktemp("previous"))


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """A pod on each node, which must not be restarted."""
    cluster.apply("steady")
    cluster("rollout", "status", "daemonset/steady", TIMEOUT)
    pods = cluster.addressed_pods("steady")
    yield pods
    assert cluster.pods("steady") == pods
    assert restarts(cluster, "steady") == {0}
    cluster.delete("steady")


def test_a_downgrade_loses_no_packet_and_no_pod(cluster: Cluster, previous: Release, pods: list[Pod]) -> None:
    with no_loss(cluster, pods), every_pod_starts(cluster, at_least=5):
        cluster.deploy(previous)
    assert images(cluster) == {previous.image}


@pytest.mark.parametrize("newer", [("manager", "cnid"), ("agent", "installer")], ids="-".join)
def test_parts_of_both_releases_work_together(
    cluster: Cluster, previous: Release, pods: list[Pod], newer: tuple[str, str]
) -> None:
    """In both cases together, each two parts that talk to each other have met in both ways.

    They are manager and agent, agent and daemon, daemon and shim, which the installer has put on the node.
    """
    with no_loss(cluster, pods), every_pod_starts(cluster, at_least=5):
        for workload, containers in _CONTAINERS.items():
            chosen = ((each, CHECKOUT if each in newer else previous) for each in containers)
            changes = [f"{container}={release.image}" for container, release in chosen]
            cluster.kubectl("-n", "contrail", "set", "image", workload, *changes)
        cluster.await_rollout()
    assert images(cluster) == {previous.image, CHECKOUT.image}


def test_the_api_server_may_be_away_meanwhile(cluster: Cluster, previous: Release, pods: list[Pod]) -> None:
    with no_loss(cluster, pods):
        cluster.kubectl("apply", "-k", str(previous.overlay))
        wait_until(lambda: not all(node.agent_is_ready() for node in cluster.nodes), what="being replaced")
        with cluster.without_api_server():
            wait_until(lambda: not any(node.agent_is_ready() for node in cluster.nodes), what="unready")
        cluster.await_rollout()
    assert images(cluster) == {previous.image}


def test_an_upgrade_amid_a_hundred_pods_loses_no_packet_and_no_pod(
    cluster: Cluster, previous: Release, pods: list[Pod]
) -> None:
    cluster.deploy(previous)
    cluster.kubectl("apply", "-f", str(previous.definitions))
    with no_loss(cluster, pods), crowd_starts(cluster, 100, cluster.nodes[0], ready=20):
        cluster.kubectl("apply", "-f", str(CHECKOUT.definitions))
        cluster.deploy(CHECKOUT)
    assert images(cluster) == {CHECKOUT.image}


def images(cluster: Cluster) -> set[str]:
    """The images of all containers of the manifests, except those that are ending."""
    pods = json.loads(cluster.kubectl("-n", "contrail", "get", "pods", "-o", "json"))["items"]
    remaining = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
    return {container["image"] for pod in remaining for container in pod["spec"]["containers"]}

"""Downgrade to the previous release, parts of both releases side by side, and upgrade, in this order.

All of it happens while pods start and end, and under the traffic of pods that run from the first test to the last.
`contrailctl` of each release reads a cluster of the other one.
"""

import contextlib
from collections.abc import Iterator

import pytest

from tests.e2e.kubelet.cluster import NAMESPACE, TIMEOUT, Cluster, Pod
from tests.e2e.kubelet.crowd import crowd_starts
from tests.e2e.kubelet.operators import Operators, operators_of
from tests.e2e.kubelet.release import CHECKOUT, Release
from tests.e2e.kubelet.starting_pods import every_pod_starts, restarts
from tests.e2e.kubelet.traffic import no_loss
from tests.e2e.polling import wait_until
from tests.support.previous_release import PreviousPrograms, previous_programs

NEWER = (("manager", "cnid"), ("agent", "installer"), ("manager", "agent"), ("cnid", "installer"))
"""The containers of the newer release, in turn: each two meet in both ways. The installer puts the shim on the node."""

_CONTAINERS = {"daemonset/contrail-node": ("agent", "cnid", "installer"), "deployment/contrail-manager": ("manager",)}


@pytest.fixture(scope="module", autouse=True)
def _pods_leave_nothing() -> None:
    """Replaces the check of the folder, since pods of the manifests come and go."""


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[list[Pod]]:
    """A pod on each node, which must not be restarted."""
    with cluster.steady_pods() as pods:
        yield pods
        assert cluster.pods("steady") == pods
        assert restarts(cluster, "steady") == {0}


@pytest.fixture(scope="module")
def previous_contrailctl(tmp_path_factory: pytest.TempPathFactory) -> PreviousPrograms:
    return previous_programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def operators(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operators]:
    with operators_of(cluster, tmp_path_factory.mktemp("operators")) as operators:
        yield operators


def test_contrailctl_of_the_previous_release_reads_the_cluster(
    cluster: Cluster, operators: Operators, previous_contrailctl: PreviousPrograms
) -> None:
    assert_readable(cluster, operators, *previous_contrailctl.environment)
    assert previous_contrailctl.have_run("contrailctl/cluster")


def test_a_downgrade_loses_no_packet_and_no_pod(cluster: Cluster, previous: Release, pods: list[Pod]) -> None:
    with no_loss(cluster, pods), every_pod_starts(cluster, at_least=5):
        cluster.deploy(previous)
    assert cluster.images() == {previous.image}


def test_contrailctl_reads_a_cluster_of_the_previous_release(
    cluster: Cluster, previous: Release, operators: Operators
) -> None:
    assert cluster.images() == {previous.image}
    assert_readable(cluster, operators)


@pytest.mark.parametrize("newer", NEWER, ids="-".join)
def test_parts_of_both_releases_work_together(
    cluster: Cluster, previous: Release, pods: list[Pod], newer: tuple[str, str]
) -> None:
    with no_loss(cluster, pods), every_pod_starts(cluster, at_least=5):
        for workload, containers in _CONTAINERS.items():
            chosen = ((each, CHECKOUT if each in newer else previous) for each in containers)
            changes = [f"{container}={release.image}" for container, release in chosen]
            cluster.kubectl("-n", "contrail", "set", "image", workload, *changes)
        cluster.await_rollout()
    assert cluster.images() == {previous.image, CHECKOUT.image}


def test_the_api_server_may_be_away_meanwhile(cluster: Cluster, previous: Release, pods: list[Pod]) -> None:
    with no_loss(cluster, pods):
        cluster.kubectl("apply", "-k", str(previous.overlay))
        wait_until(lambda: not all(node.agent_is_ready() for node in cluster.nodes), what="being replaced")
        with cluster.without_api_server():
            wait_until(lambda: not any(node.agent_is_ready() for node in cluster.nodes), what="unready")
        cluster.await_rollout()
    assert cluster.images() == {previous.image}


def test_an_upgrade_amid_a_hundred_pods_loses_no_packet_and_no_pod(
    cluster: Cluster, previous: Release, pods: list[Pod]
) -> None:
    cluster.deploy(previous)
    cluster.kubectl("apply", "-f", str(previous.definitions))
    with no_loss(cluster, pods), crowd_starts(cluster, 100, cluster.nodes[0], ready=20):
        cluster.kubectl("apply", "-f", str(CHECKOUT.definitions))
        cluster.deploy(CHECKOUT)
    assert cluster.images() == {CHECKOUT.image}


def assert_readable(cluster: Cluster, operators: Operators, *environment: str) -> None:
    """Fails unless `contrailctl` shows nodes that are ready, and the ADD of a new pod.

    `environment` is a command that runs another one.
    """
    status = (*environment, "contrailctl", "status", "--output", "json")
    wait_until(
        lambda: operators.run("status", *status).status == 0,
        what="without a problem",
        otherwise=lambda: "".join(operators.run("status", *status)[1:]),
    )
    nodes = operators.run("status", *status).document["nodes"]
    states = [(each["name"], each["agent"], each["daemon"], each["datapath"]) for each in nodes]
    assert states == [(node.name, "Ready", "Ready", "linux") for node in cluster.nodes]
    with _new_pod(cluster) as pod:
        traced = operators.run("trace", *environment, "contrailctl", "trace", pod, "--output", "json")
    assert (traced.status, traced.err) == (0, "")
    assert (traced.document["phase"], traced.document["note"]) == ("Running", "")
    names = {step["name"] for step in traced.document["steps"]}
    assert {"assign interfaces", "ADD: create the links", "become ready"} <= names


@contextlib.contextmanager
def _new_pod(cluster: Cluster) -> Iterator[str]:
    """Yields the name of a pod that is ready, with its namespace."""
    options = ("--image=busybox:1", "--annotations=k8s.v1.cni.cncf.io/networks=blue")
    cluster("run", "traced", *options, "--command", "--", "sleep", "1000")
    try:
        cluster("wait", "--for=condition=Ready", "pod/traced", TIMEOUT)
        yield f"{NAMESPACE}/traced"
    finally:
        cluster("delete", "pod", "traced", "--grace-period=1", TIMEOUT)

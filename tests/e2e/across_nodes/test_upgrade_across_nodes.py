"""Downgrade to the previous release and upgrade, a program at a time, under traffic at 1 kHz between three nodes.

Images and manifests of both releases are tested with kubelets, on two nodes (`kubelet`).
"""

import pytest

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, attached, no_loss, start_daemon_again
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.support.previous_release import PreviousPrograms, previous_programs

pytestmark = pytest.mark.timeout(300)  # fourteen programs are replaced, in half a minute on an idle machine


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> PreviousPrograms:
    return previous_programs(tmp_path_factory.mktemp("previous"))


def test_a_downgrade_and_an_upgrade_lose_no_packet_and_reset_no_connection(
    cluster: Cluster, pods: list[Pod], previous: PreviousPrograms
) -> None:
    all_reach_each_other(pods)
    with no_loss(pods):
        for node in cluster.nodes:
            _replace(cluster, pods, node, *previous.environment)
        _replace_manager(cluster, pods, *previous.environment)
        assert all(map(previous.have_run, ("agent_api", "cni_contrail/daemon", "manager")))
        _replace_manager(cluster, pods)
        for node in cluster.nodes:
            _replace(cluster, pods, node)


def _replace(cluster: Cluster, pods: list[Pod], node: Node, *environment: str) -> None:
    """Replaces the agent and then the daemon of a node; pods of it and of others reach each other in between."""
    assert node.agent.stop() == 0
    node.start_agent(*environment)
    _reached(cluster, pods, node)
    assert node.daemon.stop() == 0
    start_daemon_again(node, *environment)
    _reached(cluster, pods, node)


def _replace_manager(cluster: Cluster, pods: list[Pod], *environment: str) -> None:
    assert cluster.manager.stop() == 0
    cluster.manager.launch(*environment)
    cluster.manager.wait_until_it_leads()
    _reached(cluster, pods, *cluster.nodes)


def _reached(cluster: Cluster, pods: list[Pod], *nodes: Node) -> None:
    """Fails unless a new pod on each of the nodes reaches all others, and they reach it."""
    for node in nodes:
        with attached(cluster, "new", node) as new:
            all_reach_each_other([*pods, new])

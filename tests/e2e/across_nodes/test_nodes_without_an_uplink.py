"""A node whose link is cut: it reaches neither other nodes nor the API server."""

from contextlib import ExitStack

import pytest

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, attached, no_loss, start_daemon_again
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo import reaches


@pytest.mark.timeout(400)
def test_a_node_without_its_uplink_keeps_forwarding_says_so_and_converges(cluster: Cluster, pods: list[Pod]) -> None:
    other, cut_off = cluster.nodes[0], cluster.nodes[2]
    with (
        attached(cluster, "beside", cut_off) as beside,
        no_loss(pods[:2]),
        no_loss([pods[2], beside]),
        ExitStack() as cut,
    ):
        with attached(cluster, "leaving", other) as leaving:
            all_reach_each_other([*pods, beside, leaving])
            cut.enter_context(cut_off.without_uplink())
        with attached(cluster, "new", other) as new:
            all_reach_each_other([*pods[:2], new])
            wait_until(lambda: _is_out_of_date(cut_off), what="out of date", deadline=90)
            assert not cut_off.is_ready()
            cut_off.daemon.kill()
            start_daemon_again(cut_off)
            all_reach_each_other([pods[2], beside])
            assert not reaches(pods[2].sandbox, pods[0].addresses[0], timeout=0.5)
            assert _has_entry(cut_off, leaving)
            cut.close()
            wait_until(lambda: cut_off.is_ready() and not _is_out_of_date(cut_off), what="up to date", deadline=90)
            all_reach_each_other([*pods, beside, new])
            wait_until(lambda: not _has_entry(cut_off, leaving), what="without the entry of a deleted pod")


def _is_out_of_date(node: Node) -> bool:
    """Whether the agent says that it does not learn of pods on other nodes."""
    lines = node.contrailctl("get", "datapath").splitlines()
    return any(line.startswith("out of date: ") and "/networkslices" in line for line in lines)


def _has_entry(node: Node, pod: Pod) -> bool:
    """Whether the kernel of a node leads to an address of the pod."""
    entries = [node.networks.run(vni, "ip", "neighbour") for vni in node.networks.namespaces.existing()]
    return any(f"{address} dev br0 " in each for each in entries for address in pod.addresses)

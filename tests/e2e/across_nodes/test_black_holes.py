"""A node whose packets to the API server vanish: no connection ends, and nothing says so."""

import pytest

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, attached, no_loss
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.polling import wait_until
from tests.support.echo import reaches


@pytest.mark.timeout(300)
def test_a_node_behind_a_black_hole_keeps_forwarding_says_so_and_converges(cluster: Cluster, pods: list[Pod]) -> None:
    cut_off = cluster.nodes[2]
    with attached(cluster, "beside", cut_off) as beside, attached(cluster, "leaving", cluster.nodes[0]) as leaving:
        all_reach_each_other([*pods, beside, leaving])
        with no_loss([*pods, beside]):
            with cut_off.black_hole(), attached(cluster, "new", cluster.nodes[0]) as new:
                wait_until(lambda: not cut_off.is_ready(), what="not ready", deadline=90)
                wait_until(lambda: "virtualmachines" in str(cut_off.readiness()[1]), what="named", deadline=90)
                all_reach_each_other([*pods[:2], new])
                assert not reaches(pods[2].sandbox, new.addresses[0], timeout=0.5)
            wait_until(cut_off.is_ready, what="ready again", deadline=90)
            with attached(cluster, "newer", cluster.nodes[0]) as newer:
                all_reach_each_other([*pods, beside, leaving, newer])

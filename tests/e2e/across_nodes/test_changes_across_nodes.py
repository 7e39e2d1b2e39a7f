"""Changes of a cluster under traffic: pods move, a node is cut off or lost, agents and daemons are killed."""

from collections.abc import Callable
from http import HTTPStatus

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, attached, no_loss, start_daemon_again
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo import reaches

_WISHED = {"mac": "02:00:00:00:00:77", "ips": ["10.7.0.77", "fd07::77"]}


def test_killed_agents_and_daemons_lose_no_packet_across_nodes(cluster: Cluster, pods: list[Pod]) -> None:
    all_reach_each_other(pods)
    with no_loss(pods):
        for node in cluster.nodes:
            node.agent.kill()
        for node in cluster.nodes:
            node.start_agent()
        for node in cluster.nodes:
            node.daemon.kill()
        for node in cluster.nodes:
            start_daemon_again(node)
        for node in cluster.nodes:
            node.stop()
        for node in cluster.nodes:
            node.start_agent()
            start_daemon_again(node)
    all_reach_each_other(pods)


def test_a_pod_that_moves_with_its_address_and_mac_is_reached_by_all(cluster: Cluster, pods: list[Pod]) -> None:
    for node in (cluster.nodes[1], cluster.nodes[2], cluster.nodes[1]):
        with attached(cluster, "moving", node, **_WISHED) as moving:
            assert sorted(moving.addresses) == sorted(_WISHED["ips"])
            all_reach_each_other([*pods, moving])


def test_a_node_without_the_api_server_keeps_forwarding_and_converges(cluster: Cluster, pods: list[Pod]) -> None:
    _keeps_forwarding_and_converges(cluster, pods, cut_off=cluster.nodes[2], meanwhile=lambda: None)


def test_a_node_that_restarts_without_the_api_server_keeps_forwarding_and_converges(
    cluster: Cluster, pods: list[Pod]
) -> None:
    node = cluster.nodes[2]

    def restart() -> None:
        node.stop()
        node.launch_agent()
        node.start_daemon()
        # The agent knows nothing, and must not take that for a node without pods.
        wait_until(lambda: node.readiness()[0] == HTTPStatus.SERVICE_UNAVAILABLE, what="unready")

    _keeps_forwarding_and_converges(cluster, pods, cut_off=node, meanwhile=restart)


def test_a_lost_node_leaves_no_slices_and_no_entries(cluster: Cluster, pods: list[Pod]) -> None:
    lost, left = cluster.nodes[2], cluster.nodes[:2]
    wait_until(lambda: all(_knows(node, lost) for node in left), what="known")
    with no_loss(pods[:2]):
        lost.stop()
        cluster.unregister(lost)
        wait_until(lambda: cluster.slices(lost) == [], what="without slices")
        wait_until(lambda: not any(_knows(node, lost) for node in left), what="without entries")
    all_reach_each_other(pods[:2])


def _knows(node: Node, other: Node) -> bool:
    """Whether the kernel of a node has an entry that leads to another one."""
    address = other.addresses[0]
    entries = [node.namespace.run("bridge", "fdb", "show").stdout, node.namespace.run("ip", "route", "show").stdout]
    entries += [node.networks.run(vni, "bridge", "fdb", "show") for vni in node.networks.namespaces.existing()]
    return any(f"dst {address} " in each or f"via {address} " in each for each in entries)


def _keeps_forwarding_and_converges(
    cluster: Cluster, pods: list[Pod], *, cut_off: Node, meanwhile: Callable[[], None]
) -> None:
    """Cuts a node off from the API server, under traffic; a pod of another node starts while it is."""
    with attached(cluster, "beside", cut_off) as beside, attached(cluster, "leaving", cluster.nodes[0]) as leaving:
        all_reach_each_other([*pods, beside, leaving])
        with no_loss([*pods, beside]):
            cut_off.cut_off_from_server()
            wait_until(lambda: not cut_off.is_ready(), what="not ready")
            meanwhile()
            with attached(cluster, "new", cluster.nodes[0]) as new:
                all_reach_each_other([*pods[:2], new])
                assert not reaches(pods[2].sandbox, new.addresses[0], timeout=0.5)
                cut_off.connect_to_server()
                wait_until(cut_off.is_ready, what="ready again")
                all_reach_each_other([*pods, beside, leaving, new])

"""Nodes that change under traffic: another address, a reboot, a restart of agent and daemon."""

from tests.e2e.across_nodes.attached_pods import Pod, all_reach_each_other, no_loss, start_daemon_again
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.netns import Netns


def test_a_restart_of_agents_and_daemons_loses_no_packet_and_resets_no_connection(
    cluster: Cluster, pods: list[Pod]
) -> None:
    all_reach_each_other(pods)
    with no_loss(pods):
        for node in cluster.nodes:
            assert node.agent.stop() == 0
            node.start_agent()
            assert node.daemon.stop() == 0
            start_daemon_again(node)
    all_reach_each_other(pods)


def test_a_node_that_changes_its_addresses_is_reached_by_the_new_ones(cluster: Cluster, pods: list[Pod]) -> None:
    changed, others = cluster.nodes[2], cluster.nodes[:2]
    before = changed.addresses
    all_reach_each_other(pods)
    with no_loss(pods[:2]):
        changed.change_addresses("192.0.2.103", "2001:db8::103")
        cluster.announce(changed)
        all_reach_each_other(pods)
        wait_until(lambda: not any(_mentions(node, before) for node in others), what="without old addresses")
    with no_loss(pods[:2]):
        changed.change_addresses(*before)
        cluster.announce(changed)
        all_reach_each_other(pods)


def test_a_node_that_reboots_has_its_pods_back_and_disturbs_no_other(cluster: Cluster, pods: list[Pod]) -> None:
    rebooted, (*others, lost) = cluster.nodes[2], pods
    all_reach_each_other(pods)
    sandbox = Netns("pod")
    try:
        with no_loss(others):
            lost.sandbox.delete()
            rebooted.reboot()
            wait_until(lambda: "interfaces" in rebooted.add(lost.name, sandbox), what="attached again")
            all_reach_each_other([*others, lost._replace(sandbox=sandbox)])
        rebooted.delete(lost.name, sandbox)
    finally:
        sandbox.delete()


def _mentions(node: Node, addresses: tuple[str, ...]) -> bool:
    """Whether an entry of the node's kernel leads to one of the addresses, or packets from it are accepted."""
    commands = (["ip", "route", "show", "table", "all"], ["bridge", "fdb", "show"], ["nft", "list", "ruleset"])
    text = [node.namespace.run(*command).stdout for command in commands]
    text += [node.networks.run(vni, "bridge", "fdb", "show") for vni in node.networks.namespaces.existing()]
    return any(address in each.replace(",", " ").split() for each in text for address in addresses)

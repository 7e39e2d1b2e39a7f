"""Nodes, pod network and networks without any IPv4 address."""

from tests.e2e.across_nodes.attached_pods import NETWORK, all_reach_each_other, attached, no_loss
from tests.e2e.across_nodes.cluster import cluster_of


def test_networks_of_ipv6_alone_span_nodes_of_ipv6_alone() -> None:
    with cluster_of(2, families=(1,)) as cluster:
        first, second = cluster.nodes
        cluster.add_nad(NETWORK, cidr="fd07::/64")
        with attached(cluster, "first", first) as one, attached(cluster, "second", second) as two:
            assert all(":" in address for pod in (one, two) for address in pod.everything)
            assert all(
                ":" in each
                for node in cluster.nodes
                for slice_ in cluster.slices(node)
                for each in slice_["spec"]["tunnel"]
            )
            all_reach_each_other([one, two])
            with no_loss([one, two]):
                second.agent.kill()
                second.start_agent()
            links = first.namespace.run("ip", "-4", "address", "show", "scope", "global").stdout
            assert links == ""

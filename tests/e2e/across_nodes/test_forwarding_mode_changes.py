"""A network whose forwarding mode changes to l3 while it has pods: they go on, and new ones reach all of them."""

from contextlib import ExitStack
from typing import Any, NamedTuple

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo_many import answering
from tests.support.echo_stream import EchoStream
from tests.support.netns import Netns

_NETWORK, _CIDRS = "green", "10.9.0.0/16,fd09::/64"
_MODE = "opencontrail.org/forwarding-mode"


class Pod(NamedTuple):
    """An attached pod with the interface `eth1` in the network."""

    name: str
    node: Node
    sandbox: Netns
    addresses: frozenset[str]

    def detach(self, cluster: Cluster) -> None:
        """Deletes the pod, as kubelet does."""
        self.node.delete(self.name, self.sandbox)
        self.sandbox.delete()
        cluster.remove_pod(self.name)


def attached(cluster: Cluster, name: str, node: Node) -> Pod:
    sandbox = Netns("pod")
    cluster.add_pod(name, node, networks=_NETWORK)
    answer = node.add(name, sandbox)
    assert "interfaces" in answer, answer
    addresses = frozenset(each["address"] for each in cluster.interfaces()[name][1]["addresses"])
    return Pod(name, node, sandbox, addresses)


def all_reach_each_other(pods: list[Pod]) -> None:
    everything = frozenset[str]().union(*(pod.addresses for pod in pods))
    for pod in pods:
        others = everything - pod.addresses
        assert answering(pod.sandbox, others) == others, pod.name


def slices(cluster: Cluster) -> list[dict[str, Any]]:
    specs = [item["spec"] for node in cluster.nodes for item in cluster.slices(node)]
    return [spec for spec in specs if spec["network"][-1] == f"k8s-{_NETWORK}-pod-network"]


def test_pods_of_both_modes_reach_each_other_and_none_loses_a_packet(cluster: Cluster) -> None:
    cluster.add_nad(_NETWORK, cidr=_CIDRS)
    before = [attached(cluster, f"before-{node.name}", node) for node in cluster.nodes[:2]]
    first, second = before
    all_reach_each_other(before)
    streams = [EchoStream(first.sandbox, address) for address in sorted(second.addresses)]
    with ExitStack() as running:
        for stream in streams:
            running.enter_context(stream.running())
        cluster.annotate_nad(_NETWORK, **{_MODE: "l3"})
        wait_until(lambda: {each.get("forwardingMode") for each in slices(cluster)} == {"l3"}, what="it is routed")
        after = [attached(cluster, f"after-{node.name}", node) for node in cluster.nodes]
        all_reach_each_other(before + after)
    assert not any(stream.lost() for stream in streams), [stream.gaps() for stream in streams]
    assert all(each.get("endpoints") for each in slices(cluster))
    for pod in before:
        pod.detach(cluster)
    wait_until(lambda: not any(each.get("endpoints") for each in slices(cluster)), what="endpoints are gone")
    all_reach_each_other(after)
    for pod in after:
        pod.detach(cluster)

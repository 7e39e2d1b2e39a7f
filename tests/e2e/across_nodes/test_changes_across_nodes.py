"""Changes of a cluster under traffic: pods move, a node is cut off or lost, agents and daemons are killed."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import pytest

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.netns import Netns

_NETWORK = "blue"
_WISHED = {"mac": "02:00:00:00:00:77", "ips": ["10.7.0.77", "fd07::77"]}


class Pod(NamedTuple):
    """An attached pod; `addresses` are those in the network, `index_0` those in the pod network."""

    name: str
    node: Node
    sandbox: Netns
    addresses: tuple[str, ...]
    index_0: tuple[str, ...]

    @property
    def everything(self) -> tuple[str, ...]:
        """All its addresses."""
        return self.addresses + self.index_0


@pytest.fixture(scope="module")
def _network(cluster: Cluster) -> None:
    cluster.add_nad(_NETWORK, cidr="10.7.0.0/16,fd07::/64")


@pytest.fixture
def pods(cluster: Cluster, _network: None) -> Iterator[list[Pod]]:
    """A pod on each node."""
    with ExitStack() as stack:
        names = [f"on-{node.name}" for node in cluster.nodes]
        pairs = zip(names, cluster.nodes, strict=True)
        yield [stack.enter_context(attached(cluster, name, node)) for name, node in pairs]


@contextmanager
def attached(cluster: Cluster, name: str, node: Node, **wished: object) -> Iterator[Pod]:
    """Attaches a pod, as kubelet does: again until it succeeds. Deletes it at the end."""
    cluster.add_pod(name, node, networks=json.dumps([{"name": _NETWORK, **wished}]))
    sandbox = Netns("pod")
    try:
        wait_until(lambda: "interfaces" in node.add(name, sandbox), what=f"{name} is attached")
        first, second = ([each["address"] for each in one["addresses"]] for one in cluster.interfaces()[name])
        yield Pod(name, node, sandbox, tuple(second), tuple(first))
    finally:
        if node.daemon.is_running:
            node.delete(name, sandbox)
        sandbox.delete()
        cluster.remove_pod(name)


@contextmanager
def no_loss(pods: Sequence[Pod]) -> Iterator[None]:
    """Fails if an echo request is lost between any two of the pods, at 1 kHz, in the network or at index 0."""
    pairs = list(zip(pods, [*pods[1:], pods[0]], strict=True))
    streams = [
        EchoStream(source.sandbox, address)
        for source, target in pairs
        for address in (target.addresses[0], target.index_0[1])
    ]
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream.running())
        yield
    assert all(stream.sent > 0 for stream in streams)
    assert [stream.gaps() for stream in streams if stream.lost()] == []


def all_reach_each_other(pods: Sequence[Pod]) -> None:
    """Fails unless all pods reach all addresses of all others."""
    for source in pods:
        for target in pods:
            for address in target.everything if target is not source else ():
                assert reaches(source.sandbox, address, timeout=10), (source.name, target.name, address)


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
            _start_daemon_again(node)
        for node in cluster.nodes:
            node.stop()
        for node in cluster.nodes:
            node.start_agent()
            _start_daemon_again(node)
    all_reach_each_other(pods)


def test_a_pod_that_moves_with_its_address_and_mac_is_reached_by_all(cluster: Cluster, pods: list[Pod]) -> None:
    for node in (cluster.nodes[1], cluster.nodes[2], cluster.nodes[1]):
        with attached(cluster, "moving", node, **_WISHED) as moving:
            assert sorted(moving.addresses) == sorted(_WISHED["ips"])
            all_reach_each_other([*pods, moving])


def test_a_node_without_the_api_server_keeps_forwarding_and_converges(cluster: Cluster, pods: list[Pod]) -> None:
    cut_off = cluster.nodes[2]
    with attached(cluster, "beside", cut_off) as beside, attached(cluster, "leaving", cluster.nodes[0]) as leaving:
        all_reach_each_other([*pods, beside, leaving])
        with no_loss([*pods, beside]):
            cut_off.cut_off_from_server()
            wait_until(lambda: not cut_off.is_ready(), what="not ready")
            with attached(cluster, "new", cluster.nodes[0]) as new:
                all_reach_each_other([*pods[:2], new])
                assert not reaches(pods[2].sandbox, new.addresses[0], timeout=0.5)
                cut_off.connect_to_server()
                wait_until(cut_off.is_ready, what="ready again")
                all_reach_each_other([*pods, beside, leaving, new])


def test_a_lost_node_leaves_no_slices_and_no_entries(cluster: Cluster, pods: list[Pod]) -> None:
    lost, left = cluster.nodes[2], cluster.nodes[:2]
    wait_until(lambda: all(_knows(node, lost) for node in left), what="known")
    with no_loss(pods[:2]):
        lost.stop()
        cluster.unregister(lost)
        wait_until(lambda: cluster.slices(lost) == [], what="without slices")
        wait_until(lambda: not any(_knows(node, lost) for node in left), what="without entries")
    all_reach_each_other(pods[:2])


def _start_daemon_again(node: Node) -> None:
    """Starts a killed daemon, and waits until it has compared the kernel with what the agent serves."""
    since = time.monotonic()
    node.start_daemon()
    assert node.await_report(since)["problems"] == {}


def _knows(node: Node, other: Node) -> bool:
    """Whether the kernel of a node has an entry that leads to another one."""
    address = other.addresses[0]
    entries = [node.namespace.run("bridge", "fdb", "show").stdout, node.namespace.run("ip", "route", "show").stdout]
    entries += [node.networks.run(vni, "bridge", "fdb", "show") for vni in node.networks.namespaces.existing()]
    return any(f"dst {address} " in each or f"via {address} " in each for each in entries)

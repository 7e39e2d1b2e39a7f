"""Block pool: how many blocks a cluster keeps in use, and how many addresses are borrowed, in simulated clusters."""

from collections import Counter

import pytest

from contrail_config.kubernetes.allocation_cache import CLEANUP_DELAY
from contrail_config.objects import ForwardingMode, VirtualNetwork
from tests.support.simulated_blocks import SimulatedBlocks
from tests.support.virtual_networks import make_network

NODES = [f"node-{number}" for number in range(100)]


def routed(*cidrs: str) -> VirtualNetwork:
    """A network whose blocks belong to nodes."""
    return make_network("pods", *cidrs, forwarding_mode=ForwardingMode.L3)


def churn(cluster: SimulatedBlocks, *, pods: int, kept: int, nodes: list[str]) -> list[str]:
    """Starts `pods` pods at 100 per second on random nodes; returns the `kept` that do not end, spread over the time.

    All others live for 30 s on average.
    """
    running: list[str] = []
    survivors: list[str] = []
    for number in range(0, pods, 5):
        cluster.advance(0.05)
        started = cluster.start(cluster.random.choices(nodes, k=5))
        if len(survivors) < kept * (number + 5) / pods:
            survivors.append(started.pop())
        running += started
        if number % 100 == 0:
            cluster.random.shuffle(running)
        ended, running = running[: len(running) // 600], running[len(running) // 600 :]
        cluster.end(ended)
    cluster.end(running)
    while cluster.cache.needs_cleanup(cluster.now + CLEANUP_DELAY):
        cluster.advance(CLEANUP_DELAY)
    return survivors


def test_long_lived_pods_of_a_network_without_node_blocks_share_few_blocks() -> None:
    cluster = SimulatedBlocks(make_network("blue", "10.32.0.0/12"))
    survivors = churn(cluster, pods=15_000, kept=3_000, nodes=NODES)
    assert len(survivors) == 3_000
    assert cluster.most_blocks <= 125  # 7,500 addresses at the same time, held ones included
    assert len(cluster.objects) <= 125


def test_long_lived_pods_of_a_network_with_node_blocks_pin_two_blocks_for_each_node() -> None:
    cluster = SimulatedBlocks(routed("10.32.0.0/12"))
    survivors = churn(cluster, pods=15_000, kept=3_000, nodes=NODES)
    assert len(survivors) == 3_000
    assert len(cluster.objects) <= 2 * len(NODES)
    assert cluster.borrowed() == cluster.on_other_nodes() == set()


@pytest.mark.parametrize("nodes", [10, 1_000])
def test_a_node_needs_a_block_for_each_64_pods(nodes: int) -> None:
    cluster = SimulatedBlocks(routed("10.32.0.0/12"))
    for _ in range(30):
        cluster.start(f"node-{number}" for number in range(nodes))
    assert len(cluster.objects) == nodes
    assert cluster.borrowed() == cluster.on_other_nodes() == set()


@pytest.mark.parametrize(("cidr", "usable"), [("10.1.0.0/24", 253), ("10.1.0.0/26", 61), ("10.1.0.0/28", 13)])
def test_a_network_with_fewer_blocks_than_nodes_gives_every_address(cidr: str, usable: int) -> None:
    cluster = SimulatedBlocks(routed(cidr))
    cluster.start(NODES[number % len(NODES)] for number in range(usable))
    assert sum(len(block.entries) for block in cluster.objects.values()) == usable
    assert cluster.borrowed() == cluster.on_other_nodes() != set()


def test_the_last_quarter_of_the_blocks_is_kept_for_nodes_that_have_none() -> None:
    cluster = SimulatedBlocks(routed("10.1.0.0/21"))  # 32 blocks
    cluster.start(NODES[:24])
    cluster.start(NODES[:1] * 100)
    assert len(cluster.objects) == 24
    assert cluster.borrowed() == cluster.on_other_nodes() != set()
    late = cluster.start(NODES[90:98])
    assert len(cluster.objects) == 32
    assert not cluster.borrowed() & set(late)


def test_blocks_that_are_kept_for_others_are_used_before_the_network_is_exhausted() -> None:
    cluster = SimulatedBlocks(routed("10.1.0.0/24"))
    cluster.start(NODES[:1] * 253)
    assert {block.node for block in cluster.objects.values()} == {NODES[0]}
    assert cluster.borrowed() == set()


def test_allocated_and_ended_pods_cost_at_most_two_writes_of_blocks() -> None:
    cluster = SimulatedBlocks(routed("10.32.0.0/12"))
    churn(cluster, pods=10_000, kept=0, nodes=NODES)
    assert cluster.objects == {}
    assert cluster.writes <= 2 * 10_000


def test_blocks_of_an_ipv6_network_belong_to_nodes() -> None:
    cluster = SimulatedBlocks(routed("fd00:1::/64"))
    for node in NODES[:3]:
        cluster.start([node] * 65, family=6)
    assert Counter(block.node for block in cluster.objects.values()) == dict.fromkeys(NODES[:3], 2)
    assert cluster.borrowed() == set()

"""Two nodes, and a pod on each, as namespaces joined by a fabric."""

import re
from collections.abc import Iterator

import pytest

from tests.support.echo import reaches
from tests.support.node_fabric import Cluster, FabricPod, cluster_of

RED, BLUE = 5_100_001, 5_100_002


Pair = tuple[FabricPod, FabricPod]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two nodes."""
    with cluster_of(2) as found:
        yield found


@pytest.fixture
def pair(cluster: Cluster) -> Pair:
    """Two pods of one network, on both nodes."""
    return pair_of(cluster)


def pair_of(cluster: Cluster) -> Pair:
    pods = cluster.add_pod(cluster.nodes[0], RED, 2), cluster.add_pod(cluster.nodes[1], RED, 3)
    cluster.sync()
    return pods


def connected(pair: Pair) -> None:
    """Fails unless both pods reach each other in both families."""
    first, second = pair
    for address in second.port.addresses:
        assert reaches(first.namespace, address), address
    for address in first.port.addresses:
        assert reaches(second.namespace, address), address


def objects(cluster: Cluster) -> list[str]:
    """Everything in a network's namespace on all nodes, without indexes of links."""
    commands = (
        ("ip", "-o", "-d", "link", "show", "dev", "vx0"),
        ("ip", "-o", "address", "show", "dev", "br0"),
        ("bridge", "-d", "link", "show", "dev", "vx0"),
        ("bridge", "fdb", "show", "dev", "vx0"),
        ("ip", "neighbour", "show", "nud", "permanent"),
    )
    lines = [
        f"{node.number}: {line}"
        for node in cluster.nodes
        for command in commands
        for line in node.networks.run(RED, *command).splitlines()
    ]
    return sorted(re.sub(r"@\w+|\b\d+: (?=\w)|bridge_slave .*", "", line) for line in lines)

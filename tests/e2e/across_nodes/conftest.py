"""Three nodes for all tests of a module, and a pod on each of them."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.across_nodes.attached_pods import NETWORK, Pod, attached
from tests.e2e.across_nodes.cluster import Cluster, cluster_of


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced: every module here removes its nodes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of(3) as made:
        yield made


@pytest.fixture(scope="module")
def _network(cluster: Cluster) -> None:
    cluster.add_nad(NETWORK, cidr="10.7.0.0/16,fd07::/64")


@pytest.fixture
def pods(cluster: Cluster, _network: None) -> Iterator[list[Pod]]:
    """A pod on each node, all in one network."""
    with ExitStack() as stack:
        names = [f"on-{node.name}" for node in cluster.nodes]
        pairs = zip(names, cluster.nodes, strict=True)
        yield [stack.enter_context(attached(cluster, name, node)) for name, node in pairs]

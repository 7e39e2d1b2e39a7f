"""Three nodes for all tests of a module."""

from collections.abc import Iterator

import pytest

from tests.e2e.across_nodes.cluster import Cluster, cluster_of


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced: every module here removes its nodes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of(3) as made:
        yield made

"""A host with the daemon in a container."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.container_node import ContainerNode, container_node

_numbers = itertools.count(1_000_000 + os.getpid() % 10_000 * 100)


@pytest.fixture
def node() -> Iterator[ContainerNode]:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder, container_node(Path(folder)) as running:
        yield running


@pytest.fixture
def vni() -> int:
    """Number of a network that does not exist yet."""
    return next(_numbers)

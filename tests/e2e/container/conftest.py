"""A host whose daemon runs in a container."""

from collections.abc import Iterator

import pytest

from tests.e2e.container.installed_node import InstalledNode
from tests.e2e.container.podman_node import PodmanNode
from tests.e2e.host import temporary_host
from tests.support.container_node import running


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """The host goes with everything on it."""


@pytest.fixture
def node() -> Iterator[PodmanNode]:
    with temporary_host() as host:
        podman = PodmanNode(host)
        with running(podman):
            yield podman


@pytest.fixture
def installed(node: PodmanNode) -> Iterator[InstalledNode]:
    installed = InstalledNode(node)
    yield installed
    installed.stop()

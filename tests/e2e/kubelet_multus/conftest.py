"""A cluster of two nodes whose containerd has the image of Multus, with the manifests installed."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubelet.cluster import Cluster, running_cluster
from tests.e2e.kubelet_multus.multus_image import write_multus_image
from tests.support.kubectl.client import ROOT

_TIMEOUT = 300
"""Seconds for the first test, which starts the cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sets the timeout."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(_TIMEOUT))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    """Replaced by the tests of this folder, which go back to a cluster without Multus."""


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    image = tmp_path_factory.mktemp("multus-image") / "multus.tar"
    write_multus_image(image)
    with running_cluster() as cluster:
        for node in cluster.nodes:
            node.host.run(
                "mount", "--make-rshared", "/"
            )  # as systemd does: Multus mounts `/` so that it sees new mounts
            node.import_image(image)
        cluster.install()
        yield cluster


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the manifests, for kustomizations beside them."""
    folder = tmp_path_factory.mktemp("checkout")
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    return folder

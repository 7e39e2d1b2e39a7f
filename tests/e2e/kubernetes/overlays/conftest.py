"""kubectl on the API server of the module, in a copy of the manifests."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documentation import section
from tests.support.kubectl.client import ROOT, Kubectl
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver


@pytest.fixture(scope="module")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server that accepts privileged containers, as Multus has them."""
    with serve_real_apiserver(tmp_path_factory.mktemp("kubernetes"), "--allow-privileged") as server:
        yield server


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the manifests, beside which an operator has files of their own."""
    shutil.copytree(ROOT / "deploy", tmp_path / "checkout" / "deploy")
    return tmp_path / "checkout"


@pytest.fixture
def kubectl(api_server: ApiServer, checkout: Path) -> Kubectl:
    """kubectl as the administrator, in the copy of the manifests."""
    return Kubectl(api_server.kubeconfig(), checkout)


@pytest.fixture
def cluster_folder(checkout: Path) -> str:
    """The kustomization of an operator, as the page on installation has it; its path in the checkout."""
    files = re.findall(r"```yaml\n# (cluster/\S+)\n(.*?)```", section("install", "A cluster"), re.DOTALL)
    assert "cluster/kustomization.yaml" in dict(files)
    for name, text in files:
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(text)
    return "cluster"

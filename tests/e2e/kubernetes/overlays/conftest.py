"""kubectl on the API server of the module, in a copy of the manifests."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.overlays.remaining_data import write_data
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
def data(kubectl: Kubectl, checkout: Path) -> set[str]:
    """Objects that tenants and the manager have written, as KIND/NAME."""
    return write_data(kubectl, checkout)


@pytest.fixture
def cluster_folder(checkout: Path) -> str:
    """The kustomization of an operator, as the page on installation has it; its path in the checkout."""
    return _written("cluster", section("install", "A cluster"), checkout)


@pytest.fixture
def uninstall_folder(checkout: Path) -> str:
    """The kustomization of an operator who removes everything, as the page on operations has it."""
    return _written("uninstall", section("operations", "Remove"), checkout)


def _written(folder: str, text: str, checkout: Path) -> str:
    """Writes the files of a folder that a page has."""
    files = re.findall(rf"```yaml\n# ({folder}/\S+)\n(.*?)```", text, re.DOTALL)
    assert f"{folder}/kustomization.yaml" in dict(files)
    for name, content in files:
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text(content)
    return folder

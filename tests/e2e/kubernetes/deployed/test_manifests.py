"""The API server accepts and stores all manifests under strict validation, which rejects unknown fields."""

from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import Cluster
from tests.support.applied_manifests import MANIFESTS, apply, collection, documents, holds

DOCUMENTS = documents(MANIFESTS)


@pytest.mark.parametrize("item", DOCUMENTS, ids=lambda item: f"{item['kind']} {item['metadata']['name']}")
def test_the_manifest_is_stored_as_written(cluster: Cluster, item: dict[str, Any]) -> None:
    stored = cluster.server.ask("GET", f"{collection(cluster.server, item)}/{item['metadata']['name']}")
    assert holds(stored, item)


@pytest.mark.parametrize("kind", ["Namespace", "DaemonSet"])
def test_the_uninstaller_is_stored_as_written(cluster: Cluster, kind: str) -> None:
    objects = {item["kind"]: item for item in documents(MANIFESTS.parent / "uninstall")}
    apply(cluster.server, *objects.values())
    path = f"{collection(cluster.server, objects[kind])}/{objects[kind]['metadata']['name']}"
    assert holds(cluster.server.ask("GET", path), objects[kind])
    cluster.server.ask("DELETE", f"{collection(cluster.server, objects['DaemonSet'])}/contrail-uninstall")


def test_unknown_fields_are_rejected(cluster: Cluster) -> None:
    (deployment,) = (item for item in DOCUMENTS if item["kind"] == "Deployment")
    misspelt = {**deployment, "spec": {**deployment["spec"], "replica": 2}}
    with pytest.raises(ValueError, match=r"spec\.replica"):
        apply(cluster.server, misspelt)

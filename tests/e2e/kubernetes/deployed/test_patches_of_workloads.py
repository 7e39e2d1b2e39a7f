"""The API server accepts the patches that are shipped for the manifests, under strict validation."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster
from tests.support.applied_manifests import MANIFESTS, apply, collection, documents

DEPLOY = MANIFESTS.parent
WORKLOADS = {"manager-patch.yaml": "deployments/contrail-manager", "node-patch.yaml": "daemonsets/contrail-node"}
PATCHES = sorted(path for name in WORKLOADS for path in DEPLOY.rglob(name))


def patched(cluster: Cluster, file: Path) -> dict[str, Any]:
    """The pods of the workload after the patch, which is not stored."""
    (patch,) = documents(file)
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/{WORKLOADS[file.name]}"
    workload = cluster.server.patch(f"{path}?dryRun=All&fieldValidation=Strict", patch)
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("file", PATCHES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_the_patch_is_accepted(cluster: Cluster, file: Path) -> None:
    assert patched(cluster, file)["containers"]


def test_patches_for_monitoring_add_a_named_port_to_every_container(cluster: Cluster) -> None:
    for file in WORKLOADS:
        for container in patched(cluster, DEPLOY / "monitoring" / file)["containers"]:
            assert [port["name"] for port in container["ports"]] == [f"{container['name']}-metrics"]


def test_the_service_for_monitoring_is_accepted(cluster: Cluster) -> None:
    (service,) = (item for item in documents(DEPLOY / "monitoring" / "monitors.yaml") if item["kind"] == "Service")
    apply(cluster.server, service)
    stored = f"{collection(cluster.server, service)}/{service['metadata']['name']}"
    assert cluster.server.ask("GET", stored)["spec"]["clusterIP"] == "None"
    cluster.server.ask("DELETE", stored)

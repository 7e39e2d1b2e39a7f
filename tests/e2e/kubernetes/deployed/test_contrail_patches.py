"""`deploy/overlays/vrouter`: what the patches make of the manifests, as `kubectl patch` sends them."""

from pathlib import Path
from typing import Any

import yaml

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster
from tests.support.applied_manifests import MANIFESTS

PATCHES = MANIFESTS.parent / "overlays" / "vrouter"
Object = dict[str, Any]


def patched(cluster: Cluster, kind: str, name: str, patch: Path) -> Object:
    """Specification of the pods as it would be with the patch, of which nothing is stored."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}s/{name}?dryRun=All&fieldValidation=Strict"
    spec: Object = cluster.server.patch(path, yaml.safe_load(patch.read_text()))["spec"]["template"]["spec"]
    return spec


def mounts(pod: Object) -> dict[str, set[str]]:
    """Volumes that each container mounts."""
    return {each["name"]: {mount["name"] for mount in each["volumeMounts"]} for each in pod["containers"]}


def test_the_managers_read_the_secret_and_keep_all_else(cluster: Cluster) -> None:
    pod = patched(cluster, "deployment", "contrail-manager", PATCHES / "manager-patch.yaml")
    assert mounts(pod) == {"manager": {"configuration", "contrail-api"}}
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert {volume["name"] for volume in pod["volumes"]} == {"configuration", "contrail-api"}


def test_nodes_with_a_vrouter_have_no_agent_of_ours(cluster: Cluster) -> None:
    assert mounts(patched(cluster, "daemonset", "contrail-node", PATCHES / "node-patch.yaml")).keys() == {
        "cnid",
        "installer",
    }


def test_agents_read_the_secret(cluster: Cluster) -> None:
    pod = patched(cluster, "daemonset", "contrail-node", PATCHES / "agent-patch.yaml")
    assert {name for name, volumes in mounts(pod).items() if "contrail-api" in volumes} == {"agent"}
    assert mounts(pod)["agent"] > {"configuration", "ports"}

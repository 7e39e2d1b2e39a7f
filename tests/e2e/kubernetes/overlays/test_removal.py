"""Removal as the page on operations has it: first all but the data, then the data."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from contrail_config.kubernetes.crds import crds
from contrail_config.kubernetes.kinds import VIRTUAL_NETWORKS, virtual_network_object
from manager.kubernetes.nad_crd import NAME as NAD_CRD
from tests.e2e.kubernetes.deployed.cluster import wait_until
from tests.support.applied_manifests import documents
from tests.support.documentation import section
from tests.support.kubectl.client import OVERLAYS, Kubectl
from tests.support.virtual_networks import make_network

BUCKET = """
apiVersion: v1
kind: Namespace
metadata:
  name: contrail-nodes-00
  labels: {app.kubernetes.io/part-of: contrail-multinet}
"""
NAD = """
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: blue, namespace: default}
spec: {config: "{}"}
"""
MULTUS = OVERLAYS / "multus-thin" / "multus-daemonset.yml"


def documented(command: str) -> str:
    """The block of commands that contains one, without waiting for namespaces, which no controller finishes here."""
    blocks = re.findall(r"```sh\n(.*?)```", section("operations", "Remove"), re.DOTALL)
    (block,) = (block for block in blocks if command in block)
    return str(block).replace("kubectl delete", "kubectl delete --wait=false")


def names(kubectl: Kubectl, *arguments: str) -> set[str]:
    """What `kubectl get` finds and nobody has deleted, as KIND/NAME."""
    template = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.deletionTimestamp}{'\\n'}{end}"
    lines = kubectl("get", *arguments, "-A", "-o", f"jsonpath={template.replace(chr(39), chr(34))}").splitlines()
    return {line.rstrip() for line in lines if line.endswith(" ")}


@pytest.fixture
def data(kubectl: Kubectl, checkout: Path) -> set[str]:
    """Objects that tenants and the manager have written."""
    network = msgspec.to_builtins(virtual_network_object(make_network("blue", vni=7)))
    kind = {"apiVersion": VIRTUAL_NETWORKS.api_version, "kind": VIRTUAL_NETWORKS.kind}
    (definition,) = (item for item in documents(MULTUS) if item["kind"] == "CustomResourceDefinition")
    files = {"bucket": BUCKET, "definition": json.dumps(definition), "nad": NAD, "network": json.dumps(kind | network)}
    for name, text in files.items():
        (checkout / f"{name}.yaml").write_text(text)
    kubectl("apply", "-f", "deploy/crds", "-f", "definition.yaml", "-f", "bucket.yaml")
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    kubectl("create", "-f", "nad.yaml", "-f", "network.yaml")
    return all_data(kubectl)


def all_data(kubectl: Kubectl) -> set[str]:
    return {
        *names(kubectl, "cvn,net-attach-def,crd"),
        *names(kubectl, "namespaces", "-l", "app.kubernetes.io/part-of=contrail-multinet"),
    }


def test_all_but_the_data_are_removed_first_and_then_the_data(
    kubectl: Kubectl, data: set[str], cluster_folder: str, uninstall_folder: str
) -> None:
    assert {each.partition("/")[0] for each in data} == {
        "VirtualNetwork",
        "NetworkAttachmentDefinition",
        "CustomResourceDefinition",
        "Namespace",
    }
    before = everything_else(kubectl)
    kubectl("apply", "-k", cluster_folder)
    assert everything_else(kubectl) > before
    kubectl("apply", "-k", uninstall_folder)
    assert "DaemonSet/contrail-uninstall" in everything_else(kubectl)

    kubectl.shell(documented("kubectl delete -k"))
    wait_until(lambda: everything_else(kubectl) <= before, what="everything else is removed")
    assert all_data(kubectl) == data

    kubectl.shell(documented("kubectl delete -f deploy/crds"))
    definitions = {f"CustomResourceDefinition/{name}" for name in crds()}
    wait_until(lambda: not definitions & names(kubectl, "crd"), what="the definitions are removed")
    assert names(kubectl, "net-attach-def,crd") == {
        "NetworkAttachmentDefinition/blue",
        f"CustomResourceDefinition/{NAD_CRD}",
    }
    assert "Namespace/contrail-nodes-00" not in names(kubectl, "namespaces")


def everything_else(kubectl: Kubectl) -> set[str]:
    """Objects of all kinds that the manifests have."""
    kinds = "deployments,daemonsets,configmaps,serviceaccounts,poddisruptionbudgets,roles,rolebindings,clusterroles"
    more = "clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas"
    found = names(kubectl, f"{kinds},{more},prioritylevelconfigurations,namespaces")
    return {each for each in found if not each.endswith("contrail-nodes-00")}

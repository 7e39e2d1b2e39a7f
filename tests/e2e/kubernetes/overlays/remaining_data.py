"""What a removal leaves, and what it does not: the data, and everything else that the manifests have."""

import json
from pathlib import Path

import msgspec

from contrail_config.kubernetes.kinds import VIRTUAL_NETWORKS, virtual_network_object
from tests.support.applied_manifests import documents
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


def write_data(kubectl: Kubectl, checkout: Path) -> set[str]:
    """Writes what tenants and the manager write, and returns all data."""
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
    """Networks, attachment definitions, definitions of kinds, and namespaces of the project, as KIND/NAME."""
    return {
        *names(kubectl, "cvn,net-attach-def,crd"),
        *names(kubectl, "namespaces", "-l", "app.kubernetes.io/part-of=contrail-multinet"),
    }


def everything_else(kubectl: Kubectl) -> set[str]:
    """Objects of all kinds that the manifests have."""
    kinds = "deployments,daemonsets,configmaps,serviceaccounts,poddisruptionbudgets,roles,rolebindings,clusterroles"
    more = "clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas"
    found = names(kubectl, f"{kinds},{more},prioritylevelconfigurations,namespaces")
    return {each for each in found if not each.endswith("contrail-nodes-00")}


def names(kubectl: Kubectl, *arguments: str) -> set[str]:
    """What `kubectl get` finds and nobody has deleted, as KIND/NAME."""
    template = "{range .items[*]}{.kind}/{.metadata.name} {.metadata.deletionTimestamp}{'\\n'}{end}"
    lines = kubectl("get", *arguments, "-A", "-o", f"jsonpath={template.replace(chr(39), chr(34))}").splitlines()
    return {line.rstrip() for line in lines if line.endswith(" ")}

"""Manifests of NADs and pods, as users write them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

Document = Mapping[str, Any]

NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"


def nad(name: str, *, cidr: str | None, namespace: str = "demo", **annotations: str) -> Document:
    """A network attachment definition of this plugin."""
    subnets = {} if cidr is None else {"opencontrail.org/cidr": cidr}
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": namespace, "annotations": {**subnets, **annotations}},
        "spec": {"config": '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}'},
    }


def pod(name: str, *, networks: str | None = None, namespace: str = "demo", **annotations: str) -> Document:
    """A pod; `networks` is the annotation `k8s.v1.cni.cncf.io/networks`."""
    if networks is not None:
        annotations[NETWORKS_KEY] = networks
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


def write(file: Path, *documents: Document) -> None:
    """Writes the documents to one file atomically."""
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(yaml.safe_dump_all(documents))
    unfinished.rename(file)

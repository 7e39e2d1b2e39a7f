"""Values of the greatest length that tenants can write: the definitions accept what the manager makes of them."""

import json
import uuid

from tests.e2e.kubernetes.deployed.cluster import NADS, Tenant
from tests.support.cluster_processes import ManagerProcess


def test_a_pod_and_a_nad_of_the_longest_names_are_served(manager: ManagerProcess, tenant: Tenant) -> None:
    nad, pod, node = (letter * 253 for letter in "anp")
    config = json.dumps({"cniVersion": "1.0.0", "type": "contrail-k8s-cni", "name": "c" * 255})
    kind = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
    metadata = {"name": nad, "annotations": {"opencontrail.org/cidr": "10.1.0.0/24"}}
    path = f"{NADS}/namespaces/{tenant.namespace}/network-attachment-definitions"
    tenant.cluster.server.ask("POST", path, {**kind, "metadata": metadata, "spec": {"config": config}})
    tenant.add_pod(pod, networks=f"{nad}@{'i' * 15}", node=node)
    assert tenant.assigned(pod)["interfaces"][1]["configName"] == "c" * 255


def test_a_pod_that_claims_to_be_static_with_a_long_hash_is_served(manager: ManagerProcess, tenant: Tenant) -> None:
    name = f"web-{uuid.uuid4().hex[:8]}"
    tenant.add_pod(name, node="node-1", annotations={"kubernetes.io/config.hash": "x" * 1000})
    assert tenant.assigned(name)["pod"] == name

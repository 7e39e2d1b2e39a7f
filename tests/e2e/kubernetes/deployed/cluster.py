"""Cluster with the shipped manifests applied, and actions of users, scheduler and kubelets in one of its namespaces."""

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from contrail_config.kubernetes.kinds import label_value
from tests.support.applied_manifests import MANIFESTS, apply, documents
from tests.support.pods import OWN_CONFIG
from tests.support.real_apiserver.server import ApiServer

NAMESPACE = "contrail"
"""Namespace of the manifests."""

GROUP = "/apis/opencontrail.org/v1alpha1"
NADS = "/apis/k8s.cni.cncf.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STATUS_KEY = "k8s.v1.cni.cncf.io/network-status"

_DEADLINE = 20.0

Object = dict[str, Any]


class Cluster:
    """A server with the service accounts of the manifests: `objects`, or those of the base."""

    def __init__(self, server: ApiServer, objects: Iterable[Object] | None = None) -> None:
        self.server = server
        apply(server, *(documents(MANIFESTS) if objects is None else objects))

    def kubeconfig(self, account: str) -> Path:
        """Kubeconfig of a service account of the manifests."""
        return self.server.kubeconfig(token=self.server.service_account_token(NAMESPACE, account))

    def agent_token(self, node: str, *, account: str = "contrail-agent") -> str:
        """Token of the agent's service account, bound to the agent's pod on the node, which is created if missing."""
        pod, container = f"{account}-{node}", {"name": "agent", "image": "none.example/none"}
        spec = {"nodeName": node, "hostNetwork": True, "serviceAccountName": account, "containers": [container]}
        metadata = {"name": pod, "namespace": NAMESPACE}
        apply(self.server, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        return self.server.service_account_token(NAMESPACE, account, pod=pod)

    def agent_kubeconfig(self, node: str) -> Path:
        """Kubeconfig of the agent of a node."""
        return self.server.kubeconfig(token=self.agent_token(node))

    def requests_of_agents(self, *nodes: str) -> list[Object]:
        """Audit events of the requests that the agents of these nodes have sent."""
        account, key = f"system:serviceaccount:{NAMESPACE}:contrail-agent", "authentication.kubernetes.io/node-name"
        events = [event for event in self.server.audited() if event["user"]["username"] == account]
        return [event for event in events if event["user"].get("extra", {}).get(key, [""])[0] in nodes]

    def definitions(self) -> set[str]:
        """Names of all CustomResourceDefinitions."""
        return {item["metadata"]["name"] for item in self.items(DEFINITIONS)}

    def delete_definitions(self) -> None:
        """Deletes all CustomResourceDefinitions and thereby all custom objects."""
        for name in self.definitions():
            self.server.ask("DELETE", f"{DEFINITIONS}/{name}")
        wait_until(lambda: not self.definitions(), what="definitions are gone")

    def items(self, path: str) -> list[Object]:
        """The objects of a list."""
        items: list[Object] = self.server.ask("GET", path)["items"]
        return items


class Tenant:
    """A new namespace; it is never deleted, as no controller would finish the deletion."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.namespace = f"tenant-{uuid.uuid4().hex[:8]}"
        self._ask = cluster.server.ask
        self._nads = f"{NADS}/namespaces/{self.namespace}/network-attachment-definitions"
        self._pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self._ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def add_nad(self, name: str, *, cidr: str) -> None:
        metadata = {"name": name, "annotations": {"opencontrail.org/cidr": cidr}}
        kind = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
        self._ask("POST", self._nads, {**kind, "metadata": metadata, "spec": {"config": OWN_CONFIG}})

    def remove_nad(self, name: str) -> None:
        self._ask("DELETE", f"{self._nads}/{name}")

    def add_pod(self, name: str, *, networks: str = "", node: str, annotations: Mapping[str, str] | None = None) -> str:
        """Creates a pod bound to the node and returns its uid."""
        stated = {**(annotations or {}), **({"k8s.v1.cni.cncf.io/networks": networks} if networks else {})}
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none.example/none"}]}
        made = self._ask("POST", self._pods, {"metadata": {"name": name, "annotations": stated}, "spec": spec})
        return str(made["metadata"]["uid"])

    def remove_pod(self, name: str) -> None:
        """Deletes a pod without a grace period, as kubelet does after it has stopped the pod."""
        self._ask("DELETE", f"{self._pods}/{name}?gracePeriodSeconds=0")

    def end_pod(self, name: str) -> None:
        """Sets the status of an ended pod without a sandbox, as kubelet does; the pod object remains."""
        pod = self.pod(name)
        condition = {"type": "PodReadyToStartContainers", "status": "False"}
        pod["status"] |= {"phase": "Succeeded", "conditions": [condition]}
        self._ask("PUT", f"{self._pods}/{name}/status", pod)

    def pod(self, name: str) -> Object:
        pod: Object = self._ask("GET", f"{self._pods}/{name}")
        return pod

    def virtual_machine(self, name: str) -> Object | None:
        """The virtual machine of a pod, found by its labels; None if there is none, or only the reason for that."""
        labels = f"opencontrail.org/namespace={self.namespace},opencontrail.org/pod={label_value(name)}"
        found = self.cluster.items(f"{GROUP}/virtualmachines?labelSelector={labels}")
        return next((item for item in found if item["spec"]["interfaces"]), None)

    def assigned(self, name: str) -> Object:
        """Waits until the pod has its interfaces and returns its virtual machine's spec."""
        wait_until(lambda: self.virtual_machine(name) is not None, what=f"{name} has interfaces")
        virtual_machine = self.virtual_machine(name)
        assert virtual_machine is not None
        spec: Object = virtual_machine["spec"]
        return spec

    def networks(self) -> list[Object]:
        """The networks of the tenant's NADs."""
        networks = self.cluster.items(f"{GROUP}/virtualnetworks")
        return [item for item in networks if item["spec"].get("nad", "").startswith(f"{self.namespace}/")]

    def events(self, name: str) -> dict[str, str]:
        """Messages of the events on an object, by reason."""
        events = self.cluster.items(f"/api/v1/namespaces/{self.namespace}/events")
        return {event["reason"]: event["message"] for event in events if event["involvedObject"]["name"] == name}

    def wait_for_event(self, name: str, reason: str) -> str:
        """Waits for an event with this reason on the object and returns its message."""
        wait_until(lambda: reason in self.events(name), what=f"event {reason} on {name}")
        return self.events(name)[reason]


def addresses(virtual_machine: Object) -> list[str]:
    """All addresses of a virtual machine's spec, by index."""
    return [address["address"] for interface in virtual_machine["interfaces"] for address in interface["addresses"]]


def wait_until(holds: Callable[[], bool], *, what: str) -> None:
    """Polls until the condition holds; fails after a deadline."""
    give_up = time.monotonic() + _DEADLINE
    while not holds():
        assert time.monotonic() < give_up, f"not within {_DEADLINE:g} s: {what}"
        time.sleep(0.02)  # noqa: TID251 - other processes are polled

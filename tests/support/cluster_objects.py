"""Actions of users and kubelets, applied directly to the storage of a fake API server."""

from typing import Any

from manager.kubernetes.nad_crd import NAME as NAD_DEFINITION
from tests.support.fake_apiserver.kinds import CRDS, NAMESPACES, PODS, Kind
from tests.support.fake_apiserver.server import FakeApiServer
from tests.support.fake_apiserver.storage import Object
from tests.support.fake_apiserver.writes import create, delete, find, merge
from tests.support.pods import OWN_CONFIG

NADS = Kind(
    "k8s.cni.cncf.io",
    "v1",
    "NetworkAttachmentDefinition",
    "network-attachment-definitions",
    custom=True,
    blind_updates=False,
)
NODES = Kind("", "v1", "Node", "nodes", namespaced=False, has_status=True)
NETWORKS_KEY = "k8s.v1.cni.cncf.io/networks"
STATUS_KEY = "k8s.v1.cni.cncf.io/network-status"
CIDR_KEY = "opencontrail.org/cidr"

NO_SANDBOX = {"phase": "Succeeded", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]}


def holds_interfaces(pod: Object) -> bool:
    """Whether a pod is bound to a node and has not ended."""
    return "nodeName" in pod["spec"] and pod["status"] != NO_SANDBOX


class ClusterObjects:
    """Creates, changes and deletes objects, by default in the namespace `blue`."""

    def __init__(self, server: FakeApiServer) -> None:
        self._server = server
        self._storage = server.storage
        self.add_namespace("blue")

    def add_namespace(self, name: str, **annotations: str) -> None:
        create(self._storage, NAMESPACES, "", {"metadata": {"name": name, "annotations": annotations}})

    def annotate_namespace(self, name: str, **annotations: str) -> None:
        """Replaces the annotations of a namespace."""
        self._storage.put(NAMESPACES, {"metadata": {"name": name, "annotations": annotations}})

    def add_node(self, name: str, **labels: str) -> None:
        """Creates a node, or replaces its labels."""
        self._storage.put(NODES, {"metadata": {"name": name, "uid": f"uid of {name}", "labels": labels}})

    def remove_node(self, name: str) -> None:
        delete(self._storage, NODES, "", name, {})

    def add_pod(
        self,
        name: str,
        *,
        networks: str | None = None,
        node: str | None = "node-1",
        annotations: Object | None = None,
        host_network: bool = False,
        status: Object | None = None,
        namespace: str = "blue",
    ) -> str:
        """Creates a pod and returns its uid."""
        stated = {**({} if networks is None else {NETWORKS_KEY: networks}), **(annotations or {})}
        spec = {**({} if node is None else {"nodeName": node}), **({"hostNetwork": True} if host_network else {})}
        body = {"metadata": {"name": name, "annotations": stated}, "spec": spec, "status": status or {}}
        uid: str = create(self._storage, PODS, namespace, body)["metadata"]["uid"]
        return uid

    def change_pod(self, name: str, changes: Object, *, namespace: str = "blue") -> None:
        """Merges any changes into the pod."""
        self._storage.put(PODS, merge(find(self._storage, PODS, namespace, name), changes))

    def end_pod(self, name: str) -> None:
        """Marks the pod as ended and its sandbox as removed."""
        self.change_pod(name, {"status": NO_SANDBOX})

    def remove_pod(self, name: str, *, namespace: str = "blue") -> None:
        delete(self._storage, PODS, namespace, name, {"gracePeriodSeconds": 0})

    def pod(self, name: str, *, namespace: str = "blue") -> Object:
        return find(self._storage, PODS, namespace, name)

    def status(self, name: str) -> str | None:
        """The pod's network status annotation."""
        text: str | None = self.pod(name)["metadata"]["annotations"].get(STATUS_KEY)
        return text

    def add_nad(
        self, name: str, *, cidr: str | None = "10.1.0.0/16", config: Any = OWN_CONFIG, namespace: str = "blue"
    ) -> None:
        annotations = {} if cidr is None else {CIDR_KEY: cidr}
        body = {"apiVersion": NADS.api_version, "kind": NADS.kind, "spec": {"config": config}}
        create(self._storage, NADS, namespace, {**body, "metadata": {"name": name, "annotations": annotations}})

    def change_nad(self, name: str, changes: Object, *, namespace: str = "blue") -> None:
        self._storage.put(NADS, merge(find(self._storage, NADS, namespace, name), changes))

    def remove_nad(self, name: str, *, namespace: str = "blue") -> None:
        delete(self._storage, NADS, namespace, name, {})

    def definition(self) -> Object | None:
        """The CRD of NADs."""
        return self._storage.objects(CRDS).get(("", NAD_DEFINITION))

    def requests(self, request: str) -> int:
        """Number of such requests, as `verb plural`."""
        return self._server.requests.count(request)

"""Cluster of the nodes: an API server with the manager, and what users and controllers write."""

from collections.abc import Iterable
from pathlib import Path

from tests.e2e.services import Services
from tests.support.cluster_processes import ManagerProcess
from tests.support.real_apiserver.server import ApiServer

NAMESPACE = "demo"
POD_SUBNETS = ("10.32.0.0/16", "fd00:32::/64")
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


class Cluster(Services):
    """An API server with a manager; its files are below `work`."""

    def __init__(self, server: ApiServer, work: Path) -> None:
        super().__init__(server, NAMESPACE)
        self.manager = ManagerProcess(work, server.kubeconfig(), pod_network={"subnets": list(POD_SUBNETS)})
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})

    def add_node(self, name: str, addresses: Iterable[str]) -> None:
        """Creates a node with these addresses, as kubelet does."""
        self.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        status = {"addresses": [{"type": "InternalIP", "address": each} for each in addresses]}
        self.server.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})

    def add_pod(self, node: str, name: str) -> None:
        """Creates a pod that is bound to the node."""
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none.example/none"}]}
        self.server.ask("POST", _PODS, {"metadata": {"name": name}, "spec": spec})

    def remove_pod(self, name: str) -> None:
        """Deletes a pod as kubelet does at the end."""
        self.server.ask("DELETE", f"{_PODS}/{name}", {"gracePeriodSeconds": 0})

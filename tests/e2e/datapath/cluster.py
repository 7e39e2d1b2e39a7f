"""Cluster of the nodes: an API server with the manager, and what users and controllers write."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.cluster_processes import ManagerProcess
from tests.support.real_apiserver.server import ApiServer

NAMESPACE = "demo"
POD_SUBNETS = ("10.32.0.0/16", "fd00:32::/64")
SERVICE_PORT, SERVER_PORT = 80, 8080
"""Port of each Service, and of the servers behind it."""

_SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
_SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_FAMILIES: Mapping[str, str] = {"IPv4": ".", "IPv6": ":"}
_PROTOCOLS = ("TCP", "UDP")


class Service(NamedTuple):
    """A Service with addresses of both families; `node_port` is that of TCP, 0 without one."""

    name: str
    addresses: tuple[str, ...]
    node_port: int


class Cluster:
    """An API server with a manager; its files are below `work`."""

    def __init__(self, server: ApiServer, work: Path) -> None:
        self.server = server
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

    def add_service(self, name: str, node: str, endpoints: Iterable[str], **spec: Any) -> Service:
        """Creates a Service with these addresses on the node behind it; `spec` are further keys."""
        ports = [{"name": each.lower(), "port": SERVICE_PORT, "targetPort": SERVER_PORT, "protocol": each}
                 for each in _PROTOCOLS]  # fmt: skip
        document = {"ipFamilyPolicy": "RequireDualStack", "ports": ports, **spec}
        made = self.server.ask("POST", _SERVICES, {"metadata": {"name": name}, "spec": document})["spec"]
        addresses = tuple(endpoints)
        for family, mark in _FAMILIES.items():
            self._add_slice(name, node, family, [each for each in addresses if mark in each])
        return Service(name, tuple(made["clusterIPs"]), made["ports"][0].get("nodePort", 0))

    def remove_service(self, service: Service) -> None:
        """Deletes a Service and what is behind it."""
        self.server.ask("DELETE", f"{_SERVICES}/{service.name}")
        for family in _FAMILIES:
            self.server.ask("DELETE", f"{_SLICES}/{service.name}-{family.lower()}")

    def set_endpoints(self, service: Service, addresses: Iterable[str]) -> None:
        """Replaces the addresses behind a Service, all of the families that are given."""
        for address in addresses:
            family = "IPv6" if ":" in address else "IPv4"
            path = f"{_SLICES}/{service.name}-{family.lower()}"
            found = self.server.ask("GET", path)
            found["endpoints"][0]["addresses"] = [address]
            self.server.ask("PUT", path, found)

    def _add_slice(self, service: str, node: str, family: str, addresses: list[str]) -> None:
        metadata = {
            "name": f"{service}-{family.lower()}",
            "labels": {"kubernetes.io/service-name": service},
        }
        endpoints = [{"addresses": [each], "conditions": {"ready": True}, "nodeName": node} for each in addresses]
        ports = [{"name": each.lower(), "port": SERVER_PORT, "protocol": each} for each in _PROTOCOLS]
        document = {"metadata": metadata, "addressType": family, "endpoints": endpoints, "ports": ports}
        self.server.ask("POST", _SLICES, document)

"""Services of a cluster, with what a controller writes of their endpoints."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.support.real_apiserver.server import ApiServer

SERVICE_PORT, SERVER_PORT = 80, 8080
"""Port of each Service, and of the servers behind it."""

_FAMILIES: Mapping[str, str] = {"IPv4": ".", "IPv6": ":"}
_PROTOCOLS = ("TCP", "UDP")


class Service(NamedTuple):
    """A Service with addresses of both families; `node_port` is that of TCP, 0 without one."""

    name: str
    addresses: tuple[str, ...]
    node_port: int


class Services:
    """Services in a namespace of the API server."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self.server = server
        self._slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._services = f"/api/v1/namespaces/{namespace}/services"

    def add_service(self, name: str, node: str, endpoints: Iterable[str], **spec: Any) -> Service:
        """Creates a Service with these addresses on the node behind it; `spec` are further keys."""
        ports = [{"name": each.lower(), "port": SERVICE_PORT, "targetPort": SERVER_PORT, "protocol": each}
                 for each in _PROTOCOLS]  # fmt: skip
        document = {"ipFamilyPolicy": "RequireDualStack", "ports": ports, **spec}
        made = self.server.ask("POST", self._services, {"metadata": {"name": name}, "spec": document})["spec"]
        addresses = tuple(endpoints)
        for family, mark in _FAMILIES.items():
            self._add_slice(name, node, family, [each for each in addresses if mark in each])
        return Service(name, tuple(made["clusterIPs"]), made["ports"][0].get("nodePort", 0))

    def remove_service(self, service: Service) -> None:
        """Deletes a Service and what is behind it."""
        self.server.ask("DELETE", f"{self._services}/{service.name}")
        for family in _FAMILIES:
            self.server.ask("DELETE", f"{self._slices}/{service.name}-{family.lower()}")

    def set_endpoints(self, service: Service, addresses: Iterable[str]) -> None:
        """Replaces the addresses behind a Service, all of the families that are given."""
        for address in addresses:
            family = "IPv6" if ":" in address else "IPv4"
            path = f"{self._slices}/{service.name}-{family.lower()}"
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
        self.server.ask("POST", self._slices, document)

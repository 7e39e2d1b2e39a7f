"""Cluster for Multus: a real API server in the node's network namespace, with pods and NADs."""

import asyncio
import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from manager.kubernetes.nad_crd import NadCrd
from tests.bench.attach.node import BenchNode, Pod
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver

NODE = "bench"
"""Name of the node in the cluster."""

DEFAULT = "br-0"
"""The network of all pods."""

PLAIN: Mapping[str, Any] = {}
"""Settings of a bridge without gateway."""

ROUTED: Mapping[str, Any] = {"isGateway": True, "ipMasq": True, "hairpinMode": True}
"""Settings from the plugin's documentation and from runtimes' defaults: pods reach networks outside the node."""

_NETWORKS = ("br-1", "br-2", "br-3")
_NAMESPACE = "/api/v1/namespaces/bench"
_DEFINITIONS = "/apis/k8s.cni.cncf.io/v1/namespaces/bench/network-attachment-definitions"


@dataclass(frozen=True)
class MultusCluster:
    """A cluster whose pods request three networks besides `DEFAULT`. `settings` apply to every bridge."""

    server: ApiServer
    node: BenchNode
    settings: Mapping[str, Any]

    def add_pod(self) -> Pod:
        """Creates a pod and binds it to the node."""
        name = f"multus-{uuid.uuid4()}"
        annotations = {"k8s.v1.cni.cncf.io/networks": ",".join(_NETWORKS)}
        containers = [{"name": "main", "image": "none"}]
        pod = {"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}}
        made = self.server.ask("POST", f"{_NAMESPACE}/pods", pod)
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.server.ask("POST", f"{_NAMESPACE}/pods/{name}/binding", binding)
        return Pod(name, made["metadata"]["uid"])

    def bridge(self, name: str) -> dict[str, Any]:
        """Configuration of a network."""
        subnet = f"10.{200 + int(name[-1])}.0.0/16"
        leases = {"type": "host-local", "subnet": subnet, "dataDir": str(self.node.folder / "host-local")}
        bridge = {"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": f"cni-{name}", "ipam": leases}
        route = {"isDefaultGateway": True} if self.settings and name == DEFAULT else {}
        return {**bridge, **self.settings, **route}

    def define_networks(self) -> None:
        """Creates the NADs that pods request."""
        asyncio.run(self._ensure_nad_crd())
        self.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
        kind = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
        for name in _NETWORKS:
            spec = {"config": json.dumps(self.bridge(name))}
            self.server.ask("POST", _DEFINITIONS, {**kind, "metadata": {"name": name}, "spec": spec})

    async def _ensure_nad_crd(self) -> None:
        async with connect(await load_client_config(kubeconfig=str(self.server.kubeconfig()))) as client:
            await NadCrd(client).ensure()


@contextmanager
def multus_cluster(node: BenchNode, settings: Mapping[str, Any]) -> Iterator[MultusCluster]:
    """Runs a cluster until the context is left."""
    with tempfile.TemporaryDirectory() as work, serve_real_apiserver(Path(work)) as server:
        cluster = MultusCluster(server, node, settings)
        cluster.define_networks()
        yield cluster

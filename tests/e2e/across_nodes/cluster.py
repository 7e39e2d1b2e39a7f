"""Cluster whose nodes are network namespaces on one fabric: a real API server, a manager with slices, and users."""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cni_contrail.agent.connections import idle_connections
from contrail_config.kubernetes.kinds import POD_LABEL
from tests.e2e.across_nodes.node import MTU, Node
from tests.support.cluster_processes import ManagerProcess, running
from tests.support.manifests import Document, nad, pod
from tests.support.netns import Netns
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver

NAMESPACE = "demo"
POD_MTU = 1500
POD_SUBNETS = ("10.32.0.0/16", "fd00:32::/64")
_OURS = "/apis/opencontrail.org/v1alpha1"
_NADS = f"/apis/k8s.cni.cncf.io/v1/namespaces/{NAMESPACE}/network-attachment-definitions"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_WITHOUT_SANDBOX = {"type": "PodReadyToStartContainers", "status": "False"}

Object = dict[str, Any]


class Cluster:
    """The server, the manager, the nodes, and the fabric that joins these. See `cluster_of`."""

    def __init__(self, server: ApiServer, folder: Path, families: Sequence[int], mtu: int | str) -> None:
        self.server = server
        self.manager = ManagerProcess(
            folder / "manager",
            server.kubeconfig(),
            network_slices=True,
            pod_network={"subnets": [POD_SUBNETS[family] for family in families], "mtu": mtu},
        )
        self.fabric = Netns("fabric")
        self.fabric.ip("link", "add", "fabric", "mtu", str(MTU), "up", "type", "bridge", "mcast_snooping", "0")
        self.nodes: list[Node] = []

    def add_nad(self, name: str, *, cidr: str, **annotations: str) -> None:
        """Creates a NAD."""
        self.server.ask("POST", _NADS, nad(name, cidr=cidr, **annotations))

    def annotate_nad(self, name: str, **annotations: str) -> None:
        """Sets annotations of a NAD."""
        self.server.ask("PATCH", f"{_NADS}/{name}", {"metadata": {"annotations": annotations}})

    def add_pod(self, name: str, node: Node, *, networks: str) -> None:
        """Creates a pod that is bound to a node."""
        self.server.ask("POST", _PODS, _bound(pod(name, networks=networks), node))

    def remove_pod(self, name: str) -> None:
        """Ends a pod and deletes it, as kubelet does after its sandbox is gone."""
        found = self.server.ask("GET", f"{_PODS}/{name}")
        found["status"] |= {"phase": "Succeeded", "conditions": [_WITHOUT_SANDBOX]}
        self.server.ask("PUT", f"{_PODS}/{name}/status", found)
        self.server.ask("DELETE", f"{_PODS}/{name}", {"gracePeriodSeconds": 0})

    def register(self, node: Node) -> None:
        """Creates the object of a node with its addresses, as kubelet does."""
        self.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node.name}})
        self.announce(node)

    def announce(self, node: Node) -> None:
        """Writes a node's addresses to its object, as kubelet does."""
        status = {"addresses": [{"type": "InternalIP", "address": each} for each in node.addresses]}
        self.server.ask("PATCH", f"/api/v1/nodes/{node.name}/status", {"status": status})

    def unregister(self, node: Node) -> None:
        """Deletes the object of a node, as an operator or a cloud does when it is gone."""
        self.server.ask("DELETE", f"/api/v1/nodes/{node.name}")

    def interfaces(self) -> dict[str, list[Object]]:
        """The interfaces of all pods, by the pod's name, in order."""
        items = self.server.ask("GET", f"{_OURS}/virtualmachines")["items"]
        return {item["metadata"]["labels"][POD_LABEL]: item["spec"]["interfaces"] for item in items}

    def slices(self, node: Node) -> list[Object]:
        """The network slices of a node."""
        query = f"?labelSelector=opencontrail.org/node={node.name}"
        items: list[Object] = self.server.ask("GET", f"{_OURS}/networkslices{query}")["items"]
        return items

    def tunnel_mtus(self) -> dict[str, int | None]:
        """What fits the tunnels of each node that has reported."""
        items = self.server.ask("GET", f"{_OURS}/contrailnodes")["items"]
        return {item["metadata"]["name"]: item["status"].get("tunnelMtu") for item in items}


def _bound(document: Document, node: Node) -> Object:
    containers = [{"name": "main", "image": "none.example/none"}]
    return {**document, "spec": {"nodeName": node.name, "containers": containers}}


@contextlib.contextmanager
def cluster_of(nodes: int, families: Sequence[int] = (0, 1), mtu: int | str = POD_MTU) -> Iterator[Cluster]:
    """A cluster with this number of running nodes. `families` of nodes and pods: 0 is IPv4, 1 is IPv6."""
    with registered_cluster(nodes, families, mtu) as cluster:
        for node in cluster.nodes:
            node.start()
        yield cluster


@contextlib.contextmanager
def registered_cluster(nodes: int, families: Sequence[int] = (0, 1), mtu: int | str = POD_MTU) -> Iterator[Cluster]:
    """A cluster with this number of nodes, on which no process runs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))
        (folder / "server").mkdir()
        server = stack.enter_context(serve_real_apiserver(folder / "server"))
        cluster = Cluster(server, folder, families, mtu)
        stack.callback(cluster.fabric.delete)
        stack.callback(idle_connections.close)  # of the nodes' reports
        stack.enter_context(running(cluster.manager))
        cluster.manager.wait_until_it_leads()
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for number in range(1, nodes + 1):
            node = Node(number, server, cluster.fabric, folder / str(number), families)
            stack.callback(node.close)
            cluster.nodes.append(node)
            cluster.register(node)
        yield cluster

"""Cluster of the nodes: an API server, the manager, and actions of users and the scheduler."""

import json
import urllib.error
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from contrail_config.kubernetes.kinds import NAMESPACE_LABEL, POD_LABEL, VirtualMachineObject, VirtualNetworkObject
from contrail_config.objects import VirtualMachineInterface
from manager.kubernetes.wire import STATUS_KEY
from manager.parsing.nad_network import CIDR_KEY
from manager.parsing.networks import NETWORKS_KEY
from tests.support.address_blocks import block_entries
from tests.support.cluster_processes import ManagerProcess
from tests.support.real_apiserver.server import ApiServer

DEPLOY = Path(__file__).parents[3] / "deploy"
NAMESPACE = "demo"

_OURS = "/apis/opencontrail.org/v1alpha1"
_POD_NETWORK = {"subnets": ["10.32.0.0/16", "fd00:32::/64"]}
_NADS = "/apis/k8s.cni.cncf.io/v1/namespaces/{}/network-attachment-definitions"

T = TypeVar("T", VirtualMachineObject, VirtualNetworkObject)


@dataclass(frozen=True)
class Pod:
    """A pod that is bound to a node."""

    name: str
    namespace: str
    uid: str

    @property
    def path(self) -> str:
        """Path of its object."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


class Cluster:
    """Actions wait for their effect, with a deadline. The manager's files are below `work`."""

    def __init__(self, server: ApiServer, work: Path) -> None:
        self.server = server
        self._work = work
        self.manager = self._manager({})

    def start_manager(self, **meta_plugin: Any) -> None:
        """Starts or restarts the manager with these settings of `meta-plugin`."""
        if self.manager.process is not None:
            assert self.manager.stop() == 0
        self.manager = self._manager(meta_plugin)
        self.manager.start()
        self.manager.wait_until_it_leads()

    def add_namespace(self, name: str) -> None:
        self.server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def add_nad(self, key: str, config: Mapping[str, Any] | str, *, cidr: str = "") -> None:
        """Creates the NAD `namespace/name`; with a CIDR it belongs to this plugin, and its network is awaited."""
        namespace, _, name = key.partition("/")
        text = config if isinstance(config, str) else json.dumps(config)
        annotations = {CIDR_KEY: cidr} if cidr else {}
        metadata = {"name": name, "namespace": namespace, "annotations": annotations}
        kind = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition"}
        self.apply_nad({**kind, "metadata": metadata, "spec": {"config": text}})

    def apply_nad(self, manifest: Mapping[str, Any]) -> None:
        """Creates a NAD, and waits for its network if it belongs to this plugin."""
        metadata = manifest["metadata"]
        self.server.ask("POST", _NADS.format(metadata["namespace"]), manifest)
        if CIDR_KEY in metadata.get("annotations", {}):
            key = f"{metadata['namespace']}/{metadata['name']}"
            self.manager.wait_until(lambda: key in self._networks(), what=f"aware of {key}")

    def add_pod(self, node: str, networks: Any, *, namespace: str, annotations: Mapping[str, str]) -> Pod:
        """Creates and binds a pod and waits for its interfaces.

        `networks` is the annotation, as text or as an object to encode as JSON; `annotations` are further ones.
        """
        text = networks if isinstance(networks, str) else json.dumps(networks)
        pod = self._create_pod(namespace, {NETWORKS_KEY: text, **annotations} if text else dict(annotations))
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name}, "target": target}
        self.server.ask("POST", f"{pod.path}/binding", body)
        self.manager.wait_until(lambda: self.virtual_machine(pod) is not None, what=f"serving {pod.name}")
        return pod

    def remove_pod(self, pod: Pod) -> None:
        """Deletes the pod as kubelet does at the end, without waiting for the release of its addresses."""
        if self.find(pod.path) is not None:
            self.server.ask("DELETE", pod.path, {"gracePeriodSeconds": 0})

    def allocated(self, pod: Pod) -> list[VirtualMachineInterface]:
        """The pod's interfaces in order."""
        virtual_machine = self.virtual_machine(pod)
        assert virtual_machine is not None
        return list(virtual_machine.spec.interfaces)

    def virtual_machine(self, pod: Pod) -> VirtualMachineObject | None:
        """The pod's virtual machine, found by its labels; None if there is none."""
        labels = f"{NAMESPACE_LABEL}={pod.namespace},{POD_LABEL}={pod.name}"
        found = self._list(f"virtualmachines?labelSelector={labels}", VirtualMachineObject)
        return found[0] if found else None

    def network_status(self, pod: Pod) -> list[dict[str, Any]]:
        """The pod's network status; empty without one."""
        annotations = self.server.ask("GET", pod.path)["metadata"].get("annotations", {})
        status: list[dict[str, Any]] = json.loads(annotations.get(STATUS_KEY, "[]"))
        return status

    def find(self, path: str) -> Any:
        """The object at the path, None if it does not exist."""
        try:
            return self.server.ask("GET", path)
        except urllib.error.HTTPError as error:
            with error:
                if error.code != 404:
                    raise
            return None

    def left(self) -> list[str]:
        """Existing virtual machines and allocated addresses."""
        virtual_machines = self._list("virtualmachines", VirtualMachineObject)
        blocks = self.server.ask("GET", f"{_OURS}/addressblocks")["items"]
        allocated = (f"{one.address} of {one.owner}" for one in block_entries(blocks) if one.held is None)
        return [*(each.metadata.name for each in virtual_machines), *allocated]

    def _manager(self, meta_plugin: dict[str, Any]) -> ManagerProcess:
        settings = yaml.safe_load((DEPLOY / "multus" / "manager.yaml").read_text())
        settings["meta-plugin"] |= meta_plugin
        return ManagerProcess(self._work, self.server.kubeconfig(), pod_network=_POD_NETWORK, **settings)

    def _create_pod(self, namespace: str, annotations: Mapping[str, str]) -> Pod:
        metadata = {"name": f"web-{uuid.uuid4().hex[:8]}", "annotations": annotations}
        container = {"name": "main", "image": "none.example/none"}
        body = {"metadata": metadata, "spec": {"containers": [container]}}
        made = self.server.ask("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        return Pod(made["metadata"]["name"], namespace, made["metadata"]["uid"])

    def _networks(self) -> set[str | None]:
        return {each.spec.nad for each in self._list("virtualnetworks", VirtualNetworkObject)}

    def _list(self, plural: str, kind: type[T]) -> list[T]:
        items = self.server.ask("GET", f"{_OURS}/{plural}")["items"]
        return [msgspec.convert(item, kind) for item in items]

"""Simulates the container runtime: makes the calls that containerd makes around the plugin."""

import os
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.configuration import NetworkList
from cni_contrail.runtime.sandbox import make_sandbox, remove_sandbox
from demo.node import BIN_DIR
from demo.resources import DemoResources
from manager.api.types import PodView

_SETTINGS_VARIABLE = "CONTRAIL_CNI_CONFIG"


class PodSandbox(NamedTuple):
    """A pod with its network namespace and its single attachment."""

    pod: PodView
    namespace: str
    attachment: Attachment


class ContainerRuntime:
    """Creates and removes sandboxes and runs a network configuration on them, in the caller's network namespace."""

    def __init__(self, resources: DemoResources, network: NetworkList) -> None:
        self._resources = resources
        self._network = network
        environment = {**os.environ, _SETTINGS_VARIABLE: resources.plugin_settings}
        self._runtime = Runtime([BIN_DIR], cache_dir=resources.result_cache, environment=environment)

    def create(self, pod: PodView) -> PodSandbox:
        """Creates the network namespace of the pod, before any plugin runs."""
        namespace = self._resources.pod_namespace(pod.namespace, pod.name)
        container_id = secrets.token_hex(32)
        args = {
            "IgnoreUnknown": "1",
            "K8S_POD_NAMESPACE": pod.namespace,
            "K8S_POD_NAME": pod.name,
            "K8S_POD_INFRA_CONTAINER_ID": container_id,
            "K8S_POD_UID": pod.uid,
        }
        path = make_sandbox(namespace)
        return PodSandbox(pod, namespace, Attachment(container_id, path, "eth0", args=tuple(args.items())))

    def attach(self, sandbox: PodSandbox) -> None:
        """Runs ADD. Raises CniRuntimeError."""
        self._runtime.add(self._network, sandbox.attachment)

    def result(self, sandbox: PodSandbox) -> Mapping[str, Any]:
        """Returns the cached result of ADD, empty if there is none. Raises CniRuntimeError."""
        entry = self._runtime.cached(self._network, sandbox.attachment)
        return {} if entry is None else entry.result

    def check(self, sandbox: PodSandbox) -> None:
        """Runs CHECK. Raises CniRuntimeError."""
        self._runtime.check(self._network, sandbox.attachment)

    def detach(self, sandbox: PodSandbox) -> None:
        """Runs DEL, also after a failed ADD. Raises CniRuntimeError."""
        self._runtime.delete(self._network, sandbox.attachment)

    def remove(self, sandbox: PodSandbox) -> None:
        """Removes the network namespace, after the last plugin ran."""
        remove_sandbox(sandbox.attachment.netns)

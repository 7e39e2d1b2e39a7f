"""Plays the container runtime for one pod: what containerd does around the plugin, by the same calls."""

import os
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from cni_contrail.runtime.attachment import Attachment
from cni_contrail.runtime.chain import Runtime
from cni_contrail.runtime.configuration import NetworkList
from cni_contrail.runtime.sandbox import make_sandbox, remove_sandbox
from contrail_embedded.demo.node import BIN_DIR
from contrail_embedded.demo.place import DemoDirectory
from manager.api.types import PodView

_SETTINGS_VARIABLE = "CONTRAIL_CNI_CONFIG"


class Sandbox(NamedTuple):
    """A pod with its network namespace and its one attachment, as the runtime knows it."""

    pod: PodView
    namespace: str
    attachment: Attachment


class RuntimePlayer:
    """Makes and removes sandboxes, and runs a network configuration on them, in the network namespace of the caller."""

    def __init__(self, place: DemoDirectory, network: NetworkList) -> None:
        self._place = place
        self._network = network
        environment = {**os.environ, _SETTINGS_VARIABLE: place.plugin_settings}
        self._runtime = Runtime([BIN_DIR], cache_dir=place.result_cache, environment=environment)

    def make(self, pod: PodView) -> Sandbox:
        """Makes a network namespace for the pod: before any plugin runs."""
        namespace = self._place.pod_namespace(pod.namespace, pod.name)
        container_id = secrets.token_hex(32)
        args = {
            "IgnoreUnknown": "1",
            "K8S_POD_NAMESPACE": pod.namespace,
            "K8S_POD_NAME": pod.name,
            "K8S_POD_INFRA_CONTAINER_ID": container_id,
            "K8S_POD_UID": pod.uid,
        }
        path = make_sandbox(namespace)
        return Sandbox(pod, namespace, Attachment(container_id, path, "eth0", args=tuple(args.items())))

    def attach(self, sandbox: Sandbox) -> None:
        """ADD. Raises CniRuntimeError."""
        self._runtime.add(self._network, sandbox.attachment)

    def result(self, sandbox: Sandbox) -> Mapping[str, Any]:
        """The result of ADD as the runtime cached it; empty if there is none. Raises CniRuntimeError."""
        entry = self._runtime.cached(self._network, sandbox.attachment)
        return {} if entry is None else entry.result

    def check(self, sandbox: Sandbox) -> None:
        """CHECK. Raises CniRuntimeError."""
        self._runtime.check(self._network, sandbox.attachment)

    def detach(self, sandbox: Sandbox) -> None:
        """DEL, which a failed ADD is followed by too. Raises CniRuntimeError."""
        self._runtime.delete(self._network, sandbox.attachment)

    def remove(self, sandbox: Sandbox) -> None:
        """Removes the network namespace: after the last plugin."""
        remove_sandbox(sandbox.attachment.netns)

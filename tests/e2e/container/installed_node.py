"""A host with the files of the image, on which installer and uninstaller run in containers."""

import subprocess
from collections.abc import Callable
from typing import Any

import yaml

from tests.e2e.container.podman_node import PodmanNode
from tests.e2e.plugin_installation import COMMANDS
from tests.e2e.polling import wait_until
from tests.support.applied_manifests import documents
from tests.support.container_node import MANIFEST, manifest_pod
from tests.support.shim import ROOT, build_shim

_UNINSTALL = MANIFEST.parents[1] / "uninstall" / "uninstall.yaml"
FILES = {
    "/opt/cni/bin/contrail-k8s-cni",
    "/opt/cni/bin/contrail-loopback",
    "/opt/cni/bin/loopback",
    "/etc/contrail/cni.json",
    "/etc/cni/net.d/10-contrail.conflist",
}
CONFLIST = "/etc/cni/net.d/10-contrail.conflist"
VROUTER = MANIFEST.parents[1] / "overlays" / "vrouter"
_IMAGE = "--volume=/opt/contrail/cni:/opt/contrail/cni:ro"  # the root file system has no mounts of the host


class InstalledNode:
    """A host with the files of the image, on which installers run."""

    def __init__(self, node: PodmanNode) -> None:
        self.node = node
        loopback = subprocess.run([ROOT / "scripts/loopback"], check=True, capture_output=True, text=True).stdout
        node.host.run("mkdir", "--parents", "/opt/contrail/cni")
        node.host.run("install", build_shim(), f"{loopback.strip()}/loopback", "/opt/contrail/cni/")
        self.log = node.host.path("/run/installers.log")
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, pod: Any) -> None:
        """Starts a container of a pod."""
        (container,) = (each for each in pod["containers"] if each["name"] == name)
        with self.log.open("a") as log:
            self._processes[name] = self.node.host.start(*self.node.command(name, pod, container, _IMAGE), stderr=log)

    def stop(self) -> None:
        """Removes all containers."""
        for name, process in self._processes.items():
            self.node.podman.remove(name)
            process.wait(20)
        self._processes.clear()

    def says(self, name: str, pod: Any) -> tuple[int, str]:
        """Exit status and output of a container's readiness probe."""
        (container,) = (each for each in pod["containers"] if each["name"] == name)
        program, *arguments = container["readinessProbe"]["exec"]["command"]
        ended = self.node.host.call(str(COMMANDS / program), *arguments)  # the host's directory is at the same path
        return ended.returncode, ended.stderr

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Waits until it holds."""
        wait_until(holds, what=what, otherwise=self.log.read_text)

    def files(self) -> set[str]:
        """The files that are installed."""
        return {path for path in FILES if self.node.host.path(path).exists()}


def pod_of_the_uninstaller() -> Any:
    """The pod of its manifest, as specified."""
    objects = yaml.safe_load_all(_UNINSTALL.read_text())
    (pod,) = (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "DaemonSet")
    return pod


def pod_that_takes_over() -> Any:
    """The pod of the manifest with the patch for nodes of Contrail."""
    pod = manifest_pod()
    (patched,) = documents(VROUTER / "take-over-patch.yaml")[0]["spec"]["template"]["spec"]["containers"]
    (installer,) = (each for each in pod["containers"] if each["name"] == patched["name"])
    return pod | {"containers": [installer | patched]}

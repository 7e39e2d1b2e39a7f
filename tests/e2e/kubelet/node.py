"""Node of a cluster: a temporary host with containerd, kubelet and kube-proxy."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from tests.e2e.host import Host
from tests.e2e.host_process import HostProcess
from tests.e2e.kube_proxy import KubeProxy
from tests.e2e.kubelet.container_runtime import RUNTIME, ContainerRuntime, Version
from tests.e2e.kubelet.control_plane import program
from tests.e2e.kubelet.fabric import Fabric
from tests.e2e.real_host_kernel import kernel_objects

POD_SUBNETS = ("10.32.0.0/12",)
"""Subnets of index 0 in `deploy/base`."""

_STATIC_PODS = "/etc/kubernetes/manifests"
_HEALTH = "http://127.0.0.1:10248/healthz"
_AGENT = "http://127.0.0.1:9091/readyz"
_TIMEOUT = 10.0
_KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
    "authorization": {"mode": "AlwaysAllow"},
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "containerRuntimeEndpoint": f"unix://{RUNTIME}",
    "staticPodPath": _STATIC_PODS,
    "fileCheckFrequency": "1s",
    "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
    "imageGCHighThresholdPercent": 100,
    "oomScoreAdj": 0,
}
_KERNEL_SETTINGS = {
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
"""Settings of the whole machine that kubelet writes unless they have these values."""


class Node:
    """The node `number` on the fabric. Files are below `work`, which is not private to the host."""

    def __init__(
        self, number: int, host: Host, fabric: Fabric, work: Path, kubeconfig: Path, containerd: Version
    ) -> None:
        self.name = f"node-{number}"
        self.host = host
        self.address = fabric.connect(host.net, number)
        self._prepare()
        configuration = work / "kubelet.yaml"
        configuration.write_text(json.dumps(_KUBELET | {"cgroupRoot": host.cgroup}))  # JSON is YAML
        self.runtime = ContainerRuntime(host, containerd, work / "containerd.log")
        kubelet = (
            program("kubelet"),
            f"--config={configuration}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={self.name}",
            f"--node-ip={self.address}",
        )
        self.kubelet = HostProcess(host, kubelet, work / "kubelet.log", is_ready=self._kubelet_is_ready)
        self.proxy = KubeProxy(host, work, kubeconfig, mode="nftables", name=self.name, pods=POD_SUBNETS)

    def start(self, images: Iterable[Path]) -> None:
        """Starts all programs and waits until they serve; containerd has the images of these archives."""
        self.runtime.start()
        for archive in images:
            self.import_image(archive)
        self.kubelet.start(repeatedly=True)  # it ends while containerd still reads what it has stored
        self.proxy.start()

    def import_image(self, archive: Path) -> None:
        """Gives an image to containerd."""
        self.runtime.ctr("images", "import", str(archive))

    def agent_is_ready(self) -> bool:
        """Whether the agent of this node runs, and is ready."""
        return self._succeeds(_AGENT)

    def kernel_objects(self) -> set[str]:
        """What in the node's own network namespace is recognisable as this project's."""
        with self.host.net.inside():
            return kernel_objects(str(self.host.path("/run/netns")))

    def kill(self) -> None:
        """Kills the programs; containers end with the host."""
        for process in (self.proxy, self.kubelet, self.runtime):
            process.kill()

    def static_pod(self, name: str) -> Path:
        """The file of a static pod; kubelet notices when it appears and when it is gone."""
        return self.host.path(f"{_STATIC_PODS}/{name}.yaml")

    def _prepare(self) -> None:
        """Makes what a node has before kubelet, and hides what kubelet would change on the real host."""
        self.host.run("hostname", self.name)
        self.host.run("mount", "-t", "tmpfs", "private", "/var/log")
        for setting, value in _KERNEL_SETTINGS.items():
            file = f"/run/{setting.replace('/', '.')}"
            self.host.path(file).write_text(f"{value}\n")
            self.host.run("mount", "--bind", file, f"/proc/sys/{setting}")
        self.host.path(_STATIC_PODS).mkdir(parents=True)
        self.host.make_cgroup()

    def _kubelet_is_ready(self) -> bool:
        return self._succeeds(_HEALTH)

    def _succeeds(self, url: str) -> bool:
        try:
            with self.host.net.inside(), urllib.request.urlopen(url, timeout=_TIMEOUT):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

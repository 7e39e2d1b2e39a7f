"""containerd of a node: Debian's, which is of version 1, or the one that `scripts/containerd` builds, of version 2."""

import os
from pathlib import Path
from typing import NamedTuple

from tests.e2e.host import Host
from tests.e2e.host_process import HostProcess
from tests.e2e.kubelet.busybox_image import BUSYBOX

RUNTIME = "/run/containerd/containerd.sock"

_FOLDER = "CONTRAIL_CONTAINERD"
"""Environment variable with the folder of version 2; `scripts/e2e` sets it."""

_SYSTEM = "/usr/bin"
_CONFIGURATION = "/etc/containerd/config.toml"
_VERSION_1 = f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  sandbox_image = "{BUSYBOX}"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""
_VERSION_2 = f"""
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{BUSYBOX}"
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


class Version(NamedTuple):
    """A version of containerd: the folder of its programs, and the configuration that it reads."""

    folder: str
    configuration: str


def versions() -> tuple[Version, ...]:
    """Both, the newer one first."""
    return Version(os.environ[_FOLDER], _VERSION_2), Version(_SYSTEM, _VERSION_1)


class ContainerRuntime(HostProcess):
    """containerd on a host, with its output in `log`."""

    def __init__(self, host: Host, version: Version, log: Path) -> None:
        path = f"PATH={version.folder}:{os.environ['PATH']}"  # its shim is of the same version
        super().__init__(host, ["env", path, "containerd"], log, is_ready=self._is_ready)
        self._ctr = f"{version.folder}/ctr"
        host.path(_CONFIGURATION).write_text(version.configuration)

    def ctr(self, *arguments: str) -> None:
        """Runs a command of `ctr` on what kubelet has there."""
        self._host.run(self._ctr, "--namespace=k8s.io", *arguments)

    def _is_ready(self) -> bool:
        return self._host.call(self._ctr, "version").returncode == 0

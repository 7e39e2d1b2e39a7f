"""A host whose daemon runs in a container, as the manifests say: podman takes the place of kubelet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.host import Host
from tests.e2e.plugin_installation import COMMANDS
from tests.e2e.podman import Podman
from tests.support.container_node import MANIFEST, ContainerNode, manifest_container, manifest_pod

CONFIGURATION = MANIFEST.with_name("configuration.yaml")
_NAME = "cnid"
_PROPAGATION = {"HostToContainer": ":rslave", None: ""}


class PodmanNode(ContainerNode):
    """The host's own files are the root file system of the container; its volumes are those of the manifest."""

    def __init__(self, host: Host) -> None:
        host.path("/run/contrail").mkdir()
        super().__init__(host, host.path("/run/contrail"))
        self.variables = {}  # the shim's default socket
        self.log = host.path("/run/cnid.log")
        self.podman = Podman(host, Path("/"))
        self._write_configuration("/etc/contrail-node")

    def daemon_command(self) -> list[str]:
        """`podman run` with the security context, volumes and command of the manifest."""
        return self.command(_NAME, manifest_pod(), manifest_container())

    def command(self, name: str, pod: Any, container: Any, *more: str) -> list[str]:
        """`podman run` of a container of a pod, with its security context, volumes and command, and more options."""
        program, *arguments = container["command"]
        return [
            *("podman", "run", "--rm", f"--name={name}", "--network=host", *self._limits(), *_security(container)),
            *(f"--volume={volume}" for volume in _volumes(pod, container)),
            *more,
            *("--rootfs", "/:O", str(COMMANDS / program), *arguments),
        ]

    def kill_container(self) -> None:
        """Kills the container and removes it."""
        self.podman.remove(_NAME)

    def _limits(self) -> list[str]:
        limits = "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"  # runc needs no right to raise them
        return [*limits, f"--cgroup-parent={self.host.cgroup}", "--cgroups=no-conmon"]

    def _write_configuration(self, folder: str) -> None:
        self.host.run("mkdir", "--parents", folder)
        maps = {each["metadata"]["name"]: each["data"] for each in yaml.safe_load_all(CONFIGURATION.read_text())}
        for name, text in maps["contrail-node"].items():
            self.host.path(f"{folder}/{name}").write_text(text)


def _security(container: Any) -> Iterator[str]:
    context = container["securityContext"]
    assert not context["allowPrivilegeEscalation"]
    assert context["readOnlyRootFilesystem"]
    assert "privileged" not in context
    yield "--security-opt=no-new-privileges"
    yield from ("--read-only", "--read-only-tmpfs=false")
    yield f"--cap-drop={','.join(context['capabilities']['drop'])}"
    yield from (f"--cap-add={name}" for name in context["capabilities"].get("add", ()))


def _volumes(pod: Any, container: Any) -> Iterator[str]:
    paths = {each["name"]: each["hostPath"]["path"] for each in pod["volumes"] if "hostPath" in each}
    for mount in container["volumeMounts"]:
        path = paths.get(mount["name"], mount["mountPath"])  # the configuration is at the same path on this host
        yield f"{path}:{mount['mountPath']}{_PROPAGATION[mount.get('mountPropagation')]}"

"""Installer and uninstaller in containers with the rights of their manifests, beside the daemon, on one host."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.cni_contrail.installer.upstream_node import upstream_text
from tests.e2e.container.conftest import PodmanNode
from tests.e2e.plugin_installation import COMMANDS
from tests.e2e.polling import wait_until
from tests.support.applied_manifests import documents
from tests.support.container_node import MANIFEST, manifest_pod
from tests.support.shim import ROOT, build_shim

VNI = 7
UNINSTALL = MANIFEST.parents[1] / "uninstall" / "uninstall.yaml"
FILES = {
    "/opt/cni/bin/contrail-k8s-cni",
    "/opt/cni/bin/contrail-loopback",
    "/opt/cni/bin/loopback",
    "/etc/contrail/cni.json",
    "/etc/cni/net.d/10-contrail.conflist",
}
FOLDERS = "/opt/cni/bin", "/etc/contrail", "/etc/cni/net.d"
CONFLIST = "/etc/cni/net.d/10-contrail.conflist"
CONF = "/etc/cni/net.d/10-contrail.conf"
VROUTER = MANIFEST.parents[1] / "overlays" / "vrouter"
POLLING = {"poll-timeout": 5, "poll-retries": 15}
_IMAGE = "--volume=/opt/contrail/cni:/opt/contrail/cni:ro"  # the root file system has no mounts of the host
UP = ("ip", "-json", "link", "show", "dev", "lo", "up")


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
    objects = yaml.safe_load_all(UNINSTALL.read_text())
    (pod,) = (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "DaemonSet")
    return pod


@pytest.fixture
def installed(node: PodmanNode) -> Iterator[InstalledNode]:
    installed = InstalledNode(node)
    yield installed
    installed.stop()


@pytest.mark.parametrize("owner", ["root", "daemon"])
def test_a_node_is_installed_when_it_is_ready_and_uninstalled_after_its_last_pod(
    installed: InstalledNode, owner: str
) -> None:
    """Some ways to install Kubernetes give the folders another owner."""
    node, pod = installed.node, manifest_pod()
    for folder in FOLDERS:
        node.host.run("install", "--directory", f"--owner={owner}", folder)
    node.kill_daemon()
    installed.start("installer", pod)
    waiting = "waiting: contrail-cnid: no answer to STATUS within 5 s\n"
    installed.until(lambda: installed.says("installer", pod) == (1, waiting), "it waits for the daemon")
    assert installed.files() == FILES - {CONFLIST}

    node.start_daemon()
    installed.until(lambda: installed.says("installer", pod) == (0, ""), "it is done")
    assert installed.files() == FILES
    node.host.path(CONFLIST).unlink()
    installed.until(lambda: installed.files() == FILES, "the list is back")

    node.desired.set(VNI)
    assert node.desired.await_report()["problems"] == {}
    attached = node.add(VNI)
    uninstaller = pod_of_the_uninstaller()
    installed.start("uninstaller", uninstaller)
    waiting = f"waiting: pods with interfaces: {attached.sandbox.vm_name}\n"
    installed.until(lambda: installed.says("uninstaller", uninstaller) == (1, waiting), "it waits for the pod")
    assert installed.files() == FILES
    node.call("DEL", attached).succeeded()
    installed.until(lambda: installed.says("uninstaller", uninstaller) == (0, ""), "all is removed")
    assert installed.files() == set()


def test_contrails_plugin_is_replaced_and_put_back(installed: InstalledNode) -> None:
    node, pod = installed.node, manifest_pod()
    node.agent.clear_behaviours()  # a vrouter agent has no datapath of ours
    with node.host.net.inside():
        _, port = node.agent.listen_on_tcp()
    (overlay,) = documents(VROUTER / "node-configuration.yaml")
    text = overlay["data"]["cnid.yaml"].replace("vrouter-port: 9091", f"vrouter-port: {port}")
    node.host.path("/etc/contrail-node/cnid.yaml").write_text(text)
    node.kill_daemon()
    node.start_daemon()
    theirs = {"/opt/cni/bin/contrail-k8s-cni": "theirs", CONF: upstream_text(**{"vrouter-port": port})}
    for path, content in theirs.items():
        node.host.path(path).parent.mkdir(parents=True, exist_ok=True)
        node.host.path(path).write_text(content)

    installed.start("installer", pod)
    refusal = f"{CONF}: Contrail's own plugin is installed: use --take-over to replace it\n"
    installed.until(lambda: refusal in installed.says("installer", pod)[1], "it installs nothing")
    assert {path: node.host.path(path).read_text() for path in installed.files()} == {
        path: content for path, content in theirs.items() if path != CONF
    }
    printed = node.host.run(str(COMMANDS / "contrail-installer"), "upstream-settings", "--host=/")
    assert yaml.safe_load(printed).items() <= (yaml.safe_load(text) | {"mtu": 1500} | POLLING).items()

    installed.stop()
    (patched,) = documents(VROUTER / "take-over-patch.yaml")[0]["spec"]["template"]["spec"]["containers"]
    (installer,) = (each for each in pod["containers"] if each["name"] == patched["name"])
    installed.start("installer", pod | {"containers": [installer | patched]})
    installed.until(lambda: installed.says("installer", pod) == (0, ""), "it is done")
    assert installed.files() == FILES
    assert not node.host.path(CONF).exists()

    installed.stop()
    installed.start("uninstaller", pod_of_the_uninstaller())
    installed.until(lambda: installed.says("uninstaller", pod_of_the_uninstaller()) == (0, ""), "all is put back")
    assert {path: node.host.path(path).read_text() for path in theirs} == theirs
    assert installed.files() == {"/opt/cni/bin/contrail-k8s-cni"}


def test_the_installed_loopback_takes_the_loopback_of_a_pod_up(installed: InstalledNode) -> None:
    host = installed.node.host
    installed.start("installer", manifest_pod())
    installed.until(lambda: installed.files() == FILES, "all is installed")
    host.run("ip", "netns", "add", "pod")
    call = {
        "CNI_COMMAND": "ADD",
        "CNI_CONTAINERID": "container",
        "CNI_NETNS": "/run/netns/pod",
        "CNI_IFNAME": "lo",
        "CNI_PATH": "/opt/cni/bin",
    }
    configuration = '{"cniVersion": "0.4.0", "name": "cni-loopback", "type": "loopback"}'  # as of containerd 1.7
    assert host.run("ip", "netns", "exec", "pod", *UP).strip() in ("", "[]", "[{}]")
    host.run("sh", "-c", f"echo '{configuration}' | /opt/cni/bin/loopback", **call)
    (link,) = json.loads(host.run("ip", "netns", "exec", "pod", *UP))
    assert link["ifname"] == "lo"

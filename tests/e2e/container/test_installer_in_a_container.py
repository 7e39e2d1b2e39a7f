"""Installer and uninstaller in containers with the rights of their manifests, beside the daemon, on one host."""

import json

import pytest
import yaml

from tests.cni_contrail.installer.upstream_node import upstream_text
from tests.e2e.container.installed_node import (
    CONFLIST,
    FILES,
    VROUTER,
    InstalledNode,
    pod_of_the_uninstaller,
    pod_that_takes_over,
)
from tests.e2e.plugin_installation import COMMANDS
from tests.support.applied_manifests import documents
from tests.support.container_node import manifest_pod

VNI = 7
FOLDERS = "/opt/cni/bin", "/etc/contrail", "/etc/cni/net.d"
CONF = "/etc/cni/net.d/10-contrail.conf"
POLLING = {"poll-timeout": 5, "poll-retries": 15}
UP = ("ip", "-json", "link", "show", "dev", "lo", "up")


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
    waiting = "waiting: contrail-cnid: no answer to STATUS within 8 s\n"
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
    installed.start("installer", pod_that_takes_over())
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

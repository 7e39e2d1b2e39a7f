"""A host with Contrail's own plugin and vrouter agent, on which installers run, and calls as containerd makes them."""

import hashlib
import json
import subprocess
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from tests.cni_contrail.installer.upstream_node import upstream_text
from tests.e2e.container.installed_node import VROUTER, InstalledNode
from tests.support.applied_manifests import documents
from tests.support.container_node import TIMEOUT
from tests.support.plugin import Outcome, PodSandbox
from tests.support.scripted_agents import VrouterAgent, make_vmis
from tests.support.upstream_executable import write_executable

PLUGIN = "/opt/cni/bin/contrail-k8s-cni"
PORTS = "/var/lib/contrail/ports/vm"
_CONFIGURATIONS = "/etc/cni/net.d"
_FOLDERS = ("/opt/cni/bin", _CONFIGURATIONS, "/etc/contrail")
_LASTING = ("ifindex", "ifname", "address", "addr_info", "dst", "gateway")


class Content(NamedTuple):
    """What must stay of a file."""

    digest: str
    mode: int
    changed: float


class ContrailNode:
    """The host of `installed`, whose daemon uses the vrouter agent. Contrail's configuration has the name `conf`."""

    def __init__(self, installed: InstalledNode, agent: VrouterAgent, conf: str) -> None:
        self.installed = installed
        self.host = installed.node.host
        self.agent = agent
        with self.host.net.inside():
            _, self._port = agent.listen_on_tcp()
        self._configure_daemon()
        write_executable(self.host.path(PLUGIN))
        self.host.path(f"{_CONFIGURATIONS}/{conf}").write_text(upstream_text(**{"vrouter-port": self._port}))
        self.host.path(PORTS).mkdir(parents=True)

    def files(self) -> dict[str, Content]:
        """All files in the folders of installers."""
        found = (file for folder in _FOLDERS for file in self.host.path(folder).iterdir())
        return {f"{file.parent.name}/{file.name}": _content(file) for file in sorted(found)}

    def ports(self, pod: PodSandbox) -> dict[str, Content]:
        """Port files of a pod."""
        folder = self.host.path(f"{PORTS}/{pod.vm_name}")
        return {file.name: _content(file) for file in sorted(folder.iterdir())} if folder.exists() else {}

    def attach(self) -> PodSandbox:
        """Makes a pod with two interfaces, by the plugin that is installed."""
        pod = PodSandbox(f"/run/netns/pod-{uuid.uuid4().hex[:12]}", name=f"pod-{uuid.uuid4().hex[:12]}")
        self.host.run("ip", "netns", "add", Path(pod.netns).name)
        subnet = len(self.agent.virtual_machines) + 1
        self.agent.serve(pod.vm_name, make_vmis(2, uid=pod.uid, subnet=subnet, ipv6=False))
        self.call("ADD", pod).succeeded()
        return pod

    def end(self, pod: PodSandbox) -> None:
        """Detaches the pod, and removes its sandbox, as containerd does."""
        self.call("DEL", pod).succeeded()
        self.host.run("ip", "netns", "del", Path(pod.netns).name)
        self.agent.serve(pod.vm_name, [])

    def network(self, pod: PodSandbox) -> Any:
        """Links, IPv4 addresses and routes of a pod, and its host ends: all that does not change by itself."""
        namespace = "-n", Path(pod.netns).name
        inside = [(*namespace, *words) for words in (("-4", "addr"), ("route",), ("link",))]
        shown = [self.host.run("ip", "-json", *words) for words in (*inside, ("link", "show", "type", "veth"))]
        return [{key: each.get(key) for key in _LASTING} for text in shown for each in json.loads(text)]

    def call(self, command: str, pod: PodSandbox) -> Outcome:
        """Calls the plugin with the first configuration of the folder."""
        configuration = self._first_configuration()
        variables = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": pod.container,
            "CNI_NETNS": pod.netns,
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": pod.args,
            "CNI_PATH": "/opt/cni/bin",
        }
        called = ("env", *(f"{name}={value}" for name, value in variables.items()), PLUGIN)
        pipe = subprocess.PIPE
        with self.host.start(*called, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            stdout, stderr = process.communicate(json.dumps(configuration), timeout=TIMEOUT)
        return Outcome(process.returncode, stdout, stderr)

    def _first_configuration(self) -> Any:
        files = self.host.path(_CONFIGURATIONS).iterdir()
        document = json.loads(min(each for each in files if each.suffix in (".conf", ".conflist")).read_text())
        if "plugins" not in document:
            return document
        (plugin,) = document["plugins"]
        return plugin | {key: document[key] for key in ("cniVersion", "name")}

    def _configure_daemon(self) -> None:
        (overlay,) = documents(VROUTER / "node-configuration.yaml")
        for name in ("cnid.yaml", "cni.json"):
            text = overlay["data"][name].replace("9091", str(self._port))
            self.host.path(f"/etc/contrail-node/{name}").write_text(text)
        self.installed.node.kill_daemon()
        self.installed.node.start_daemon()


def _content(file: Path) -> Content:
    found = file.lstat()
    return Content(hashlib.sha256(file.read_bytes()).hexdigest(), found.st_mode, found.st_mtime)

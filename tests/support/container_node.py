"""A host whose daemon runs like in a container of `deploy/base`, with an agent that the test scripts.

The daemon has a mount namespace that only receives the host's mounts, the capabilities of the manifest, and read-only
sysctls but for those of the network. `tests/e2e/container` has it in a real container.
"""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from cni_contrail.datapath.namespaces import name_of
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.deadline import Deadline
from cni_contrail.link.netns import InNetns, open_netns
from demo import echo
from tests.e2e.host import Host, temporary_host
from tests.support.plugin import Outcome, PodSandbox
from tests.support.plugin_callers import await_listener
from tests.support.scripted_agents import ReceivedRequest, Reply, ScriptedNodeAgent, make_vmis
from tests.support.shim import build_shim
from tests.support.traced_steps import Step, traced_steps

MANIFEST = Path(__file__).parents[2] / "deploy/base/node.yaml"
CNID = str(Path(sys.executable).parent / "contrail-cnid")
TIMEOUT = 30.0  # seconds for a call
_SYSCTLS = "/run/host/proc/sys"
_CONTAINER = f"""
mkdir -p {_SYSCTLS}/net
mount --bind /proc/sys/net {_SYSCTLS}/net
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
exec setpriv --no-new-privs --inh-caps=-all "$@"
"""


def manifest_pod() -> Any:
    """The pod of the manifest, as specified."""
    (pod,) = (each["spec"]["template"]["spec"] for each in yaml.safe_load_all(MANIFEST.read_text()))
    return pod


def manifest_container() -> Any:
    """The daemon's container in the manifest."""
    (container,) = (each for each in manifest_pod()["containers"] if each["name"] == "cnid")
    return container


def capabilities() -> list[str]:
    """Capabilities of the daemon's container."""
    return [str(each) for each in manifest_container()["securityContext"]["capabilities"]["add"]]


class ContainerPod(NamedTuple):
    """A pod on the host: `addresses` are those of index 0, which is routed, and of its interface in a network."""

    sandbox: PodSandbox
    path: str
    addresses: tuple[str, ...]

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Moves the current thread into the sandbox."""
        netns = open_netns(self.path)
        try:
            with InNetns(netns):
                yield
        finally:
            os.close(netns)

    def reaches(self, other: "ContainerPod") -> bool:
        """Whether an echo request to each address of the other pod is answered."""
        return all(echo.reaches(self.path, each, timeout=5, interval=0.05) for each in other.addresses)


class DesiredNetworks:
    """What the agent says of the datapath: at first no networks; `reports` are those of the daemon."""

    def __init__(self) -> None:
        self.reports: list[Any] = []
        self._changed = threading.Condition()
        self._version = 0
        self._networks: Sequence[int] = ()
        self._tunnel: dict[str, Any] = {}
        self._closed = False

    def set(self, *vnis: int) -> None:
        """Serves these networks, each with the gateway 10.1.1.1."""
        with self._changed:
            self._version += 1
            self._networks = vnis
            self._changed.notify_all()

    def set_tunnel(self, address: str, remote: str) -> None:
        """Serves the node's tunnel address, and in each network 10.1.1.200 at the node with the address `remote`."""
        with self._changed:
            self._version += 1
            endpoint = {"mac": "02:00:00:00:01:c8", "addresses": ["10.1.1.200"], "tunnel": remote}
            self._tunnel = {
                "tunnel": {"addresses": [address], "port": 4789},
                "nodes": [{"name": "other", "addresses": [remote]}],
                "remotes": [endpoint],
            }
            self._changed.notify_all()

    def await_report(self) -> Any:
        """Waits for a report of the networks that were set last, and returns it."""
        with self._changed:
            assert self._changed.wait_for(self._reported, TIMEOUT), self.reports
            return self.reports[-1]

    def close(self) -> None:
        """Ends requests that wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def reply(self, seen: ReceivedRequest) -> Reply | None:
        """Behaviour of the agent."""
        if seen.path == "/datapath/report":
            return Reply(200, {"report": self.reports[-1] if self.reports else None})
        if not seen.path.startswith("/datapath"):
            return None
        with self._changed:
            if seen.method == "POST":
                self.reports.append(seen.body)
                self._changed.notify_all()
                return Reply()
            known, wait = seen.query.get("version"), float(seen.query.get("wait", 0))
            self._changed.wait_for(lambda: self._closed or str(self._version) != known, wait)
            return Reply(200, self._document())

    def _document(self) -> Any:
        tunnel = dict(self._tunnel)
        network: dict[str, Any] = {"mtu": 1400, "gateways": ["10.1.1.1/24"], "ports": []}
        network |= {"snat": False, "forwarding": False, "remotes": tunnel.pop("remotes", [])}
        networks = [network | {"vni": vni} for vni in self._networks]
        node: dict[str, Any] = {"routed": [], "masquerade": None, "fabric-subnets": []}
        return {"version": str(self._version), "networks": networks, **node, **tunnel}

    def _reported(self) -> bool:
        return bool(self.reports) and self.reports[-1]["version"] == str(self._version)


class ContainerNode:
    """The host, its agent, and the daemon; both sockets are in `folder`. See `running`."""

    def __init__(self, host: Host, folder: Path) -> None:
        self.host = host
        self.variables = {"CONTRAIL_CNI_SOCKET": f"{folder}/cni.sock"}
        self.agent = ScriptedNodeAgent(str(folder / "agent.sock"))
        self.desired = DesiredNetworks()
        self.agent.before(self.desired.reply)
        self.log = folder / "cnid.log"
        self._socket = folder / "cni.sock"
        self._file = folder / "cnid.yaml"
        settings = {
            "socket": str(self._socket),
            "agent-socket": self.agent.socket_path,
            "state-dir": str(folder / "state"),
            "config-dir": str(folder / "ports"),
            "sysctl-dir": _SYSCTLS,
            "netns-dir": "/run/netns",
        }
        self._file.write_text(json.dumps(settings))  # JSON is YAML
        self._numbers = itertools.count(2)
        self._process: subprocess.Popen[str] | None = None

    def start_daemon(self) -> None:
        """Starts the daemon in a new container."""
        with self.log.open("a") as log:
            self._process = self.host.start(*self.daemon_command(), stderr=log)
        await_listener(str(self._socket))

    def daemon_command(self) -> list[str]:
        """Command that runs the daemon."""
        bounding = ",".join(["-all", *(f"+{each.lower()}" for each in capabilities())])
        container = ["unshare", "--mount", "--propagation", "slave", "sh", "-ec", _CONTAINER, "sh"]
        return [*container, f"--bounding-set={bounding}", CNID, "--config", str(self._file)]

    def kill_daemon(self) -> None:
        """Kills the daemon, and its container's mounts with it. Idempotent."""
        if self._process is not None:
            self.kill_container()
            self._process.wait(TIMEOUT)
            self._process = None

    def kill_container(self) -> None:
        """Kills the process of the daemon."""
        self.host.run("pkill", "--signal", "KILL", "--full", "--", f"--config {self._file}")

    def make_pod(self, vni: int) -> ContainerPod:
        """Makes the sandbox of a pod with an interface in the network; the agent serves it."""
        number, name = next(self._numbers), f"pod-{uuid.uuid4().hex[:12]}"
        self.host.run("ip", "netns", "add", name)
        sandbox = PodSandbox(f"/run/netns/{name}", name=name)
        addresses = f"10.1.0.{number}", f"10.1.1.{number}"
        where = {"routed": ["10.1.0.1"]}, {"network-namespace": name_of(vni), "bridge": "br0"}
        vmis = [
            replace(
                vmi,
                mac=f"02:00:00:00:{index:02x}:{number:02x}",
                subnets=(replace(vmi.subnets[0], address=addresses[index]),),
                datapath=where[index],
            )
            for index, vmi in enumerate(make_vmis(2, uid=sandbox.uid, ipv6=False))
        ]
        self.agent.serve(sandbox.vm_name, vmis)
        return ContainerPod(sandbox, str(self.host.path(sandbox.netns)), addresses)

    def start_call(self, command: str, pod: ContainerPod, *prefix: str) -> subprocess.Popen[str]:
        """Starts the shim on the host, through the command `prefix` if given."""
        environment = {
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": pod.sandbox.container,
            "CNI_NETNS": pod.sandbox.netns,
            "CNI_IFNAME": "eth0",
            "CNI_ARGS": pod.sandbox.args,
            "CNI_PATH": "/opt/cni/bin",
            **self.variables,
        }
        variables = (f"{name}={value}" for name, value in environment.items())
        pipe = subprocess.PIPE
        call = self.host.start("env", *variables, *prefix, build_shim(), stdin=pipe, stdout=pipe, stderr=pipe)
        assert call.stdin is not None
        call.stdin.write(json.dumps({"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}))
        call.stdin.close()
        call.stdin = None
        return call

    def call(self, command: str, pod: ContainerPod, *prefix: str) -> Outcome:
        """Runs a call to its end."""
        with self.start_call(command, pod, *prefix) as call:
            stdout, stderr = call.communicate(timeout=TIMEOUT)
        return Outcome(call.returncode, stdout, stderr)

    def add(self, vni: int) -> ContainerPod:
        """Attaches a new pod to the network."""
        pod = self.make_pod(vni)
        self.call("ADD", pod).succeeded()
        return pod

    def steps_of_the_shim(self, pod: ContainerPod) -> list[Step]:
        """Attaches the pod; returns what the shim did from the daemon's first request to it on."""
        trace = self.log.with_name("trace")
        self.call("ADD", pod, "strace", "-qq", f"--output={trace}").succeeded()
        steps = [step for step, _ in traced_steps(trace.read_text()) if step.name not in ("execve", "exit_group")]
        return steps[steps.index(Step("recvmsg", 1)) :]

    def mounts_of_the_daemon(self) -> list[str]:
        """Lines of `mountinfo` of the daemon."""
        pid = self.host.run("pgrep", "--full", "--", f"--config {self._file}").split()[0]
        return self.host.path(f"/proc/{pid}/mountinfo").read_text().splitlines()

    def pins(self, vni: int) -> list[str]:
        """Namespaces that are mounted at the network's name on the host, as `net:[inode]`."""
        mounts = (line.split() for line in self.host.path("/proc/1/mountinfo").read_text().splitlines())
        return [fields[3] for fields in mounts if fields[4] == f"/run/netns/{name_of(vni)}"]

    def await_removal(self, vni: int) -> None:
        """Waits until nothing of a network is on the host."""
        entry = self.host.path(f"/run/netns/{name_of(vni)}")
        assert any(not entry.exists() for _ in Deadline(STALE_SECONDS + TIMEOUT).attempts(0.1, 0.5))
        assert self.pins(vni) == []

    def ports(self, vni: int) -> list[str]:
        """Names of the ports of the network's bridge."""
        found = self.host.run("ip", "-n", name_of(vni), "-json", "link", "show", "master", "br0")
        return [each["ifname"] for each in json.loads(found or "[]")]


@contextlib.contextmanager
def container_node(folder: Path) -> Iterator[ContainerNode]:
    """Runs agent and daemon on a temporary host; `folder` has a path that is short enough for sockets."""
    with temporary_host() as host, running(ContainerNode(host, folder)) as node:
        yield node


@contextlib.contextmanager
def running(node: ContainerNode) -> Iterator[ContainerNode]:
    """Runs agent and daemon of a node."""
    try:
        with node.agent:
            node.start_daemon()
            yield node
            node.desired.close()
    finally:
        node.kill_daemon()

"""A node as an operator starts it, whose kernel connects the pods: embedded manager, node daemon, and plugin."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cni_contrail.agent.connections import idle_connections
from cni_contrail.agent.http import Endpoint, HttpExchange
from cni_contrail.deadline import Deadline
from tests.support.embedded_process import COMMAND, EmbeddedProcess
from tests.support.loopback_proxy import loopback_proxy
from tests.support.manifests import nad, pod, write
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin_callers import await_listener
from tests.support.shim import build_shim

CIDRS = "10.1.0.0/16, fd00:1::/64"
_NETWORK = "blue"
_CONFIGURATION = {"cniVersion": "1.1.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
_NO_CONFIGURATION: Mapping[str, Any] = {}
_TIMEOUT = 30.0  # seconds


class ConnectedPod(NamedTuple):
    """An attached pod and the addresses of its interface in the network."""

    namespace: Netns
    addresses: tuple[str, ...]


class NodeDaemon:
    """`contrail-cnid` in the current network namespace, with its files below `folder`."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.socket = folder / "cni.sock"
        self.node_file = folder / "node.json"
        self.log = folder / "cnid.log"
        self.node_file.write_text(json.dumps(settings))
        self._file = folder / "cnid.yaml"
        self._file.write_text(json.dumps({"socket": str(self.socket)}))  # JSON is YAML
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self, *environment: str) -> None:
        """Starts it without waiting; `environment` is a command that runs another one."""
        command = [*environment, str(COMMAND.with_name("contrail-cnid")), "--config", str(self._file)]
        variables = {**os.environ, "CONTRAIL_CNI_CONFIG": str(self.node_file)}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=variables, stderr=log)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """Sends SIGKILL and waits for its end."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_TIMEOUT)

    def stop(self) -> int:
        """Sends SIGTERM and returns its exit status."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_TIMEOUT)

    def close(self) -> None:
        """Kills it if it was started."""
        if self._process is not None:
            self.kill()


class DatapathNode:
    """The node, with one network `blue`; the calling thread is in its network namespace. See `datapath_node`."""

    def __init__(self, folder: Path, configuration: Mapping[str, Any], options: Sequence[str]) -> None:
        self.networks = NodeNetworks(folder / "networks")
        within = str(self.networks.folder)
        file = folder / "manager.yaml"
        file.write_text(json.dumps(configuration))  # JSON is YAML
        own = ("--config", str(file), "--datapath", "linux", "--netns-dir", within)
        self.manager = EmbeddedProcess(folder, options=[*own, *options])
        self._state = folder / "state"
        self._attached: list[tuple[str, Netns, str]] = []
        settings = {"agent-socket": str(self.manager.socket), "state-dir": str(self._state), "netns-dir": within}
        self.daemon = NodeDaemon(folder, settings)
        write(self.manager.manifests / "nads.yaml", nad(_NETWORK, cidr=CIDRS))

    def start(self) -> None:
        """Starts both processes, and returns when both serve."""
        self.manager.start()
        self.daemon.launch()
        await_listener(str(self.daemon.socket))

    @property
    def vni(self) -> int:
        """Number of the network, which has a pod."""
        (number,) = self.networks.namespaces.existing()
        return number

    @contextlib.contextmanager
    def attached(self, name: str, *, networks: str = _NETWORK, namespace: str = "demo") -> Iterator[ConnectedPod]:
        """Attaches a pod to networks; its sandbox is deleted at the end."""
        write(self.manager.manifests / f"{name}.yaml", pod(name, networks=networks, namespace=namespace))
        sandbox = Netns("pod")
        try:
            self.attach(name, sandbox, namespace=namespace)
            yield ConnectedPod(sandbox, _addresses(sandbox))
        finally:
            sandbox.delete()

    def attach(self, name: str, sandbox: Netns, *, namespace: str = "demo") -> None:
        """Runs ADD for a pod that has a manifest."""
        answer = call_shim(self.daemon, "ADD", name, sandbox, namespace=namespace)
        assert "interfaces" in answer, answer
        self._attached.append((name, sandbox, namespace))

    def detach_all(self) -> None:
        """Runs DEL for all pods that were attached, and deletes their manifests; sandboxes may be gone."""
        for name, sandbox, namespace in self._attached:
            answer = call_shim(self.daemon, "DEL", name, sandbox, namespace=namespace)
            assert answer == {}, answer
        self._attached = []
        for manifest in self.manager.manifests.glob("*.yaml"):
            manifest.unlink()

    def leftovers(self) -> list[str]:
        """What pods and their networks could leave behind: namespaces, mounts, links, rules, files."""
        tables = subprocess.run(
            ["nft", "list", "tables"], check=True, capture_output=True, text=True, timeout=10
        ).stdout
        links = json.loads(subprocess.run(["ip", "-json", "link"], check=True, capture_output=True, timeout=10).stdout)
        mounts = (line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
        folders = (self.networks.folder, self._state, self.manager.data / "ports")
        return [
            *(f"mount {each}" for each in mounts if each.startswith(f"{self.networks.folder}/")),
            *(f"link {each['ifname']}" for each in links if each["ifname"] != "lo"),
            *tables.splitlines(),
            *(f"file {file}" for folder in folders for file in folder.rglob("*") if file.is_file()),
        ]

    def report(self) -> Any:
        """The status of the datapath, with the latest report, as the agent serves it."""
        endpoint = Endpoint(str(self.manager.socket), "", 0)
        return json.loads(HttpExchange(endpoint, "GET", "/datapath/report", b"", Deadline(_TIMEOUT)).response().body)

    def await_report(self, since: float) -> Any:
        """Waits for a report that is younger than the monotonic time `since`, and returns it."""
        self.manager.wait_until(lambda: self._is_reported(since), what="reported")
        return self.report()["report"]

    def await_ports(self, number: int) -> None:
        """Waits until the network's ports are those of so many pods in the state that was programmed last.

        ADD connects a port itself; the desired state has it a moment later.
        """
        self.manager.wait_until(lambda: self._has_ports(number), what="programmed")

    def lose_kernel_state(self) -> None:
        """Removes the networks and what is below /run, as a reboot does; both processes have been killed."""
        self.networks.close()
        shutil.rmtree(self._state)
        self.daemon.socket.unlink()

    def close(self) -> None:
        """Kills both processes and removes the networks."""
        if self.manager.process is not None:
            self.manager.kill()
        self.daemon.close()
        self.networks.close()

    def _has_ports(self, number: int) -> bool:
        status = self.report()
        network = status["networks"].get(str(self.vni), {"ports": 0})
        is_programmed = status["report"] is not None and status["report"]["version"] == status["version"]
        return bool(is_programmed and network["ports"] == number)

    def _is_reported(self, since: float) -> bool:
        started = time.monotonic()
        age = self.report()["age"]
        return age is not None and started - age > since


def call_shim(daemon: NodeDaemon, command: str, name: str, sandbox: Netns, *, namespace: str = "demo") -> Any:
    """Calls the plugin for a pod by the native shim; returns the JSON of the result or of the error."""
    environment = {
        "PATH": os.environ["PATH"],
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": uuid.uuid5(uuid.NAMESPACE_URL, sandbox.path).hex,
        "CNI_NETNS": sandbox.path,
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin",
        "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}",
        "CONTRAIL_CNI_SOCKET": str(daemon.socket),
    }
    done = subprocess.run(
        [build_shim()], input=json.dumps(_CONFIGURATION).encode(), env=environment, stdout=subprocess.PIPE,
        timeout=_TIMEOUT, check=False,
    )  # fmt: skip
    return json.loads(done.stdout or "{}")


def _addresses(sandbox: Netns) -> tuple[str, ...]:
    """Addresses of the last interface."""
    link = sandbox.links()[-1]
    (found,) = json.loads(sandbox.ip("-json", "address", "show", "dev", link, "scope", "global"))
    return tuple(each["local"] for each in found["addr_info"] if each)


@contextlib.contextmanager
def datapath_node(
    configuration: Mapping[str, Any] = _NO_CONFIGURATION, *, options: Sequence[str] = (), servers: Sequence[str] = ()
) -> Iterator[DatapathNode]:
    """Runs the node in a network namespace of its own, in which the calling thread is meanwhile.

    `configuration` is that of the manager, `options` are further ones of its command line, and `servers` the URLs of
    loopback servers that it reaches.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ct-")))
        namespace = Netns("node")
        stack.callback(namespace.delete)
        for url in servers:
            stack.enter_context(loopback_proxy(url, namespace))
        stack.enter_context(namespace.inside())
        node = DatapathNode(folder, configuration, options)
        stack.callback(idle_connections.close)  # of `report`
        stack.callback(node.close)
        node.start()
        yield node

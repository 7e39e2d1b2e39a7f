"""Node for attach benchmarks: a temporary network namespace, an embedded manager with its agent, and the node daemon.

Another checkout of the project can run next to this one, in the same namespace, so that both are measured in one run.

The interfaces of all pods are served before the first measurement, so that attachment is measured and not the manager.
State is on a tmpfs, like /run; files that are on disk on real nodes (the agent's ports, leases of `host-local`) are on
disk here, too.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml

from tests.bench.process_timing import Program
from tests.support.api_pages import every_item
from tests.support.free_port import free_port
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.shim import ROOT, build_shim

PEERS = Path("/usr/lib/cni")
PODS = {"one": 500, "two": 100, "three": 100, "four": 100, "sixty-four": 1, "never": 500}
"""Number of pods of each kind; further calls attach the same pods again in new sandboxes."""
NETWORKS = {
    "one": "",
    "two": "net-a",
    "three": "net-a,net-b",
    "four": "net-a,net-b,net-c",
    "sixty-four": ",".join(["net-a"] * 63),
    "never": "net-a,comes-never",
}
START_TIMEOUT = 60.0  # seconds
_IDLE = 2.0  # seconds; a manager begins to store why a pod waits a second after it has seen the pod

_OURS = {"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}


class Pod(NamedTuple):
    """A pod of the namespace `bench`; without a UID, any pod of this name."""

    name: str
    uid: str = ""


@dataclass(frozen=True)
class BenchNode:
    """The node: its folders, and the programs of its plugins, which are those of one checkout."""

    namespace: Netns
    checkout: Path
    folder: Path
    state: Path
    daemon: int  # its process ID

    def bridge(self) -> Program:
        """Debian's `bridge` with `host-local`."""
        leases = {"type": "host-local", "subnet": "10.99.0.0/16", "dataDir": str(self.folder / "host-local")}
        peer = {"cniVersion": "1.0.0", "name": "bench", "type": "bridge", "bridge": "cni-bench0", "ipam": leases}
        return self._program("bridge", peer, str(PEERS / "bridge"))

    def entry_point(self) -> Program:
        """The plugin's Python entry point."""
        return self._program("entry-point", _OURS, _executable(self.checkout, "contrail-k8s-cni"))

    def shim(self, name: str = "shim") -> Program:
        """The plugin's shim with the daemon; concurrent calls need different names."""
        return self._program(name, _OURS, _shim(self.checkout))

    def environment(self, command: str, sandbox: str, container: str, pod: str, uid: str = "") -> Mapping[str, str]:
        """Environment variables of a call; with a UID only that pod is attached."""
        named = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={pod}"
        return {
            "PATH": os.environ["PATH"],  # plugins search it for iptables
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": container,
            "CNI_NETNS": sandbox,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(PEERS),
            "CNI_ARGS": f"{named};K8S_POD_UID={uid}" if uid else named,
            "CONTRAIL_CNI_CONFIG": str(self.folder / "node.json"),
            "CONTRAIL_CNI_SOCKET": str(self.folder / "run/cni.sock"),
        }

    def pods(self, kind: str) -> Iterator[Pod]:
        """Cycles through the pods of a kind."""
        return itertools.cycle(Pod(f"{kind}-{number}") for number in range(PODS[kind]))

    def attachments(self) -> list[str]:
        """Containers with a record of an attachment, complete or not."""
        return [path.parent.name for path in self.state.glob("*/*.json")]

    def _program(self, name: str, configuration: Mapping[str, Any], command: str) -> Program:
        stdin = self.folder / f"{name}.conf"
        stdin.write_text(json.dumps(configuration))
        return Program([command], stdin, self.folder / f"{name}.out", self.folder / f"{name}.err")


@contextmanager
def bench_nodes(against: Path | None = None) -> Iterator[list[BenchNode]]:
    """Runs the node, and one of the checkout `against`; the calling thread is in their network namespace."""
    with ExitStack() as stack:
        namespace = stack.enter_context(_namespace())
        managed = [
            (checkout, stack.enter_context(_managed_folder(checkout, *_no_datapath(checkout))))
            for checkout in (ROOT, against)
            if checkout
        ]
        stack.enter_context(namespace.inside())
        yield [stack.enter_context(_daemon(namespace, checkout, folder)) for checkout, folder in managed]


@contextmanager
def datapath_nodes() -> Iterator[dict[str, BenchNode]]:
    """Runs a node of each datapath, `linux` and `none`; the calling thread is in their network namespace."""
    with ExitStack() as stack:
        namespace = stack.enter_context(_namespace())
        stack.enter_context(namespace.inside())  # the managers as well: they program the namespace in which they run
        yield {kind: stack.enter_context(_datapath_node(namespace, kind)) for kind in ("linux", "none")}


def wait_until(holds: Callable[[], bool], *, what: str) -> None:
    """Polls until the condition holds; exits the benchmark after START_TIMEOUT."""
    deadline = time.monotonic() + START_TIMEOUT
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"bench: {what}: timed out after {START_TIMEOUT:g} s")
        time.sleep(0.05)  # noqa: TID251 - set-up, not measured


@contextmanager
def _namespace() -> Iterator[Netns]:
    node = Netns("node")
    try:
        yield node
    finally:
        node.delete()


@contextmanager
def _datapath_node(namespace: Netns, kind: str) -> Iterator[BenchNode]:
    with tempfile.TemporaryDirectory(prefix="contrail-bench-") as name:
        networks = NodeNetworks(Path(name))
        directory = str(networks.folder)
        try:
            with (
                _managed_folder(ROOT, "--datapath", kind, "--netns-dir", directory) as folder,
                _daemon(namespace, ROOT, folder, {"netns-dir": directory}) as node,
            ):
                yield node
        finally:
            networks.close()


@contextmanager
def _daemon(
    namespace: Netns, checkout: Path, folder: Path, more: Mapping[str, str] = MappingProxyType({})
) -> Iterator[BenchNode]:
    with tempfile.TemporaryDirectory(prefix="contrail-bench-", dir="/dev/shm") as state:
        settings = {"agent-socket": str(folder / "data/agent.sock"), "state-dir": state, **more}
        (folder / "node.json").write_text(json.dumps(settings))
        (folder / "cnid.yaml").write_text(f"socket: {folder}/run/cni.sock\n")
        command = [_executable(checkout, "contrail-cnid"), "--config", str(folder / "cnid.yaml")]
        environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(folder / "node.json")}
        with (folder / "cnid.log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
            try:
                wait_until((folder / "run/cni.sock").exists, what="the daemon")
                yield BenchNode(namespace, checkout, folder, Path(state), process.pid)
            finally:
                process.terminate()


@contextmanager
def _managed_folder(checkout: Path, *options: str) -> Iterator[Path]:
    """Runs an embedded manager in the current network namespace, and yields its folder."""
    with tempfile.TemporaryDirectory(prefix="contrail-bench-") as name:
        folder = Path(name)
        manifests = folder / "manifests"
        manifests.mkdir()
        (manifests / "all.yaml").write_text(yaml.safe_dump_all(_manifests()))
        listen = f"127.0.0.1:{free_port()}"
        command = [_executable(checkout, "contrail-manager"), "--embedded", "--listen", listen]
        command += ["--manifests", str(manifests), "--data-dir", str(folder / "data"), *options]
        with (folder / "manager.log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                ready = sum(number for kind, number in PODS.items() if kind != "never")
                wait_until(lambda: _states(listen).count("Ready") == ready, what="the pods' lists")
                # It stores why pods wait, 40 a second, in the process that answers the plugin.
                wait_until(_is_idle(listen), what="an idle manager")
                yield folder
            finally:
                process.terminate()


def _no_datapath(checkout: Path) -> list[str]:
    """Options that keep the manager from connecting ports; one of before it could needs none."""
    usage = subprocess.check_output([_executable(checkout, "contrail-manager"), "--help"], text=True)
    return ["--datapath", "none"] if "--datapath" in usage else []


def _executable(checkout: Path, name: str) -> str:
    return str(checkout / ".venv/bin" / name)


def _shim(checkout: Path) -> str:
    return build_shim() if checkout == ROOT else str(checkout / "build/contrail-k8s-cni")


def _states(listen: str) -> list[str]:
    def get(path: str) -> Any:
        with urllib.request.urlopen(f"http://{listen}{path}", timeout=10) as answer:
            return json.load(answer)

    try:
        return [item["state"] for item in every_item(get, "/v1/pods") or ()]
    except OSError:
        return []


def _is_idle(listen: str) -> Callable[[], bool]:
    """Returns a function that tells whether all queues of the manager have been empty for `_IDLE` seconds."""
    busy = time.monotonic()

    def holds() -> bool:
        nonlocal busy
        if _queue_depth(listen):
            busy = time.monotonic()
        return time.monotonic() - busy > _IDLE

    return holds


def _queue_depth(listen: str) -> float:
    with urllib.request.urlopen(f"http://{listen}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("contrail_manager_queue_depth{"))


def _manifests() -> list[dict[str, Any]]:
    nads = [_nad(letter, 100 + number) for number, letter in enumerate("abc")]
    return [*nads, *(_pod(f"{kind}-{number}", NETWORKS[kind]) for kind in NETWORKS for number in range(PODS[kind]))]


def _nad(letter: str, octet: int) -> dict[str, Any]:
    return {
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": {
            "name": f"net-{letter}",
            "namespace": "bench",
            "annotations": {"opencontrail.org/cidr": f"10.{octet}.0.0/16"},
        },
        "spec": {"config": '{"cniVersion": "0.3.1", "type": "contrail-k8s-cni"}'},
    }


def _pod(name: str, networks: str) -> dict[str, Any]:
    annotations = {"k8s.v1.cni.cncf.io/networks": networks} if networks else {}
    metadata = {"name": name, "namespace": "bench", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}

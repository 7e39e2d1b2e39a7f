"""A node to attach pods on: a throw-away namespace, an embedded manager with its agent, and the node daemon.

The pods' lists are there before the first measurement: what is measured is the attaching, not the manager. State is on
a tmpfs, as it is under /run; what is on a disk on real nodes (the agent's ports, `host-local`'s leases) is on one here.
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
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.bench.process_timing import Program
from tests.support.free_port import free_port
from tests.support.netns import Netns
from tests.support.shim import build_shim

BIN = Path(sys.executable).parent
PEERS = Path("/usr/lib/cni")
PODS = 100  # of each kind: more calls than that attach the same ones again, in new sandboxes
NETWORKS = {"one": "", "three": "net-a,net-b", "four": "net-a,net-b,net-c", "never": "net-a,comes-never"}
PATIENCE = 60.0  # seconds

_OURS = {"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}


class Pod(NamedTuple):
    """One of the namespace `bench`; without a UID whichever has the name."""

    name: str
    uid: str = ""


@dataclass(frozen=True)
class BenchNode:
    """The node: where its things are, and how they are called."""

    namespace: Netns
    folder: Path
    state: Path
    daemon: int  # its process ID

    def bridge(self) -> Program:
        """Debian's `bridge` with `host-local`."""
        leases = {"type": "host-local", "subnet": "10.99.0.0/16", "dataDir": str(self.folder / "host-local")}
        peer = {"cniVersion": "1.0.0", "name": "bench", "type": "bridge", "bridge": "cni-bench0", "ipam": leases}
        return self._program("bridge", peer, str(PEERS / "bridge"))

    def entry_point(self) -> Program:
        """The plugin as one process of Python."""
        return self._program("entry-point", _OURS, str(BIN / "contrail-k8s-cni"))

    def shim(self, name: str = "shim") -> Program:
        """The plugin as shim and daemon; calls at the same time need different names."""
        return self._program(name, _OURS, build_shim())

    def environment(self, command: str, sandbox: str, container: str, pod: str, uid: str = "") -> Mapping[str, str]:
        """What a runtime sets for a call; with a UID only that pod is attached."""
        named = f"IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={pod}"
        return {
            "PATH": os.environ["PATH"],  # of runtimes: plugins find iptables by it
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
        """All of a kind, again and again."""
        return itertools.cycle(Pod(f"{kind}-{number}") for number in range(PODS))

    def attachments(self) -> list[str]:
        """Records of attachments, whole or begun."""
        return [path.parent.name for path in self.state.glob("*/*.json")]

    def _program(self, name: str, configuration: Mapping[str, Any], command: str) -> Program:
        stdin = self.folder / f"{name}.conf"
        stdin.write_text(json.dumps(configuration))
        return Program([command], stdin, self.folder / f"{name}.out", self.folder / f"{name}.err")


@contextmanager
def bench_node() -> Iterator[BenchNode]:
    """Runs one; the calling thread is in its namespace."""
    with (
        tempfile.TemporaryDirectory(prefix="contrail-bench-") as folder,
        tempfile.TemporaryDirectory(prefix="contrail-bench-", dir="/dev/shm") as state,
        _namespace() as namespace,
        _embedded_manager(Path(folder)),
        namespace.inside(),
        _daemon(Path(folder), Path(state)) as daemon,
    ):
        yield BenchNode(namespace, Path(folder), Path(state), daemon)


def wait_until(holds: Callable[[], bool], *, what: str) -> None:
    """Returns when it holds, for what other processes do without telling anybody; else exits the benchmark."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"bench: {what} did not come within {PATIENCE:g} s")
        time.sleep(0.05)  # noqa: TID251 - set-up, outside of what is measured


@contextmanager
def _namespace() -> Iterator[Netns]:
    node = Netns("node")
    try:
        yield node
    finally:
        node.delete()


@contextmanager
def _daemon(folder: Path, state: Path) -> Iterator[int]:
    settings = {"agent-socket": str(folder / "data/agent.sock"), "state-dir": str(state)}
    (folder / "node.json").write_text(json.dumps(settings))
    (folder / "cnid.yaml").write_text(f"socket: {folder}/run/cni.sock\n")
    command = [str(BIN / "contrail-cnid"), "--config", str(folder / "cnid.yaml")]
    environment = {**os.environ, "CONTRAIL_CNI_CONFIG": str(folder / "node.json")}
    with (folder / "cnid.log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            wait_until((folder / "run/cni.sock").exists, what="the daemon")
            yield process.pid
        finally:
            process.terminate()


@contextmanager
def _embedded_manager(folder: Path) -> Iterator[None]:
    manifests = folder / "manifests"
    manifests.mkdir()
    (manifests / "all.yaml").write_text(yaml.safe_dump_all(_manifests()))
    listen = f"127.0.0.1:{free_port()}"
    command = [str(BIN / "contrail-manager"), "--embedded", "--listen", listen]
    command += ["--manifests", str(manifests), "--data-dir", str(folder / "data")]
    with (folder / "manager.log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            ready = (len(NETWORKS) - 1) * PODS
            wait_until(lambda: _states(listen).count("Ready") == ready, what="the pods' lists")
            yield
        finally:
            process.terminate()


def _states(listen: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"http://{listen}/v1/pods", timeout=10) as answer:
            return [item["state"] for item in json.load(answer)["items"]]
    except OSError:
        return []


def _manifests() -> list[dict[str, Any]]:
    nads = [_nad(letter, 100 + number) for number, letter in enumerate("abc")]
    return [*nads, *(_pod(f"{kind}-{number}", NETWORKS[kind]) for kind in NETWORKS for number in range(PODS))]


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

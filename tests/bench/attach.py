"""ADD and DEL as whole processes: the plugin's Python entry point beside Debian's `bridge` with `host-local`.

Everything runs in one throw-away "node" namespace in turns, so that what disturbs the machine disturbs all alike. The
plugin asks a real embedded node, whose pods' lists are there before the first measurement: what is measured is the
plugin, not the manager.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.bench.spawn import Program, summary
from tests.support.netns import Netns
from tests.support.ports import free_port

BIN = Path(sys.executable).parent
PEERS = Path("/usr/lib/cni")
WARM_UP = 3


@dataclass
class Case:
    """One kind of attachment: which plugin with which configuration, and the times that were measured."""

    name: str
    program: Program
    pod: str | None  # name prefix of the pods that it attaches; None: the peer, which knows no pods
    add: list[float] = field(default_factory=list)
    delete: list[float] = field(default_factory=list)


def main(runs: int) -> dict[str, Any]:
    """Returns medians and 99th percentiles of each case, and the ratios to the peer's median."""
    with tempfile.TemporaryDirectory(prefix="contrail-bench-") as folder, _node_namespace() as node:
        work = Path(folder)
        with _embedded_node(work, runs + WARM_UP):
            cases = _cases(work)
            with node.inside():
                for number in range(-WARM_UP, runs):
                    for case in cases:
                        _attach_and_detach(case, number)
                bare = [_bare_interpreter(work).run({}) for _ in range(runs)]
    return _report(cases, bare)


def _attach_and_detach(case: Case, number: int) -> None:
    sandbox = Netns("bench")
    try:
        environment = {
            "CNI_CONTAINERID": uuid.uuid4().hex * 2,
            "CNI_NETNS": sandbox.path,
            "CNI_IFNAME": "eth0",
            "CNI_PATH": str(PEERS),
            "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME={case.pod}-{number + WARM_UP}",
            "CONTRAIL_CNI_CONFIG": str(case.program.stdin.parent / "node.json"),
        }
        added = case.program.run(environment | {"CNI_COMMAND": "ADD"})
        deleted = case.program.run(environment | {"CNI_COMMAND": "DEL"})
    finally:
        sandbox.delete()
    if number >= 0:
        case.add.append(added)
        case.delete.append(deleted)


def _cases(work: Path) -> list[Case]:
    ours = {"cniVersion": "1.0.0", "name": "contrail-k8s-cni", "type": "contrail-k8s-cni"}
    peer = {
        "cniVersion": "1.0.0",
        "name": "bench-bridge",
        "type": "bridge",
        "bridge": "cni-bench0",
        "ipam": {"type": "host-local", "subnet": "10.99.0.0/16", "dataDir": str(work / "host-local")},
    }
    (work / "node.json").write_text(
        json.dumps({"agent-socket": str(work / "data/agent.sock"), "state-dir": str(work / "state")})
    )
    plugin = str(BIN / "contrail-k8s-cni")
    return [
        Case("bridge", _program(work, "bridge", peer, str(PEERS / "bridge")), None),
        Case("contrail 1 interface", _program(work, "one", ours, plugin), "one"),
        Case("contrail 4 interfaces", _program(work, "four", ours, plugin), "four"),
    ]


def _program(work: Path, name: str, configuration: Mapping[str, Any], command: str) -> Program:
    stdin = work / f"{name}.conf"
    stdin.write_text(json.dumps(configuration))
    return Program([command], stdin, work / f"{name}.out", work / f"{name}.err")


def _bare_interpreter(work: Path) -> Program:
    return Program([sys.executable, "-I", "-S", "-c", "pass"], Path(os.devnull), work / "bare.out", work / "bare.err")


@contextmanager
def _node_namespace() -> Iterator[Netns]:
    node = Netns("node")
    try:
        yield node
    finally:
        node.delete()


@contextmanager
def _embedded_node(work: Path, pods: int) -> Iterator[None]:
    manifests = work / "manifests"
    manifests.mkdir()
    (manifests / "all.yaml").write_text(yaml.safe_dump_all(_manifests(pods)))
    listen = f"127.0.0.1:{free_port()}"
    command = [str(BIN / "contrail-manager"), "--embedded", "--listen", listen]
    command += ["--manifests", str(manifests), "--data-dir", str(work / "data"), "--log-level", "warning"]
    with subprocess.Popen(command) as process:
        try:
            _await_ready(listen, pods * 2)
            yield
        finally:
            process.terminate()


def _manifests(pods: int) -> list[dict[str, Any]]:
    nads = [_nad(letter, 100 + number) for number, letter in enumerate("abc")]
    ones = [_pod(f"one-{number}", None) for number in range(pods)]
    fours = [_pod(f"four-{number}", "net-a,net-b,net-c") for number in range(pods)]
    return [*nads, *ones, *fours]


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


def _pod(name: str, networks: str | None) -> dict[str, Any]:
    annotations = {"k8s.v1.cni.cncf.io/networks": networks} if networks else {}
    metadata = {"name": name, "namespace": "bench", "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def _await_ready(listen: str, pods: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://{listen}/v1/pods", timeout=10) as answer:
                states = [item["state"] for item in json.load(answer)["items"]]
        except OSError:
            states = []
        if len(states) == pods and set(states) == {"Ready"}:
            return
        time.sleep(0.1)  # noqa: TID251 - a benchmark's set-up, outside of what is measured
    sys.exit("bench: the embedded node was not ready within 60 s")


def _report(cases: list[Case], bare: list[float]) -> dict[str, Any]:
    report: dict[str, Any] = {"bare interpreter": summary(bare)}
    for case in cases:
        report[case.name] = {"ADD": summary(case.add), "DEL": summary(case.delete)}
    peer = report["bridge"]
    for case in cases[1:]:
        for command in ("ADD", "DEL"):
            ratio = report[case.name][command]["median_ms"] / peer[command]["median_ms"]
            report[case.name][command]["of one bridge call"] = round(ratio, 2)
    return report

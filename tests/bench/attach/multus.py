"""Four attachments by Multus, each made by `bridge`, beside four interfaces in one call.

Multus is the thin one, as a process for each call, and asks a real API server, which is in the node's namespace as it
is: for the pod and its networks, and to write the pod's status.
"""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_access
from manager.kubernetes.definition import NadDefinition
from tests.bench.attach.node import PEERS, PODS, BenchNode
from tests.bench.attach.ratios import attach_and_detach
from tests.bench.spawn import Program, summary
from tests.support.real_apiserver.server import ApiServer, serve_real_apiserver

_NETWORKS = ("br-1", "br-2", "br-3")  # and the default one
_MUST = 0.05
_GROUP = "/apis/k8s.cni.cncf.io/v1"


def measure_beside_multus(node: BenchNode, runs: int, *, multus: Path) -> dict[str, Any]:
    """Returns medians, 99th percentiles and the ratio of ours to those of the program `multus`."""
    theirs: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    with _cluster(node) as server:
        program = _program(node, server, multus)
        for number in range(-1, runs):
            both = (
                attach_and_detach(node, program, f"multus-{number % PODS}"),
                attach_and_detach(node, node.shim(), f"four-{number % PODS}"),
            )
            if number >= 0:
                theirs.append(both[0])
                ours.append(both[1])
    report: dict[str, Any] = {}
    for position, command in enumerate(("ADD", "DEL")):
        of_theirs, of_ours = summary([each[position] for each in theirs]), summary([each[position] for each in ours])
        of_ours["of Multus"] = round(of_ours["median_ms"] / of_theirs["median_ms"], 3)
        report[command] = {"Multus, 4 of bridge": of_theirs, "shim and daemon, 4 interfaces": of_ours}
    report["ADD"]["shim and daemon, 4 interfaces"]["must"] = _MUST
    return report


@contextmanager
def _cluster(node: BenchNode) -> Iterator[ApiServer]:
    """A server with the networks, and pods that ask for them."""
    with tempfile.TemporaryDirectory() as work, serve_real_apiserver(Path(work)) as server:
        asyncio.run(_define_networks(server))
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "bench"}})
        for name in _NETWORKS:
            config = json.dumps(_bridge(node, name))
            body = {"metadata": {"name": name}, "spec": {"config": config}}
            server.ask("POST", f"{_GROUP}/namespaces/bench/network-attachment-definitions", _of_kind(body))
        for number in range(PODS):
            server.ask("POST", "/api/v1/namespaces/bench/pods", _pod(f"multus-{number}"))
        yield server


async def _define_networks(server: ApiServer) -> None:
    async with connect(await load_access(kubeconfig=str(server.kubeconfig()))) as client:
        await NadDefinition(client).ensure()


def _of_kind(body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", **body}


def _pod(name: str) -> dict[str, Any]:
    annotations = {"k8s.v1.cni.cncf.io/networks": ",".join(_NETWORKS)}
    containers = [{"name": "main", "image": "none"}]
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}}


def _bridge(node: BenchNode, name: str) -> dict[str, Any]:
    subnet = f"10.{200 + int(name[-1])}.0.0/16"
    leases = {"type": "host-local", "subnet": subnet, "dataDir": str(node.folder / "host-local")}
    return {"cniVersion": "1.0.0", "name": name, "type": "bridge", "bridge": f"cni-{name}", "ipam": leases}


def _program(node: BenchNode, server: ApiServer, multus: Path) -> Program:
    configuration = {
        "cniVersion": "1.0.0",
        "name": "multus",
        "type": "multus",
        "kubeconfig": str(server.kubeconfig()),
        "binDir": str(PEERS),
        "cniDir": str(node.folder / "multus"),
        "delegates": [_bridge(node, "br-0")],
    }
    stdin = node.folder / "multus.conf"
    stdin.write_text(json.dumps(configuration))
    return Program([str(multus)], stdin, node.folder / "multus.out", node.folder / "multus.err")


def built(script: str) -> str:
    """What a script prints that builds something once: where it is."""
    return subprocess.run([f"scripts/{script}"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

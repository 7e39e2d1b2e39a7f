"""Multus installed as by its manifests: thin is a process per call, thick a shim and a daemon."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.attach.multus_cluster import DEFAULT, NODE, MultusCluster
from tests.bench.attach.node import PEERS, BenchNode, wait_until
from tests.bench.process_timing import Program

_CONFIGURATION = "net.d/00-multus.conf"
_EXAMPLE = Path(__file__).parents[3] / "deploy/multus/thick/daemon-config.json"
_OWN_RUN = """
mkdir "$0/netns"
mount --rbind /run/netns "$0/netns"
mount -t tmpfs tmpfs /run
mkdir -p /run/netns /run/secrets/kubernetes.io
mount --rbind "$0/netns" /run/netns
ln -s "$0/account" /run/secrets/kubernetes.io/serviceaccount
exec "$@"
"""
"""Gives the daemon a private /run with the service account where containers have it; the host's /run is unchanged."""


def thin(cluster: MultusCluster, binaries: Path) -> Program:
    """Multus thin, which calls the API server itself."""
    node = cluster.node
    configuration = {
        "cniVersion": "1.0.0",
        "name": "multus-cni-network",
        "type": "multus",
        "kubeconfig": str(cluster.server.kubeconfig()),
        "binDir": str(PEERS),
        "cniDir": str(node.folder / "multus"),
        "delegates": [cluster.bridge(DEFAULT)],
    }
    return _program(node, binaries / "multus", json.dumps(configuration))


@contextmanager
def thick(cluster: MultusCluster, binaries: Path) -> Iterator[Program]:
    """Multus thick; its daemon watches pods and NADs and runs until the context is left."""
    with tempfile.TemporaryDirectory(dir=cluster.node.folder) as folder:
        work = Path(folder)
        _lay_out(cluster, work)
        with _daemon(cluster, binaries / "multus-daemon", work):
            yield _program(cluster.node, binaries / "multus-shim", (work / _CONFIGURATION).read_text())


@contextmanager
def _daemon(cluster: MultusCluster, binary: Path, work: Path) -> Iterator[None]:
    propagated = ("unshare", "--mount", "--propagation", "slave")  # sandboxes are created after the daemon started
    command = [*propagated, "sh", "-euc", _OWN_RUN, str(work), str(binary), f"--config={work}/daemon-config.json"]
    host, _, port = cluster.server.url.removeprefix("https://").partition(":")
    account = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "MULTUS_NODE_NAME": NODE}
    environment = {"PATH": os.environ["PATH"], **account}
    paths = (work / "run/multus.sock", work / _CONFIGURATION)
    with (work / "log").open("w") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            wait_until(lambda: all(path.exists() for path in paths), what="Multus's daemon")
            yield
        finally:
            process.terminate()


def _lay_out(cluster: MultusCluster, work: Path) -> None:
    """Writes the cluster's default network, the daemon's configuration and its service account."""
    (work / "net.d").mkdir(parents=True)
    (work / "net.d/10-bridge.conf").write_text(json.dumps(cluster.bridge(DEFAULT)))
    (work / "daemon-config.json").write_text(json.dumps(_daemon_configuration(work)))
    (work / "account").mkdir()
    (work / "account/ca.crt").write_bytes(cluster.server.authority.read_bytes())
    kubeconfig = json.loads(cluster.server.kubeconfig().read_text())
    (work / "account/token").write_text(kubeconfig["users"][0]["user"]["token"])


def _daemon_configuration(work: Path) -> Mapping[str, Any]:
    """The example configuration with private folders."""
    configurations = dict.fromkeys(("cniConfigDir", "multusAutoconfigDir"), str(work / "net.d"))
    sockets = dict.fromkeys(("socketDir", "daemonSocketDir"), str(work / "run"))
    other = {"cniDir": str(work / "kept"), "binDir": str(PEERS)}
    return {**json.loads(_EXAMPLE.read_text()), **configurations, **sockets, **other, "chrootDir": "/"}


def _program(node: BenchNode, command: Path, configuration: str) -> Program:
    name = command.name
    stdin = node.folder / f"{name}.conf"
    stdin.write_text(configuration)
    return Program([str(command)], stdin, node.folder / f"{name}.out", node.folder / f"{name}.err")

"""The cluster as `contrailctl check connectivity` sees it: with a pod of one network on each node."""

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e.across_nodes.cluster import NAMESPACE, Cluster
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import BINARIES
from tests.support.netns import Netns

NETWORK = "blue"
BLUE = f"default-domain:k8s-{NAMESPACE}:k8s-{NETWORK}-pod-network"
"""Name of the network."""

_TIMEOUT = 180.0

_KUBECTL = """#!/bin/sh
# kubectl --kubeconfig FILE exec --namespace NAMESPACE POD --container cnid -- contrailctl ARGUMENTS
[ "$1 $3 $4 $5 $7 $8 $9" = "--kubeconfig exec --namespace contrail --container cnid --" ] || exit 64
node=${{6#pod-}}
shift 10
set -- $(echo "$@" | sed 's|--config /etc/contrail-node/cnid.yaml||')
exec {commands}/$node "$@"
"""

Findings = set[tuple[str, str, str, str]]


class Pod(NamedTuple):
    """An attached pod: its MAC, addresses and host end in the network, and those at index 0."""

    node: Node
    mac: str
    addresses: tuple[str, ...]
    host_end: str
    index_0: tuple[str, ...]
    host_end_0: str


class CheckedCluster:
    """The cluster with a pod of the network on each node."""

    def __init__(self, cluster: Cluster, pods: list[Pod], vni: int, commands: Path) -> None:
        self.cluster = cluster
        self.pods = pods
        self.vni = vni
        self._commands = commands
        self._kubeconfig = cluster.server.kubeconfig()

    def found(self, *options: str) -> Findings:
        """Runs the check; returns node, network, fault and object of what it finds."""
        ended = self.run("--output", "json", *options)
        assert ended.returncode in (0, 1), ended.stderr
        document = json.loads(ended.stdout)
        findings = document["findings"]
        assert (ended.returncode == 1) == bool(findings)
        assert document["nodes"] == [pod.node.name for pod in self.pods]
        assert all(each["advice"] for each in findings)
        return {(each["node"], each["network"], each["fault"], each["what"]) for each in findings}

    def run(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Runs the command as an operator does who reaches nodes by a command of their own."""
        return self._run("--node-command", f"{self._commands}/{{node}}", *options)

    def run_by_kubectl(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Runs the command with a `kubectl` whose pods have the names of their nodes with `pod-` before."""
        program = self._commands / "kubectl"
        program.write_text(_KUBECTL.format(commands=self._commands))
        program.chmod(0o755)
        return self._run(*options)

    def _run(self, *options: str) -> "subprocess.CompletedProcess[str]":
        """Runs the command, which finds programs in the folder of commands first."""
        command = [str(BINARIES / "contrailctl"), "check", "connectivity", "--kubeconfig", str(self._kubeconfig)]
        environment = {**os.environ, "PATH": f"{self._commands}:{os.environ['PATH']}"}
        return subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, timeout=_TIMEOUT, env=environment
        )

    def within(self, *command: str) -> str:
        """Runs a command in the namespace of the network on the first node."""
        return self.pods[0].node.networks.run(self.vni, *command)

    def on_node(self, *command: str) -> None:
        """Runs a command in the first node's own namespace."""
        ended = self.pods[0].node.namespace.run(*command)
        assert ended.returncode == 0, ended.stderr


@contextmanager
def checked_cluster(cluster: Cluster, commands: Path) -> Iterator[CheckedCluster]:
    """Attaches the pods; `commands` is a folder for programs that run contrailctl on nodes."""
    cluster.add_nad(NETWORK, cidr="10.7.0.0/16,fd07::/64")
    with ExitStack() as stack:
        for node in cluster.nodes:
            stack.enter_context(_attached(cluster, node))
            _write_command(commands / node.name, node)
        found = cluster.interfaces()
        pods = [_pod(node, found[_name(node)]) for node in cluster.nodes]
        yield CheckedCluster(cluster, pods, found[_name(cluster.nodes[0])][1]["vni"], commands)


@contextmanager
def _attached(cluster: Cluster, node: Node) -> Iterator[None]:
    cluster.add_pod(_name(node), node, networks=NETWORK)
    sandbox = Netns("pod")
    try:
        wait_until(lambda: "interfaces" in node.add(_name(node), sandbox), what="attached")
        yield
    finally:
        sandbox.delete()


def _name(node: Node) -> str:
    return f"on-{node.name}"


def _pod(node: Node, interfaces: list[dict[str, Any]]) -> Pod:
    first, second = ([each["address"] for each in one["addresses"]] for one in interfaces)
    (host_end,) = [each for each in node.networks.ports(interfaces[1]["vni"]) if each.startswith("tap")]
    own_links = json.loads(node.namespace.run("ip", "-json", "link").stdout)
    (host_end_0,) = [each["ifname"] for each in own_links if each["ifname"].startswith("tap")]
    return Pod(node, interfaces[1]["mac"], tuple(second), host_end, tuple(first), host_end_0)


def _write_command(file: Path, node: Node) -> None:
    """Writes a program that runs contrailctl on a node."""
    own = f"--net={node.namespace.path}"
    variable = f"CONTRAIL_CNI_CONFIG={node.daemon.node_file}"
    file.write_text(f'#!/bin/sh\nexec nsenter {own} -- env {variable} {BINARIES / "contrailctl"} "$@"\n')
    file.chmod(file.stat().st_mode | stat.S_IXUSR)

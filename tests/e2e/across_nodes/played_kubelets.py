"""Kubelets of the nodes, for the temporary pods of the live check: with real interfaces and processes.

A pod gets a network namespace, its networks by ADD, and its command as a process there. What `kubectl exec` does in a
pod, `KUBECTL` does in its network namespace.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.node import Node
from tests.support.cluster_processes import BINARIES
from tests.support.netns import Netns
from tests.support.temporary_pods import NamespaceController, Object, PlayedKubelet, playing

KUBECTL = """#!/bin/sh
# kubectl --kubeconfig FILE exec --stdin --namespace NAMESPACE POD --container check -- contrailctl ARGUMENTS
[ "$1 $3 $4 $5 $8 $9" = "--kubeconfig exec --stdin --namespace --container check" ] || exit 64
network=$(cat {pods}/$7) || exit 65
shift 10
exec nsenter --net=$network -- {binaries}/"$@"
"""

_END = 60.0  # seconds


class _Pods:
    """Temporary pods of one node; files that name their network namespaces are in `folder`."""

    def __init__(self, node: Node, folder: Path) -> None:
        self._node = node
        self._folder = folder
        self._sandboxes: dict[str, Netns] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, pod: Object) -> bool:
        """Attaches the pod and starts its command; False if ADD fails."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        if name not in self._sandboxes:
            self._sandboxes[name] = Netns("pod")
        sandbox = self._sandboxes[name]
        if "interfaces" not in self._node.add(name, sandbox, namespace=namespace):
            return False
        (sysctl,) = pod["spec"]["securityContext"]["sysctls"]
        assert sandbox.run("sysctl", "-qw", f"{sysctl['name']}=0 0").returncode == 0  # root runs the command here
        (container,) = pod["spec"]["containers"]
        program, *arguments = container["command"]
        command = ["nsenter", f"--net={sandbox.path}", "--", str(BINARIES / program), *arguments]
        self._processes[name] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        (self._folder / name).write_text(sandbox.path)
        return True

    def end(self, pod: Object) -> None:
        """Ends the command and detaches the pod."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        if (process := self._processes.pop(name, None)) is not None:
            process.terminate()
            process.wait(_END)
        if (sandbox := self._sandboxes.pop(name, None)) is not None:
            self._node.delete(name, sandbox, namespace=namespace)
            sandbox.delete()

    def close(self) -> None:
        """Removes what is left."""
        for process in self._processes.values():
            process.kill()
            process.wait(_END)
        for sandbox in self._sandboxes.values():
            sandbox.delete()


@contextmanager
def played_kubelets(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Plays kubelets of all nodes, with a `kubectl` in `folder`."""
    names = folder / "pods"
    names.mkdir()
    program = folder / "kubectl"
    program.write_text(KUBECTL.format(pods=names, binaries=BINARIES))
    program.chmod(0o755)
    with ExitStack() as stack:
        kubelets = []
        for node in cluster.nodes:
            pods = _Pods(node, names)
            stack.callback(pods.close)
            kubelets.append(PlayedKubelet(cluster.server, node.name, pods.start, pods.end))
        stack.enter_context(playing(*kubelets, NamespaceController(cluster.server)))
        yield

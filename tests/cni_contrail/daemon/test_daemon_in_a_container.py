"""The daemon in a container without access to processes and /run/netns of the host, on a node with the shim and without
Python."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cni_contrail.conftest import until
from tests.support.netns import Netns
from tests.support.plugin import Outcome, Plugin, PodSandbox
from tests.support.plugin_callers import await_listener, shim
from tests.support.scripted_agents import ScriptedAgent, make_vmis

CONTAINER = """
mount --make-rprivate /
umount -l -R /run/netns
mount -t tmpfs none /run
exec "$@"
"""
NODE = """
mount --make-rprivate /
mount --rbind /run/netns "$1/run/netns"
mount --bind "$2" "$1/run/contrail"
exec chroot "$1" /contrail-k8s-cni
"""


class NodeWithoutPython:
    """A root directory that holds the shim, sandboxes and the daemon's socket, and nothing else."""

    def __init__(self, plugin: Plugin, folder: Path) -> None:
        self.plugin = plugin
        self.sockets = folder / "sockets"
        self.file = folder / "cnid.yaml"
        self._root = folder / "root"
        for name in ("run/netns", "run/contrail"):
            (self._root / name).mkdir(parents=True)
        shutil.copy(shim(), self._root)
        settings = {**plugin.settings, "socket": f"{self.sockets}/cni.sock"}
        self.file.write_text(json.dumps(settings))

    @contextlib.contextmanager
    def daemon(self) -> Iterator[int]:
        """The daemon in namespaces of its own; killed at the end."""
        command = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-ec",
            CONTAINER,
            "sh",
        ]
        cnid = [str(Path(sys.executable).parent / "contrail-cnid"), "--config", str(self.file)]
        with self.plugin.node.inside(), subprocess.Popen([*command, *cnid], stderr=subprocess.PIPE) as process:
            try:
                await_listener(f"{self.sockets}/cni.sock")
                yield process.pid
            finally:
                process.kill()

    def call(self, command: str, pod: PodSandbox, **config: Any) -> Outcome:
        """Runs a call as the runtime on that node does."""
        environment = {**os.environ, **self.plugin.environment(command, pod)}
        done = self.plugin.node.run(
            *["unshare", "--mount", "sh", "-ec", NODE, "sh", str(self._root), str(self.sockets)],
            env=environment,
            input=json.dumps(self.plugin.config(version="1.1.0", **config)),
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def bare(plugin: Plugin) -> Iterator[NodeWithoutPython]:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        yield NodeWithoutPython(plugin, Path(folder))


@pytest.fixture
def make_pod(agent: ScriptedAgent, make_netns: Callable[[str], Netns]) -> Callable[[str], PodSandbox]:
    def make_pod(name: str) -> PodSandbox:
        pod = PodSandbox(make_netns("pod").path, name=name)
        agent.serve(pod.vm_name, make_vmis(3, uid=pod.uid, subnet=len(agent.virtual_machines) + 1))
        return pod

    return make_pod


MakePod = Callable[[str], PodSandbox]


def test_a_daemon_without_access_to_the_host_serves_every_command(
    bare: NodeWithoutPython, agent: ScriptedAgent, plugin: Plugin, make_pod: MakePod
) -> None:
    with bare.daemon() as unshared:
        (inside,) = Path(f"/proc/{unshared}/task/{unshared}/children").read_text().split()
        assert not os.path.exists(f"/proc/{inside}/root/run/netns")
        assert not os.path.samefile(f"/proc/{inside}/ns/pid", "/proc/self/ns/pid")
        pod = make_pod("web")
        result = bare.call("ADD", pod).succeeded().document
        assert result["interfaces"][1]["sandbox"] == pod.netns
        assert len(plugin.node.links()) == 3
        bare.call("CHECK", pod, prevResult=result).succeeded()
        bare.call("STATUS", pod).succeeded()
        bare.call("DEL", pod).succeeded()
        assert (plugin.node.links(), plugin.files(), agent.ports) == ([], [], {})
        assert "No such file" in bare.call("ADD", PodSandbox("/run/netns/not-there")).failed(4)


def test_orphaned_attachments_are_swept_without_a_call(
    bare: NodeWithoutPython, agent: ScriptedAgent, plugin: Plugin, make_pod: MakePod
) -> None:
    gone, alive = make_pod("gone"), make_pod("alive")
    with bare.daemon():
        bare.call("ADD", gone).succeeded()
        bare.call("ADD", alive).succeeded()
    subprocess.run(["ip", "netns", "del", os.path.basename(gone.netns)], check=True)
    until(lambda: len(plugin.node.links()) == 3)
    with bare.daemon():
        until(lambda: not plugin.record_path(gone).exists())
        until(lambda: set(agent.owners().values()) == {alive.container})
        assert plugin.record_path(alive).exists()


def test_without_a_daemon_calls_fail_with_code_11(bare: NodeWithoutPython, make_pod: MakePod) -> None:
    pod = make_pod("web")
    bare.sockets.mkdir()
    bare.call("ADD", pod).failed(11)
    bare.call("STATUS", pod).failed(50)
    bare.call("VERSION", pod).succeeded()

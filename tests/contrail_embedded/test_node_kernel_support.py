"""An embedded node connects its pods by default, and does not start where it could not."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import without_netfilter
from tests.support.embedded_process import EmbeddedProcess
from tests.support.manifests import nad, pod, write
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks

ENVIRONMENTS = {
    "without nf_tables": ((sys.executable, without_netfilter.__file__), "kernel module nf_tables is missing: "),
    "without NET_ADMIN": (("setpriv", "--bounding-set=-net_admin", "--inh-caps=-all"), "capability CAP_NET_ADMIN is"),
    "without SYS_ADMIN": (("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"), "capability CAP_SYS_ADMIN is"),
    "in a user namespace": (("unshare", "--user", "--map-root-user"), "capability CAP_NET_ADMIN is missing in the "),
}


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[NodeNetworks]:
    found = NodeNetworks(tmp_path / "networks")
    yield found
    found.close()


@pytest.fixture
def inside(make_netns: Callable[[str], Netns]) -> Iterator[None]:
    """The node is in a network namespace of its own."""
    with make_netns("node").inside():
        yield


@pytest.fixture
def node(tmp_path: Path, networks: NodeNetworks, inside: None) -> Iterator[EmbeddedProcess]:
    """A node whose datapath is not given."""
    node = EmbeddedProcess(tmp_path, options=("--netns-dir", str(networks.folder)))
    at = node.command.index("--datapath")
    node.command = [*node.command[:at], *node.command[at + 2 :]]
    yield node
    if node.process is not None:
        node.kill()


def test_the_kernel_connects_pods_by_default(node: EmbeddedProcess, networks: NodeNetworks) -> None:
    assert _serve_pod(node) == (True, True)
    assert node.get("/readyz")["datapath"] == "linux"
    node.wait_until(lambda: bool(networks.namespaces.existing()), what="programmed")
    assert node.process is not None
    assert node.get("/datapath/report")["follower"].startswith(f"contrail-manager-{node.process.pid}-")
    assert node.stop() == 0


def test_without_a_datapath_nothing_is_programmed(node: EmbeddedProcess, networks: NodeNetworks) -> None:
    node.command = [*node.command, "--datapath", "none"]
    assert _serve_pod(node) == (False, False)
    assert node.get("/readyz")["datapath"] == "none"
    assert node.stop() == 0
    assert networks.namespaces.existing() == set()


@pytest.mark.parametrize(("environment", "culprit"), ENVIRONMENTS.values(), ids=ENVIRONMENTS)
def test_a_node_that_cannot_connect_pods_does_not_start(
    node: EmbeddedProcess, environment: tuple[str, ...], culprit: str
) -> None:
    ended = subprocess.run([*environment, *node.command], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"contrail-manager: --datapath linux: {culprit}")
    assert line.endswith("; --datapath none starts without traffic")
    assert not os.path.exists(node.data), "rejected before anything was created"


@pytest.mark.parametrize("environment", [each for each, _ in ENVIRONMENTS.values()], ids=ENVIRONMENTS)
def test_without_a_datapath_it_starts_there_too(node: EmbeddedProcess, environment: tuple[str, ...]) -> None:
    node.command = [*environment, *node.command, "--datapath", "none"]
    node.start()
    assert node.get("/readyz")["datapath"] == "none"
    assert node.stop() == 0


def _serve_pod(node: EmbeddedProcess) -> tuple[bool, bool]:
    """Starts the node with a pod; returns whether index 0 is routed, and whether its network has a namespace."""
    write(node.manifests / "all.yaml", nad("blue", cidr="10.1.0.0/24"), pod("web", networks="blue"))
    node.start()
    node.wait_until(lambda: bool(node.get("/vm-cfg/k8s__demo__web")), what="served")
    first, second = node.get("/vm-cfg/k8s__demo__web")
    return "routed" in first, "network-namespace" in second

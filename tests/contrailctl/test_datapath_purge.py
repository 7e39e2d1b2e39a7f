"""`contrailctl datapath purge`: a process on a node, in namespaces of its own, with real networks and routed ports."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.link.plan import Address
from tests.cni_contrail.datapath.routed.conftest import RoutedNode
from tests.support.contrailctl_command import Run
from tests.support.echo import reaches
from tests.support.node_networks import NodeNetworks

BLUE, RED = 4_000_021, 4_000_022
CONTRAILCTL = (sys.executable, "-c", "import sys; from contrailctl.cli import main; sys.exit(main())")
KEPT = "--force removes it, and traffic of these ports ends"
Purge = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def node() -> Iterator[RoutedNode]:
    with ExitStack() as stack:
        yield RoutedNode(stack)


@pytest.fixture
def networks(tmp_path: Path, node: RoutedNode) -> Iterator[NodeNetworks]:
    """The networks blue, which has no port, and red, which has the port `tap1`."""
    found = NodeNetworks(tmp_path / "networks")
    gateways = (Address("10.7.0.1", 24),)
    NodeReconciler(found.namespaces).reconcile([Network(vni, 1450, gateways, ()) for vni in (BLUE, RED)])
    found.run(RED, "ip", "link", "add", "tap1", "type", "veth", "peer", "name", "eth1", "netns", node.namespace.name)
    yield found
    found.close()


@pytest.fixture
def purge(node: RoutedNode, networks: NodeNetworks) -> Purge:
    """Runs the command on the node."""

    def run(*options: str) -> "subprocess.CompletedProcess[str]":
        return node.namespace.run(*CONTRAILCTL, "datapath", "purge", "--netns-dir", str(networks.folder), *options)

    return run


def test_networks_without_ports_go_and_those_with_ports_stay(purge: Purge, networks: NodeNetworks) -> None:
    ended = purge()
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines() == [
        f"removed network namespace contrail-{BLUE}",
        f"kept network namespace contrail-{RED} with 1 port (tap1): {KEPT}",
    ]
    assert networks.namespaces.existing() == {RED}
    assert "10.7.0.1/24" in networks.run(RED, "ip", "address", "show", "dev", "br0")


def test_force_removes_networks_with_ports(purge: Purge, networks: NodeNetworks) -> None:
    ended = purge("--force")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        f"removed network namespace contrail-{BLUE}",
        f"removed network namespace contrail-{RED} with 1 port (tap1)",
    ]
    assert os.listdir(networks.folder) == []
    again = purge("--force")
    assert (again.returncode, again.stdout) == (0, "nothing to remove\n")


def test_routed_ports_stay_connected_unless_forced(purge: Purge, node: RoutedNode) -> None:
    first, second = node.add_pod(2), node.add_pod(3)
    node.reconcile()
    before = node.objects()
    ended = purge()
    assert ended.returncode == 1
    assert "kept filter, routes and settings of index 0 with 2 ports (tap2, tap3)" in ended.stdout
    assert node.objects() == before
    assert reaches(first.namespace, second.ipv4)
    ended = purge("--force")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("removed filter, routes and settings of index 0 with 2 ports (tap2, tap3)\n")
    assert node.run("nft", "list", "ruleset") == ""
    assert "tap" not in node.run("ip", "route") + node.run("ip", "-6", "route")
    assert not reaches(first.namespace, second.ipv4, timeout=0.5)


def test_a_table_whose_ports_are_gone_is_removed_without_force(purge: Purge, node: RoutedNode) -> None:
    pod = node.add_pod(2)
    node.reconcile()
    node.remove_pod(pod)
    assert "removed filter, routes and settings of index 0\n" in purge().stdout
    assert node.run("nft", "list", "ruleset") == ""


def test_objects_of_other_programs_stay(purge: Purge, node: RoutedNode, networks: NodeNetworks) -> None:
    node.run("nft", "add", "table", "inet", "others")
    node.run("ip", "route", "add", "10.8.0.99/32", "dev", "uplink")
    (networks.folder / "others").touch()
    networks.run(RED, "ip", "link", "delete", "tap1")
    before = node.objects()
    assert purge("--force").returncode == 0
    assert node.objects() == before
    assert os.listdir(networks.folder) == ["others"]


def test_a_network_that_cannot_be_removed_does_not_stop_the_others(purge: Purge, networks: NodeNetworks) -> None:
    with locked_network(networks.namespaces, BLUE):
        ended = purge("--force")
    assert ended.returncode == 1
    assert f"failed to remove network namespace contrail-{BLUE}: " in ended.stdout
    assert "locked by another process" in ended.stdout
    assert networks.namespaces.existing() == {BLUE}


def test_json_has_what_was_removed_and_kept(purge: Purge) -> None:
    document = json.loads(purge("-o", "json").stdout)
    assert document == {
        "removed": [{"vni": BLUE, "ports": []}],
        "kept": [{"vni": RED, "ports": ["tap1"]}],
        "problems": [],
    }


def test_a_node_without_networks_has_nothing_to_remove(node: RoutedNode, tmp_path: Path) -> None:
    ended = node.namespace.run(*CONTRAILCTL, "datapath", "purge", "--netns-dir", str(tmp_path / "missing"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "nothing to remove\n", "")


def test_without_root_nothing_is_done(networks: NodeNetworks) -> None:
    # Root's privileges are dropped after the imports: others may not read the checkout.
    code = (
        "import os, sys; from contrailctl.cli import main; os.setresuid(65534, 65534, 65534);"
        "sys.exit(main(['datapath', 'purge', '--force', '--netns-dir', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", code, str(networks.folder)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "contrailctl: datapath purge: must run as root, on the node\n"
    assert networks.namespaces.existing() == {BLUE, RED}


async def test_a_directory_that_is_a_file_is_a_usage_error(contrailctl: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = await contrailctl("datapath", "purge", "--netns-dir", str(tmp_path / "file"))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"contrailctl: --netns-dir: {tmp_path}/file is not a directory\n"

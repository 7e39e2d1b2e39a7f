"""`contrailctl check connectivity --live` on three nodes: temporary pods whose packets take the paths of all pods.

Networks have equal subnets, and one reaches outside. The outside is the fabric's own namespace; the address of the
API server's Service leads there, too, by a kube-proxy on each node.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from contrailctl.check.live.run import RUN_LABEL
from contrailctl.check.live.wire import PORT
from tests.e2e.across_nodes.checked_cluster import BLUE, CheckedCluster, checked_cluster
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.kube_proxies import kube_proxies
from tests.e2e.across_nodes.played_kubelets import played_kubelets
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import BINARIES

_OUTSIDE = ("192.0.2.254", f"[2001:db8::fe]:{PORT}")
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

pytestmark = pytest.mark.timeout(240)  # a dozen pods come and go, and what must not answer is waited for


@pytest.fixture(scope="module")
def checked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedCluster]:
    folder = tmp_path_factory.mktemp("nodes")
    cluster.add_nad("red", cidr="10.7.0.0/16,fd07::/64")
    cluster.add_nad("nat", cidr="10.9.0.0/16,fd09::/64", **{"opencontrail.org/ip_fabric_snat": "true"})
    with ExitStack() as stack:
        stack.enter_context(_outside(cluster))
        stack.enter_context(kube_proxies(cluster, folder))
        found = stack.enter_context(checked_cluster(cluster, folder))
        wait_until(lambda: found.found("--no-probes") == set(), what="reported by all nodes")
        stack.enter_context(played_kubelets(cluster, folder))
        yield found


@contextmanager
def _outside(cluster: Cluster) -> Iterator[None]:
    """A host on the fabric that answers, also as what is behind the API server's Service."""
    cluster.fabric.ip("address", "add", "192.0.2.254/24", "dev", "fabric")
    cluster.fabric.ip("address", "add", "2001:db8::fe/64", "dev", "fabric", "nodad")
    metadata = {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}}
    endpoints = [{"addresses": ["192.0.2.254"], "conditions": {"ready": True}}]
    ports = [{"name": "https", "port": PORT, "protocol": "TCP"}]
    slice_ = {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": ports}
    cluster.server.ask("POST", _SLICES, slice_)
    command = [
        "nsenter",
        f"--net={cluster.fabric.path}",
        "--",
        str(BINARIES / "contrailctl"),
        "check",
        "respond",
        "out",
    ]
    with subprocess.Popen(command) as server:
        try:
            yield
        finally:
            server.terminate()


def _live(checked: CheckedCluster, *options: str) -> dict[str, Any]:
    """Runs the live check; returns its output."""
    outside = [word for each in _OUTSIDE for word in ("--outside", each)]
    ended = checked.run("--live", "--image", "none.example/none", *outside, "--output", "json", *options)
    assert ended.returncode in (0, 1), ended.stderr
    document: dict[str, Any] = json.loads(ended.stdout)
    assert (ended.returncode == 1) == bool(document["findings"])
    return document


def _found(document: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {(each["node"], each["network"], each["fault"], each["what"]) for each in document["findings"]}


def test_a_cluster_that_works_has_no_finding_and_no_pod_is_left(checked: CheckedCluster) -> None:
    document = _live(checked)
    assert (document["findings"], document["notes"]) == ([], [])
    assert document["probes"] > 12 * 11
    _await_nothing_left(checked)


def test_packets_of_one_network_that_the_fabric_loses_are_found_and_nothing_else(checked: CheckedCluster) -> None:
    with _lost_to_second_node(checked):
        document = _live(checked)
    lost = {
        ("node-1", BLUE, "unreached", "no answer from pods on node-2 over IPv4 and IPv6"),
        ("node-2", BLUE, "unreached", "no answer from pods on node-1, node-3 over IPv4 and IPv6"),
        ("node-3", BLUE, "unreached", "no answer from pods on node-2 over IPv4 and IPv6"),
    }
    assert _found(document) == lost
    assert all(each["advice"] for each in document["findings"])
    _await_nothing_left(checked)


def test_one_network_on_two_nodes(checked: CheckedCluster) -> None:
    document = _live(checked, "--network", "demo/red", "--node", "node-1", "--node", "node-3", "--no-probes")
    assert (document["findings"], document["nodes"]) == ([], ["node-1", "node-3"])


@contextmanager
def _lost_to_second_node(checked: CheckedCluster) -> Iterator[None]:
    """Lets the fabric drop the tunnel packets of one network to the second node, which no other check can see."""
    fabric = checked.cluster.fabric
    vni = f"udp dport 4789 @th,96,24 {checked.vni}"  # behind the headers of UDP, and flags of VXLAN
    rule = f'oifname "node2" {vni} drop;'
    rules = f"table bridge lossy {{ chain forward {{ type filter hook forward priority 0; {rule} }}; }}"
    made = fabric.run("nft", rules)
    assert made.returncode == 0, made.stderr
    try:
        yield
    finally:
        assert fabric.run("nft", "delete table bridge lossy").returncode == 0


def _await_nothing_left(checked: CheckedCluster) -> None:
    """The namespace goes a moment after the command has ended, as its deletion is the controller's."""
    server = checked.cluster.server
    query = f"?labelSelector={RUN_LABEL}"
    assert server.ask("GET", f"/api/v1/pods{query}")["items"] == []
    wait_until(lambda: server.ask("GET", f"/api/v1/namespaces{query}")["items"] == [], what="gone")

"""`contrailctl check connectivity` by kubectl, as operators run it: in the pods of the manifests, and with its own."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from contrailctl.check.live.run import RUN_LABEL
from tests.e2e.kubelet.cluster import NAMESPACE, TIMEOUT, Cluster
from tests.e2e.kubelet.fabric import CONTROL_PLANE
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import BINARIES

_BLUE = f"default-domain:k8s-{NAMESPACE}:k8s-blue-pod-network"
_LIVE = ("--live", "--outside", CONTROL_PLANE)
_SECONDS = 180.0
_NO_IMAGE = "127.0.0.1:1/none"  # of a registry that rejects connections
_INTERRUPTED = 130


@pytest.fixture(scope="module", autouse=True)
def _nodes_that_are_used(cluster: Cluster) -> Iterator[None]:
    """Pods on both nodes, which permit echo requests as nodes with systemd do."""
    for node in cluster.nodes:
        node.host.run("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647")
    cluster.apply("web")
    cluster("rollout", "status", "deployment/web", TIMEOUT)
    wait_until(lambda: _found(_checked(cluster)) == set(), what="without problems")
    yield
    cluster.delete("web")


def test_a_cluster_that_works_has_no_finding(cluster: Cluster) -> None:
    document = _checked(cluster)
    assert document["nodes"] == ["node-1", "node-2"]
    assert (document["findings"], document["notes"]) == ([], [])


def test_long_packets_that_a_node_does_not_receive_are_found_and_nothing_else(cluster: Cluster) -> None:
    first, second = cluster.nodes
    with _dropped(cluster, "input", "ip protocol icmp ip length > 1400"):  # pods have 1430, or more if it was measured
        found = _checked(cluster)["findings"]
    lost = [(first.name, "lost", second.address), (second.name, "lost", first.address)]
    assert sorted((each["node"], each["fault"], each["peer"]) for each in found) == lost


def test_temporary_pods_reach_each_other_and_leave_nothing(cluster: Cluster) -> None:
    document = _checked(cluster, *_LIVE)
    assert (document["findings"], document["notes"]) == ([], [])
    assert document["probes"] > 0
    _await_nothing_left(cluster)


def test_packets_of_one_network_that_a_node_does_not_send_are_found_and_nothing_else(cluster: Cluster) -> None:
    with _dropped(cluster, "output", f"udp dport 4789 @th,96,24 {_vni(cluster)}"):  # behind UDP and flags of VXLAN
        document = _checked(cluster, *_LIVE)
    assert _found(document) == {
        ("node-1", _BLUE, "unreached", "no answer from pods on node-2 over IPv4 and IPv6"),
        ("node-2", _BLUE, "unreached", "no answer from pods on node-1 over IPv4 and IPv6"),
    }
    _await_nothing_left(cluster)


def test_temporary_pods_that_do_not_start_are_found_with_the_reason(cluster: Cluster) -> None:
    document = _checked(cluster, *_LIVE, "--image", _NO_IMAGE, "--network", "demo/blue", "--timeout", "20")
    findings = document["findings"]
    expected = {(node.name, network, "unready") for node in cluster.nodes for network in ("index 0", _BLUE)}
    assert {(each["node"], each["network"], each["fault"]) for each in findings} == expected
    assert [each["found"] for each in findings if "ImagePull" not in each["found"]] == []
    _await_nothing_left(cluster)


def test_an_interrupted_check_leaves_nothing(cluster: Cluster) -> None:
    with _started(cluster, *_LIVE) as check:
        wait_until(lambda: _live_objects(cluster, "pods") != [], what="with temporary pods")
        check.send_signal(signal.SIGINT)
        assert check.wait(_SECONDS) == _INTERRUPTED
    _await_nothing_left(cluster)


def _checked(cluster: Cluster, *options: str) -> dict[str, Any]:
    """Runs the check; returns its output."""
    with _started(cluster, *options) as check:
        output, errors = check.communicate(timeout=_SECONDS)
    assert check.returncode in (0, 1), errors
    document: dict[str, Any] = json.loads(output)
    assert (check.returncode == 1) == bool(document["findings"])
    return document


def _started(cluster: Cluster, *options: str) -> "subprocess.Popen[str]":
    command = (str(BINARIES / "contrailctl"), "check", "connectivity", "--output", "json", *options)
    return cluster.kubectl.start(*command)


def _found(document: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    return {(each["node"], each["network"], each["fault"], each["what"]) for each in document["findings"]}


def _vni(cluster: Cluster) -> int:
    """Number of the network `blue`."""
    items = json.loads(cluster.kubectl("get", "virtualnetworks", "-o", "json"))["items"]
    (vni,) = [item["spec"]["vni"] for item in items if item["spec"].get("nad") == f"{NAMESPACE}/blue"]
    return int(vni)


@contextmanager
def _dropped(cluster: Cluster, hook: str, packets: str) -> Iterator[None]:
    """Lets the second node drop packets, on their way in or out."""
    node = cluster.nodes[1].host.net
    chain = f"chain {hook} {{ type filter hook {hook} priority -400; {packets} drop; }}"
    made = node.run("nft", f"table inet lossy {{ {chain}; }}")
    assert made.returncode == 0, made.stderr
    try:
        yield
    finally:
        assert node.run("nft", "delete table inet lossy").returncode == 0


def _live_objects(cluster: Cluster, kind: str) -> list[str]:
    """Names of the objects of live checks."""
    return cluster.kubectl("get", kind, "--all-namespaces", "--selector", RUN_LABEL, "--output", "name").split()


def _await_nothing_left(cluster: Cluster) -> None:
    """Pods are gone; their namespace goes a moment later, as its deletion is the controller's."""
    assert _live_objects(cluster, "pods") == []
    wait_until(lambda: _live_objects(cluster, "namespaces") == [], what="gone")

"""`contrailctl check connectivity` on three nodes: it finds each fault that is injected by hand, and nothing else.

A running daemon repairs the kernel at once. So the daemons are stopped while kernels are damaged, which the check finds
as well, and repair everything afterwards. Faults of the store need a manager that does not repair them meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from agent_api.datapath.follower_lease import LEASE_SECONDS
from tests.e2e.across_nodes.checked_cluster import BLUE, CheckedCluster, Findings, checked_cluster
from tests.e2e.across_nodes.cluster import Cluster
from tests.e2e.across_nodes.kernel_faults import KERNEL_FAULTS
from tests.e2e.across_nodes.node import Node
from tests.e2e.polling import DEADLINE, wait_until

_SLICES = "/apis/opencontrail.org/v1alpha1"

pytestmark = pytest.mark.timeout(240)  # what is stale counts only after it may have stayed, and checks are repeated


@pytest.fixture(scope="module")
def checked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CheckedCluster]:
    with checked_cluster(cluster, tmp_path_factory.mktemp("nodes")) as found:
        wait_until(lambda: found.found() == set(), what="without problems", otherwise=lambda: str(found.found()))
        yield found


@pytest.fixture(scope="class")
def unrepaired(checked: CheckedCluster) -> Iterator[CheckedCluster]:
    """The cluster without daemons, which repair everything in the end."""
    for pod in checked.pods:
        pod.node.daemon.kill()
    _await_stopped(checked)
    yield checked
    for pod in checked.pods:
        pod.node.start_daemon()
    wait_until(lambda: checked.found() == set(), what="repaired", otherwise=lambda: str(checked.found()))


def _stopped(checked: CheckedCluster) -> Findings:
    return {(pod.node.name, "", "stopped", "nothing programs the datapath") for pod in checked.pods}


def _await_stopped(checked: CheckedCluster) -> None:
    """Waits until nothing but the killed daemons is found: one that was killed between requests counts for a while."""
    found = partial(checked.found, "--no-probes")
    deadline = LEASE_SECONDS + DEADLINE
    wait_until(
        lambda: found() == _stopped(checked), what="stopped alone", otherwise=lambda: str(found()), deadline=deadline
    )


class TestFaultsOfAKernel:
    @pytest.mark.parametrize("name", KERNEL_FAULTS)
    def test_it_is_found_and_nothing_else(self, unrepaired: CheckedCluster, name: str) -> None:
        fault = KERNEL_FAULTS[name]
        expected = fault.found(unrepaired) | _stopped(unrepaired)
        fault.inject(unrepaired)
        try:
            assert unrepaired.found() == expected
        finally:
            fault.undo(unrepaired)
        _await_stopped(unrepaired)


def test_a_cluster_that_works_is_one_line(checked: CheckedCluster) -> None:
    ended = checked.run()
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["3 nodes, 2 networks: no problem found"]


def test_nodes_are_checked_by_kubectl_in_their_pods(checked: CheckedCluster) -> None:
    server = checked.cluster.server
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "contrail"}})
    for pod in checked.pods[:2]:
        server.ask("POST", "/api/v1/namespaces/contrail/pods", _node_pod(pod.node))
    ended = checked.run_by_kubectl()
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines() == [
        "NODE     NETWORK   FAULT       OBJECT",
        "node-3   -         unchecked   kernel of the node (found: no contrail-node pod in namespace contrail)",
        "",
        "unchecked: see why the DaemonSet has no pod there, or name its --namespace or a --node-command",
        "",
        "3 nodes, 2 networks: 1 problem",
    ]
    stored = checked.run_by_kubectl("--store-only")
    assert (stored.returncode, stored.stdout.splitlines()[0]) == (0, "Not checked: the kernels of nodes")
    one = checked.run_by_kubectl("--node", "node-2", "--no-probes")
    assert (one.returncode, one.stdout) == (0, "1 node, 2 networks: no problem found\n")
    unknown = checked.run_by_kubectl("--node", "node-9")
    assert (unknown.returncode, unknown.stderr) == (2, "contrailctl: node node-9 not found\n")


def _node_pod(node: Node) -> dict[str, Any]:
    metadata = {"name": f"pod-{node.name}", "labels": {"app.kubernetes.io/name": "contrail-node"}}
    containers = [{"name": "cnid", "image": "none.example/none"}]
    spec = {"nodeName": node.name, "hostNetwork": True, "containers": containers}
    return {"metadata": metadata, "spec": spec}


@contextmanager
def _without_manager(cluster: Cluster) -> Iterator[None]:
    """Stops the manager, which would repair the store."""
    cluster.manager.kill()
    try:
        yield
    finally:
        cluster.manager.start()
        cluster.manager.wait_until_it_leads()


def _slice_of(checked: CheckedCluster, node: Node) -> dict[str, Any]:
    (found,) = [each for each in checked.cluster.slices(node) if each["spec"]["vni"] == checked.vni]
    return found


def _path(item: dict[str, Any]) -> str:
    metadata = item["metadata"]
    return f"{_SLICES}/namespaces/{metadata['namespace']}/networkslices/{metadata['name']}"


def test_an_edited_slice_is_found_and_nothing_else(checked: CheckedCluster) -> None:
    pod = checked.pods[1]
    with _without_manager(checked.cluster):
        found = _slice_of(checked, pod.node)
        (endpoint,) = found["spec"]["endpoints"]
        mac, kept, _ = endpoint.split()
        checked.cluster.server.ask("PATCH", _path(found), {"spec": {"endpoints": [f"{mac} {kept}"]}})
        what = f"endpoint in the slice: {pod.mac} {', '.join(pod.addresses)}"
        _await_only(checked, {(pod.node.name, BLUE, "wrong", what)})
    wait_until(lambda: checked.found("--no-probes") == set(), what="repaired")


def test_a_deleted_slice_is_found_and_nothing_else(checked: CheckedCluster) -> None:
    pod = checked.pods[2]
    with _without_manager(checked.cluster):
        checked.cluster.server.ask("DELETE", _path(_slice_of(checked, pod.node)))
        _await_only(checked, {(pod.node.name, BLUE, "missing", "slice")})
    wait_until(lambda: checked.found("--no-probes") == set(), what="repaired")


def _await_only(checked: CheckedCluster, expected: Findings) -> None:
    """Waits for what is expected alone: until kernels follow the store, they differ from it."""
    wait_until(
        lambda: checked.found() == expected, what="found alone", otherwise=lambda: str(checked.found() ^ expected)
    )

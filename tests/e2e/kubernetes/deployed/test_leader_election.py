"""Leader election of two managers: the standby is ready, names the leader, and takes over when the leader ends."""

import http.client
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Tenant
from tests.support.cluster_processes import ManagerProcess, running

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/contrail-manager"
SIGTERM_GRACE = 5.0


@pytest.fixture
def managers(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[ManagerProcess, ManagerProcess]]:
    """Two managers; the first one leads."""
    kubeconfig = cluster.kubeconfig("contrail-manager")
    first, second = (
        ManagerProcess(tmp_path / name, kubeconfig, lease_namespace=NAMESPACE) for name in ("first", "second")
    )
    with running(first):
        first.wait_until_it_leads()
        with running(second):
            yield first, second
            for manager in (second, first):
                if manager.process is not None and manager.process.poll() is None:
                    assert manager.stop() == 0


Managers = tuple[ManagerProcess, ManagerProcess]


def metric(manager: ManagerProcess, name: str) -> float:
    connection = http.client.HTTPConnection(manager.listen, timeout=5)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.split()[1])


def test_a_standby_is_ready_and_names_the_leader(cluster: Cluster, managers: Managers) -> None:
    first, second = managers
    holder = cluster.server.ask("GET", LEASE)["spec"]["holderIdentity"]
    second.wait_until(lambda: holder in str(second.ask("/v1/pods")), what="naming the leader")
    assert second.get("/readyz")["ready"]
    for page in ("summary", "pods", "networks", "interfaces", "events"):
        assert second.ask(f"/v1/{page}") == (503, {"error": f"this manager is on standby: the leader is {holder}"})
        assert first.ask(f"/v1/{page}")[0] == 200
    assert (metric(first, "contrail_manager_leads"), metric(second, "contrail_manager_leads")) == (1.0, 0.0)


def test_a_stopped_leader_releases_the_lease(cluster: Cluster, tenant: Tenant, managers: Managers) -> None:
    first, second = managers
    tenant.add_pod("before", node="node-1")
    before = tenant.assigned("before")
    begun = time.monotonic()
    assert first.stop() == 0
    assert time.monotonic() - begun < SIGTERM_GRACE
    second.wait_until_it_leads()
    assert time.monotonic() - begun < 2 * SIGTERM_GRACE, "it waited for the lease to expire"
    tenant.add_pod("after", node="node-1")
    tenant.assigned("after")
    assert tenant.assigned("before") == before


def test_a_killed_leader_that_is_restarted_on_its_host_leads_again_at_once(
    cluster: Cluster, tenant: Tenant, tmp_path: Path
) -> None:
    """As kubelet restarts a container: the lease, which is held for 15 s more, is in the new process's own name."""
    manager = ManagerProcess(tmp_path, cluster.kubeconfig("contrail-manager"), lease_namespace=NAMESPACE)
    with running(manager):
        manager.wait_until_it_leads()
        before = cluster.server.ask("GET", LEASE)["spec"]
        manager.kill()
        manager.start()
        manager.wait_until_it_leads()
        after = cluster.server.ask("GET", LEASE)["spec"]
        tenant.add_pod("after", node="node-1")
        tenant.assigned("after")
        assert manager.stop() == 0
    assert after["holderIdentity"] == before["holderIdentity"]
    # Nobody else held it in between: a lease that had to expire would count one more holder.
    assert after.get("leaseTransitions", 0) == before.get("leaseTransitions", 0)


def test_a_leader_that_lost_its_lease_exits_with_one_line(cluster: Cluster, managers: Managers) -> None:
    first, _ = managers
    lease = cluster.server.ask("GET", LEASE)
    spec = {**lease["spec"], "holderIdentity": "another-manager", "leaseDurationSeconds": 1}
    cluster.server.ask("PUT", LEASE, {**lease, "spec": spec})
    assert first.ended() == 1
    assert first.log.read_text().splitlines()[-1] == "contrail-manager: lease contrail-manager: lost"
    assert "Traceback" not in first.log.read_text()


def test_managers_exit_without_resource_warnings(managers: Managers) -> None:
    for manager in reversed(managers):
        assert manager.stop() == 0
        assert "Warning" not in manager.log.read_text()

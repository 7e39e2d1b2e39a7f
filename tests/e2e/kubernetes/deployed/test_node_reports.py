"""Node reports of agents: addresses of a force-deleted pod are held until its node reports it as unplugged."""

import importlib.metadata
from collections.abc import Callable
from typing import NamedTuple

import pytest

from contrail_config.store import DEFAULT_HOLD, UNPLUGGED_HOLD
from tests.e2e.kubernetes.deployed.cluster import GROUP, Cluster, Object, Tenant, wait_until
from tests.e2e.kubernetes.deployed.runtime import Runtime
from tests.support import address_blocks
from tests.support.cluster_processes import AgentProcess
from tests.support.netns import Netns
from tests.support.plugin import PodSandbox

Agents = tuple[AgentProcess, AgentProcess]


def reports(cluster: Cluster) -> dict[str, Object]:
    """The last report of each node."""
    return {item["metadata"]["name"]: item["status"] for item in cluster.items(f"{GROUP}/contrailnodes")}


def hold(cluster: Cluster, interface: str) -> float | None:
    """Length in seconds of the hold on an interface's released address; None without a hold."""
    return address_blocks.hold_seconds(cluster.items(f"{GROUP}/addressblocks"), interface)


def test_each_agent_reports_version_and_instance(cluster: Cluster, agents: Agents) -> None:
    wait_until(lambda: {"node-1", "node-2"} <= reports(cluster).keys(), what="both nodes report")
    found = reports(cluster)
    for node in ("node-1", "node-2"):
        assert found[node]["versions"] == {"agent": importlib.metadata.version("contrail-multinet")}
    assert found["node-1"]["instance"] != found["node-2"]["instance"]


class Attached(NamedTuple):
    """A sandbox, and the uuid of its interface."""

    sandbox: PodSandbox
    interface: str


@pytest.fixture
def web(tenant: Tenant, runtime: Runtime, make_netns: Callable[[str], Netns]) -> Attached:
    """The running pod `web` of `node-1`."""
    uid = tenant.add_pod("web", node="node-1")
    sandbox = PodSandbox(make_netns("pod").path, name="web", namespace=tenant.namespace, uid=uid)
    runtime.add(sandbox).succeeded()
    return Attached(sandbox, tenant.assigned("web")["interfaces"][0]["uuid"])


def test_addresses_of_a_force_deleted_pod_are_held_until_its_node_unplugged_it(
    cluster: Cluster, tenant: Tenant, runtime: Runtime, web: Attached
) -> None:
    tenant.remove_pod("web")
    wait_until(lambda: hold(cluster, web.interface) == pytest.approx(UNPLUGGED_HOLD), what="a long hold")
    wait_until(lambda: reports(cluster)["node-1"].get("pendingDeletes") == 1, what="the pending delete is reported")
    runtime.delete(web.sandbox).succeeded()
    wait_until(lambda: hold(cluster, web.interface) == pytest.approx(DEFAULT_HOLD), what="a short hold")
    assert web.interface in reports(cluster)["node-1"]["unplugged"]


def test_addresses_of_a_pod_that_ended_normally_have_the_short_hold(
    cluster: Cluster, tenant: Tenant, runtime: Runtime, web: Attached
) -> None:
    runtime.delete(web.sandbox).succeeded()
    tenant.end_pod("web")
    tenant.remove_pod("web")
    wait_until(lambda: hold(cluster, web.interface) == pytest.approx(DEFAULT_HOLD), what="a short hold")
    assert web.interface not in reports(cluster)["node-1"].get("unplugged", [])

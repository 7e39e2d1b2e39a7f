"""From a pod object to links in its sandbox: manager, agent and plugin, connected only by the API server."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import STATUS_KEY, Cluster, Tenant, addresses, wait_until
from tests.e2e.kubernetes.deployed.runtime import Runtime
from tests.support import kernel_state
from tests.support.cluster_processes import AgentProcess
from tests.support.netns import Netns
from tests.support.plugin import PodSandbox

Agents = tuple[AgentProcess, AgentProcess]

HASH = "0123456789abcdef0123456789abcdef"
MIRROR = {"kubernetes.io/config.hash": HASH, "kubernetes.io/config.mirror": HASH}


@pytest.fixture
def sandbox(make_netns: Callable[[str], Netns]) -> Netns:
    return make_netns("pod")


def sandbox_of(tenant: Tenant, name: str, netns: Netns, uid: str) -> PodSandbox:
    return PodSandbox(netns.path, name=name, namespace=tenant.namespace, uid=uid)


def test_a_pod_of_two_networks_has_three_indexed_interfaces(tenant: Tenant, agents: Agents) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    tenant.add_nad("green", cidr="10.2.0.0/24,fd00:2::/64")
    tenant.add_pod("web", networks="blue,green@front", node="node-1")
    interfaces = agents[0].interfaces(tenant.namespace, "web", wait=10)
    assert [_index(item) for item in interfaces] == ["0/3", "1/3", "2/3"]
    assert [item["ip-address"].rpartition(".")[0] for item in interfaces[1:]] == ["10.1.0", "10.2.0"]
    assert interfaces[2]["v6-ip-address"].startswith("fd00:2::")


def _index(interface: dict[str, Any]) -> str:
    """Value of the annotation `index` in texts such as `{index:0/3}`."""
    (index,) = [text for text in interface["annotations"] if text.startswith("{index:")]
    return str(index).removeprefix("{index:").removesuffix("}")


def test_the_plugin_configures_a_pod_with_the_list_of_its_nodes_agent(
    tenant: Tenant, agents: Agents, runtime: Runtime, sandbox: Netns
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    tenant.add_nad("green", cidr="fd00:2::/64")
    uid = tenant.add_pod("web", networks="blue,green@front", node="node-1")
    pod = sandbox_of(tenant, "web", sandbox, uid)
    result = runtime.add(pod).succeeded().document
    allocated = addresses(tenant.assigned("web"))
    assert sorted(sandbox.links()) == ["eth0", "eth1", "front"]
    configured = [text for name in ("eth0", "eth1", "front") for text in kernel_state.address_texts(sandbox, name)]
    assert [text.partition("/")[0] for text in configured] == allocated
    assert result["ips"][0]["address"].partition("/")[0] == allocated[0]
    assert len(runtime.plugin.node.links()) == 3

    runtime.delete(pod).succeeded()
    assert (sandbox.links(), runtime.plugin.node.links()) == ([], [])


def test_the_error_of_a_waiting_pod_names_its_missing_network_until_that_exists(
    tenant: Tenant, agents: Agents, runtime: Runtime, sandbox: Netns
) -> None:
    uid = tenant.add_pod("web", networks="blue", node="node-1")
    pod = sandbox_of(tenant, "web", sandbox, uid)
    path = f"/vm-cfg/k8s__{tenant.namespace}__web?uid={uid}"
    wait_until(lambda: "reason" in agents[0].ask(path)[1], what="the agent knows the reason")
    reason = f"NetworkNotFound: network attachment definition {tenant.namespace}/blue not found"
    assert runtime.add(pod).failed(11).endswith(reason)

    tenant.add_nad("blue", cidr="10.1.0.0/24")
    runtime.add(pod).succeeded()
    assert sorted(sandbox.links()) == ["eth0", "eth1"]
    runtime.delete(pod).succeeded()


def test_an_agent_serves_only_pods_of_its_node(cluster: Cluster, tenant: Tenant, agents: Agents) -> None:
    tenant.add_pod("here", node="node-1")
    tenant.add_pod("there", node="node-2")
    first, second = agents
    assert first.interfaces(tenant.namespace, "here", wait=10)
    assert second.interfaces(tenant.namespace, "there", wait=10)
    assert first.ask(f"/vm-cfg/k8s__{tenant.namespace}__there")[0] == 404
    assert second.ask(f"/vm-cfg/k8s__{tenant.namespace}__here")[0] == 404


def test_agents_watch_virtual_machines_of_their_node_and_read_no_other_kind(cluster: Cluster, agents: Agents) -> None:
    asked = cluster.requests_of_agents("node-1", "node-2")
    watches = {event["requestURI"] for event in asked if event["verb"] == "watch"}
    assert watches
    for watch in watches:
        assert re.search(r"/namespaces/contrail-nodes-\d\d/virtualmachines\?", watch)
        assert "labelSelector=opencontrail.org%2Fnode%3Dnode-" in watch or "opencontrail.org/node%3Dnode-" in watch
    assert {event["objectRef"]["resource"] for event in asked} <= {"virtualmachines", "contrailnodes"}


def test_the_network_status_lists_the_pods_interfaces(tenant: Tenant, agents: Agents) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24,fd00:1::/64")
    tenant.add_pod("web", networks="blue", node="node-1")
    wait_until(lambda: STATUS_KEY in tenant.pod("web")["metadata"]["annotations"], what="status is written")
    first, second = json.loads(tenant.pod("web")["metadata"]["annotations"][STATUS_KEY])
    virtual_machine = tenant.assigned("web")
    assert (first["interface"], first["default"], first["ips"]) == ("eth0", True, addresses(virtual_machine)[:1])
    assert (second["name"], second["interface"], second["default"]) == (f"{tenant.namespace}/blue", "eth1", False)
    assert second["ips"] == addresses(virtual_machine)[1:]
    assert second["mac"] == virtual_machine["interfaces"][1]["mac"]


def test_a_pod_created_before_its_network_waits_and_proceeds(tenant: Tenant, agents: Agents) -> None:
    tenant.add_pod("early", networks="late", node="node-1")
    assert f"{tenant.namespace}/late" in tenant.wait_for_event("early", "NetworkNotFound")
    assert tenant.virtual_machine("early") is None
    tenant.add_nad("late", cidr="10.3.0.0/24")
    assert len(agents[0].interfaces(tenant.namespace, "early", wait=10)) == 2
    tenant.wait_for_event("early", "InterfacesAssigned")


def test_a_static_pod_is_attached_by_its_config_hash(
    tenant: Tenant, agents: Agents, runtime: Runtime, sandbox: Netns
) -> None:
    uid = tenant.add_pod("static-node-1", node="node-1", annotations=MIRROR)
    assert uid != HASH
    pod = sandbox_of(tenant, "static-node-1", sandbox, HASH)
    runtime.add(pod).succeeded()
    assert sandbox.links() == ["eth0"]
    runtime.delete(pod).succeeded()


def test_a_static_pod_keeps_its_interfaces_when_its_mirror_pod_is_deleted(
    tenant: Tenant, agents: Agents, runtime: Runtime, sandbox: Netns
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    first = tenant.add_pod("proxy-node-1", networks="blue", node="node-1", annotations=MIRROR)
    pod = sandbox_of(tenant, "proxy-node-1", sandbox, HASH)
    runtime.add(pod).succeeded()
    virtual_machine = tenant.virtual_machine("proxy-node-1")

    tenant.remove_pod("proxy-node-1")
    tenant.add_pod("other", networks="blue", node="node-1")
    tenant.assigned("other")
    assert tenant.virtual_machine("proxy-node-1") == virtual_machine

    second = tenant.add_pod("proxy-node-1", networks="blue", node="node-1", annotations=MIRROR)
    assert second != first
    wait_until(
        lambda: STATUS_KEY in tenant.pod("proxy-node-1")["metadata"]["annotations"], what="status is written again"
    )
    assert tenant.virtual_machine("proxy-node-1") == virtual_machine
    runtime.delete(pod).succeeded()

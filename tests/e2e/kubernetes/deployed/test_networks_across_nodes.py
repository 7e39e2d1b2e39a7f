"""Networks across nodes, up to what agents serve: a deployed manager writes slices, agents of two nodes follow them."""

import http.client
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kubernetes.deployed.cluster import NAMESPACE, Cluster, Object, Tenant, wait_until
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running

ADDRESSES = {"across-1": "192.0.2.11", "across-2": "192.0.2.12"}
FIRST, SECOND = ADDRESSES

Agents = dict[str, AgentProcess]


@pytest.fixture(scope="module")
def agents(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    """The agents of two registered nodes, with a manager that writes slices."""
    for node, address in ADDRESSES.items():
        made = cluster.server.ask("POST", "/api/v1/nodes", {"metadata": {"name": node}})
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        cluster.server.ask("PUT", f"/api/v1/nodes/{node}/status", {**made, "status": status})
    manager = ManagerProcess(
        tmp_path_factory.mktemp("manager"),
        cluster.kubeconfig("contrail-manager"),
        lease_namespace=NAMESPACE,
        network_slices=True,
    )
    agents = {
        node: AgentProcess(
            tmp_path_factory.mktemp(node), cluster.agent_kubeconfig(node), node=node, datapath="linux", vxlan_port=4790
        )
        for node in ADDRESSES
    }
    with running(manager):
        manager.wait_until_it_leads()
        with running(*agents.values()):
            yield agents


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("agent", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def datapath(agent: AgentProcess) -> Object:
    """The desired state that an agent serves."""
    connection = _UnixConnection(agent.socket)
    connection.request("GET", "/datapath?wait=5")
    with connection.getresponse() as response:
        content: Object = json.load(response)
    connection.close()
    return content


def programmed(agent: AgentProcess) -> None:
    """Reports the state that an agent serves as programmed, as the daemon does."""
    report = {"version": datapath(agent)["version"], "changes": 0, "repaired": 0, "seconds": 0.01}
    connection = _UnixConnection(agent.socket)
    connection.request("POST", "/datapath?follower=test", json.dumps(report))
    with connection.getresponse() as response:
        assert response.status == 200
    connection.close()


def remotes(agent: AgentProcess, vni: int) -> list[Object]:
    """The endpoints of a network on other nodes."""
    networks = {network["vni"]: network for network in datapath(agent)["networks"]}
    found: list[Object] = networks.get(vni, {}).get("remotes", [])
    return found


def start(tenant: Tenant, name: str, *, node: str, **requested: Any) -> Object:
    """Starts a pod in the network `blue`; returns its interface there."""
    networks = json.dumps([{"name": "blue", **requested}])
    tenant.add_pod(name, networks=networks, node=node)
    interface: Object = tenant.assigned(name)["interfaces"][1]
    return interface


def remote(interface: Object, *, node: str) -> Object:
    """An interface of another node, as an agent serves it."""
    addresses = [each["address"] for each in interface["addresses"]]
    return {"mac": interface["mac"], "addresses": addresses, "tunnel": ADDRESSES[node]}


def test_each_agent_serves_what_the_other_node_has(cluster: Cluster, agents: Agents, tenant: Tenant) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24,fd00:1::/64")
    first, second = start(tenant, "one", node=FIRST), start(tenant, "two", node=SECOND)
    vni = first["vni"]
    wait_until(lambda: remotes(agents[FIRST], vni) == [remote(second, node=SECOND)], what="the first node knows")
    wait_until(lambda: remotes(agents[SECOND], vni) == [remote(first, node=FIRST)], what="the second node knows")
    state = datapath(agents[FIRST])
    assert state["tunnel"] == {"addresses": [ADDRESSES[FIRST]], "port": 4790}
    assert {"name": SECOND, "addresses": [ADDRESSES[SECOND]]} in state["nodes"]
    routed = state["routed-network"]
    assert (routed["vni"], len(routed["own-blocks"]), len(routed["addresses"])) == (1, 1, 1)
    assert {each["tunnel"] for each in routed["remotes"]} >= {ADDRESSES[SECOND]}
    programmed(agents[FIRST])
    assert [item["vn-name"] for item in agents[FIRST].interfaces(tenant.namespace, "one", wait=5)][1:] == [
        f"default-domain:k8s-{tenant.namespace}:k8s-blue-pod-network"
    ]


def test_a_pod_that_moves_with_its_address_and_mac_is_followed(
    cluster: Cluster, agents: Agents, tenant: Tenant
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    observer = start(tenant, "observer", node=FIRST)
    wished = {"ips": ["10.1.0.77/24"], "mac": "02:00:00:00:00:77"}
    moving = start(tenant, "moving", node=SECOND, **wished)
    vni = moving["vni"]
    wait_until(lambda: remotes(agents[FIRST], vni) == [remote(moving, node=SECOND)], what="the first node knows it")
    tenant.end_pod("moving")  # so its address is held for 10 s only
    wait_until(lambda: remotes(agents[FIRST], vni) == [], what="it is gone")
    tenant.remove_pod("moving")
    tenant.add_pod("away", networks=json.dumps([{"name": "blue"}]), node=SECOND)
    tenant.assigned("away")
    tenant.add_pod("moving", networks=json.dumps([{"name": "blue", **wished}]), node=FIRST)
    wait_until(
        lambda: {each["mac"] for each in remotes(agents[SECOND], vni)} == {observer["mac"], "02:00:00:00:00:77"},
        what="the second node knows it where it is now",
    )
    assert {each["tunnel"] for each in remotes(agents[SECOND], vni)} == {ADDRESSES[FIRST]}


def test_an_agent_without_a_pod_in_a_network_does_not_follow_it(
    cluster: Cluster, agents: Agents, tenant: Tenant
) -> None:
    tenant.add_nad("blue", cidr="10.1.0.0/24")
    interface = start(tenant, "one", node=SECOND)
    wait_until(
        lambda: interface["vni"] in {network["vni"] for network in datapath(agents[SECOND])["networks"]},
        what="the second node has the network",
    )
    assert interface["vni"] not in {network["vni"] for network in datapath(agents[FIRST])["networks"]}


def test_agents_watch_slices_by_network(cluster: Cluster, agents: Agents) -> None:
    asked = cluster.requests_of_agents(*ADDRESSES)
    watches = {event["requestURI"] for event in asked if "/networkslices?" in event["requestURI"]}
    assert watches
    for watch in watches:
        assert re.search(r"/namespaces/contrail-networks-\d{3}/networkslices\?", watch)
        assert re.search(r"labelSelector=opencontrail.org(%2F|/)network", watch)
    assert {event["objectRef"]["resource"] for event in asked} == {"virtualmachines", "networkslices", "contrailnodes"}

"""Two networks with one VNI on a node: the agent refuses both, and no pod of the second is attached to the first."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.multus.cluster import NAMESPACE, Cluster, Pod
from tests.e2e.polling import wait_until
from tests.support.cluster_processes import AgentProcess
from tests.support.datapath_node import NodeDaemon, call_shim
from tests.support.echo import reaches
from tests.support.netns import Netns
from tests.support.node_networks import NodeNetworks
from tests.support.plugin_callers import await_listener
from tests.support.real_apiserver.server import serve_real_apiserver

_CONFIG = {"cniVersion": "1.0.0", "type": "contrail-k8s-cni"}
_CIDR = "10.7.0.0/24"
_NETWORKS = "/apis/opencontrail.org/v1alpha1/virtualnetworks"
_NODE = "worker"


class Site(NamedTuple):
    """A cluster, and a node of it whose agent runs beside its network namespace."""

    cluster: Cluster
    agent: AgentProcess
    daemon: NodeDaemon
    networks: NodeNetworks
    namespace: Netns
    added: list[tuple[Pod, Netns]]

    def share_vni(self, first: str, second: str) -> None:
        """Gives the second network the VNI of the first, as somebody may who restores objects; restarts the manager."""
        networks = {item["spec"].get("nad"): item for item in self.cluster.server.ask("GET", _NETWORKS)["items"]}
        vni = networks[f"{NAMESPACE}/{first}"]["spec"]["vni"]
        name = networks[f"{NAMESPACE}/{second}"]["metadata"]["name"]
        self.cluster.server.ask("PATCH", f"{_NETWORKS}/{name}", {"spec": {"vni": vni}})
        self.cluster.start_manager()

    @contextmanager
    def sandbox(self) -> Iterator[Netns]:
        """A pod's network namespace."""
        namespace = Netns("pod")
        try:
            yield namespace
        finally:
            namespace.delete()

    def add_pod(self, network: str) -> Pod:
        """Creates a pod in a network."""
        return self.cluster.add_pod(_NODE, network, namespace=NAMESPACE, annotations={})

    def add(self, pod: Pod, sandbox: Netns) -> dict[str, object]:
        """Runs ADD and returns its output."""
        self.added.append((pod, sandbox))
        document: dict[str, object] = call_shim(self.daemon, "ADD", pod.name, sandbox)
        return document

    def end(self) -> None:
        """Ends all pods, and waits until nothing of them and their networks is left; fails if something is."""
        for pod, sandbox in self.added:
            assert call_shim(self.daemon, "DEL", pod.name, sandbox) == {}
            self.cluster.remove_pod(pod)
        wait_until(lambda: self.left() == [], what="without leftovers", otherwise=lambda: str(self.left()))

    def left(self) -> list[str]:
        """Namespaces of networks, links and rules of the node, and ports of its agent."""
        tables = self.namespace.run("nft", "list", "tables").stdout.splitlines()
        networks = (f"network {vni}" for vni in self.networks.namespaces.existing())
        ports = (str(file) for file in self.agent.ports.rglob("*") if file.is_file())
        return [*networks, *self.namespace.links(), *tables, *ports]


@pytest.fixture
def site(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ExitStack() as stack:
        server = stack.enter_context(serve_real_apiserver(tmp_path_factory.mktemp("server")))
        cluster = Cluster(server, tmp_path / "manager")
        cluster.start_manager()
        stack.callback(_kill_manager, cluster)
        cluster.add_namespace(NAMESPACE)
        for name in ("red", "green"):
            cluster.add_nad(f"{NAMESPACE}/{name}", _CONFIG, cidr=_CIDR)
        agent = AgentProcess(tmp_path / "agent", server.kubeconfig(), node=_NODE, datapath="linux")
        agent.start()
        stack.callback(agent.kill)
        networks = NodeNetworks(tmp_path / "networks")
        stack.callback(networks.close)
        within = str(networks.folder)
        settings = {"agent-socket": str(agent.socket), "state-dir": str(tmp_path / "state"), "netns-dir": within}
        namespace = Netns("node")
        stack.callback(namespace.delete)
        daemon = NodeDaemon(tmp_path, settings)
        stack.callback(daemon.close)
        with namespace.inside():
            daemon.launch()
        await_listener(str(daemon.socket))
        site = Site(cluster, agent, daemon, networks, namespace, [])
        yield site
        site.end()


def _kill_manager(cluster: Cluster) -> None:
    """The one that runs now: a test may have restarted it."""
    cluster.manager.kill()


def _refused(site: Site) -> set[str]:
    return {each["reason"] for each in site.agent.get("/datapath/report")["refused"]}


def test_networks_that_share_a_vni_are_refused_by_name_until_one_has_left(site: Site) -> None:
    red, other_red = site.add_pod("red"), site.add_pod("red")
    with site.sandbox() as first, site.sandbox() as second, site.sandbox() as third:
        site.add(red, first)
        site.add(other_red, second)
        addresses = [str(site.cluster.allocated(pod)[1].addresses[0].address) for pod in (red, other_red)]
        assert reaches(first, addresses[1])

        site.share_vni("red", "green")
        green = site.add_pod("green")
        for pod in (green, other_red):
            answer = site.add(pod, third)
            assert answer["code"] == 101
            assert "is also that of" in str(answer["msg"])
            assert "green" in str(answer["msg"])
            assert "red" in str(answer["msg"])
        assert third.links() == []
        assert _refused(site) == {"equal-vni"}
        assert reaches(first, addresses[1])

        site.cluster.remove_pod(green)
        site.agent.wait_until(lambda: not _refused(site), what="accepted again")
        assert "code" not in site.add(other_red, third)
        assert reaches(third, addresses[0])

"""kube-proxy and the datapath on one node: neither changes what belongs to the other."""

from collections import Counter
from functools import partial

import pytest

from demo import echo
from tests.e2e.datapath.cluster import Cluster
from tests.e2e.datapath.conftest import Pods, Services
from tests.e2e.datapath.node import FAMILIES, NODE, OUTSIDE, Node
from tests.e2e.kube_proxy import KubeProxy
from tests.e2e.name_server import Answer, Connection, ask
from tests.e2e.plugin_installation import COMMANDS
from tests.e2e.polling import wait_until
from tests.e2e.services import SERVICE_PORT, Service

pytestmark = pytest.mark.usefixtures("kube_proxy")

CONTRAILCTL = str(COMMANDS / "contrailctl")


def everybody_is_served(node: Node, pods: Pods, services: Services) -> None:
    """Fails unless pods, node and outside reach what they should, in both families."""
    for family in FAMILIES:
        own = pods.client.addresses[family]
        assert ask(pods.client.path, services.web.addresses[family], SERVICE_PORT) == Answer("web", own)
        assert ask(pods.web.path, services.web.addresses[family], SERVICE_PORT).server == "web"
        assert ask(node.path, services.web.addresses[family], SERVICE_PORT).server == "web"
        assert ask(pods.client.path, services.outside.addresses[family], SERVICE_PORT) == Answer(
            "outside", NODE[family]
        )
        assert ask(node.outside, NODE[family], services.web_local.node_port) == Answer("web", OUTSIDE[family])


def test_a_kube_proxy_that_starts_again_changes_nothing_of_ours(
    kube_proxy: KubeProxy, node: Node, pods: Pods, services: Services
) -> None:
    ours = node.our_rules()
    kube_proxy.kill()
    kube_proxy.start()
    assert node.our_rules() == ours
    report = node.restart_daemon()
    assert (report["changes"], report["repaired"], report["problems"]) == (0, 0, {})
    everybody_is_served(node, pods, services)


def test_connections_outlive_a_restart_of_kube_proxy(kube_proxy: KubeProxy, pods: Pods, services: Services) -> None:
    expected = [Answer("web", address) for address in pods.client.addresses]
    connections = [Connection(pods.client.path, each, SERVICE_PORT) for each in services.web.addresses]
    try:
        kube_proxy.kill()
        assert [each.ask() for each in connections] == expected
        kube_proxy.start()
        assert [each.ask() for each in connections] == expected
    finally:
        for each in connections:
            each.close()


def test_a_repaired_filter_changes_nothing_of_kube_proxy(node: Node, pods: Pods, services: Services) -> None:
    theirs = node.others_rules()
    node.host.run("nft", "flush", "chain", "inet", "contrail", "to_outside")
    node.host.run("nft", "flush", "chain", "inet", "contrail", "from_ports")
    # A port that comes makes the daemon compare all, and a pod is attached only once the filter is whole.
    with node.attached(f"third-{node.name}") as third:
        for family in FAMILIES:
            answer = ask(third.path, services.web.addresses[family], SERVICE_PORT)
            assert answer == Answer("web", third.addresses[family])
    assert _difference(node.others_rules(), theirs) == []
    everybody_is_served(node, pods, services)


def test_a_service_follows_its_endpoints(cluster: Cluster, node: Node, pods: Pods) -> None:
    service = cluster.add_service(f"moving-{node.name}", node.name, pods.web.addresses)
    try:
        for server, addresses in (("web", pods.web.addresses), ("client", pods.client.addresses)):
            cluster.set_endpoints(service, addresses)
            for address in service.addresses:
                wait_until(partial(_is_served_by, server, pods, address), what=f"served by {server}")
    finally:
        cluster.remove_service(service)
    wait_until(lambda: not _traces(service, node), what="without it", otherwise=lambda: str(_traces(service, node)))


def test_purge_leaves_kube_proxy_alone_and_a_daemon_makes_the_datapath_again(
    node: Node, pods: Pods, services: Services
) -> None:
    theirs = node.others_rules()
    node.daemon.stop()
    try:
        node.host.run(CONTRAILCTL, "datapath", "purge", "--force")
        assert node.our_rules() == ""
        assert _difference(node.others_rules(), theirs) == []
        for address in pods.web.addresses:
            assert not echo.reaches(str(pods.client.path), address, timeout=0.5)
    finally:
        node.daemon.start()
    for pod in pods:
        wait_until(partial(node.is_whole, pod.host_end), what="whole", otherwise=node.our_rules)
    assert _difference(node.others_rules(), theirs) == []
    everybody_is_served(node, pods, services)


def _is_served_by(server: str, pods: Pods, address: str) -> bool:
    try:
        return ask(pods.client.path, address, SERVICE_PORT).server == server
    except OSError:
        return False


def _traces(service: Service, node: Node) -> list[str]:
    """Lines with an address of the Service. Chains of its name stay, empty, until kube-proxy has another change."""
    return [line for line in node.others_rules() if any(address in line for address in service.addresses)]


def _difference(first: Counter[str], second: Counter[str]) -> list[str]:
    return sorted([*(first - second), *(second - first)])

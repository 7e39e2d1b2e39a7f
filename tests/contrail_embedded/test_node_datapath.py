"""Traffic of a node whose kernel connects the pods, while its processes end and start."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from cni_contrail.agent.connections import idle_connections
from tests.support.datapath_node import ConnectedPod, DatapathNode, datapath_node
from tests.support.echo import reaches
from tests.support.echo_stream import EchoStream
from tests.support.manifests import nad, write

GATEWAY = "10.1.0.1"


@pytest.fixture
def datapath() -> Iterator[DatapathNode]:
    with datapath_node() as node:
        yield node


@pytest.fixture
def pair(datapath: DatapathNode) -> Iterator[tuple[ConnectedPod, ConnectedPod]]:
    with datapath.attached("a") as first, datapath.attached("b") as second:
        yield first, second


def _kill_manager(node: DatapathNode) -> None:
    node.manager.kill()
    node.manager.start()


def _restart_manager(node: DatapathNode) -> None:
    assert node.manager.stop() == 0
    node.manager.start()


def _kill_daemon(node: DatapathNode) -> None:
    node.daemon.kill()
    node.daemon.launch()


def _restart_daemon(node: DatapathNode) -> None:
    assert node.daemon.stop() == 0
    node.daemon.launch()


def _kill_both(node: DatapathNode) -> None:
    node.manager.kill()
    node.daemon.kill()
    node.daemon.launch()
    node.manager.start()


def _replace_both(node: DatapathNode) -> None:
    """As an upgrade: the daemon first, which meets the old agent, then the agent, which meets the new daemon."""
    _restart_daemon(node)
    _restart_manager(node)


@pytest.mark.parametrize("restart", [_kill_manager, _restart_manager, _kill_both, _replace_both])
def test_no_packet_is_lost_while_processes_restart(
    datapath: DatapathNode, pair: tuple[ConnectedPod, ConnectedPod], restart: Callable[[DatapathNode], None]
) -> None:
    with _pings(pair) as streams:
        datapath.networks.run(datapath.vni, "ip", "address", "flush", "dev", "br0")  # so that there is something to do
        restart(datapath)
        datapath.manager.wait_until(lambda: GATEWAY in _addresses(datapath), what="repaired")
        datapath.manager.wait_until(lambda: datapath.report()["report"] is not None, what="reported")
    assert datapath.report()["report"]["problems"] == {}
    assert [stream.gaps() for stream in streams if stream.lost()] == []


@pytest.mark.parametrize("restart", [_kill_daemon, _restart_daemon])
def test_no_packet_is_lost_while_a_daemon_on_standby_restarts(
    datapath: DatapathNode, pair: tuple[ConnectedPod, ConnectedPod], restart: Callable[[DatapathNode], None]
) -> None:
    _await_standby(datapath, times=1)
    with _pings(pair) as streams:
        restart(datapath)
        _await_standby(datapath, times=2)
    assert [stream.gaps() for stream in streams if stream.lost()] == []


def test_a_filter_that_was_flushed_meanwhile_is_made_again_without_losing_a_packet(
    datapath: DatapathNode, pair: tuple[ConnectedPod, ConnectedPod]
) -> None:
    with _pings(pair) as streams:
        datapath.manager.kill()
        datapath.daemon.kill()
        datapath.networks.run(datapath.vni, "nft", "flush", "ruleset")
        datapath.daemon.launch()
        datapath.manager.start()
        datapath.manager.wait_until(lambda: "from_ports" in _ruleset(datapath), what="repaired")
    assert [stream.gaps() for stream in streams if stream.lost()] == []


def test_the_node_under_test_leaves_no_connection() -> None:
    """One that the interpreter finds at its end is a warning that fails no test."""
    with datapath_node() as node:
        node.report()
    assert not any(idle_connections._idle.values())


def test_the_embedded_node_programs_and_the_daemon_is_on_standby(
    datapath: DatapathNode, pair: tuple[ConnectedPod, ConnectedPod]
) -> None:
    _await_standby(datapath, times=1)
    process = datapath.manager.process
    assert process is not None
    follower = datapath.report()["follower"]
    assert follower.startswith(f"contrail-manager-{process.pid}-")
    assert f"on standby: {follower} programs the datapath of this node" in datapath.daemon.log.read_text()


def _await_standby(node: DatapathNode, *, times: int) -> None:
    node.manager.wait_until(lambda: node.daemon.log.read_text().count("on standby") == times, what="on standby")


def test_a_pod_that_deletes_its_link_is_named_in_readyz_and_the_node_stays_ready(
    datapath: DatapathNode, pair: tuple[ConnectedPod, ConnectedPod]
) -> None:
    pair[0].namespace.ip("link", "delete", "eth1")
    datapath.manager.wait_until(lambda: datapath.manager.ask("/readyz")[1]["reasons"] != [], what="named")
    status, readiness = datapath.manager.ask("/readyz")
    assert (status, readiness["ready"]) == (200, True)
    (reason,) = readiness["reasons"]
    network = "network default-domain:k8s-demo:k8s-blue-pod-network"
    assert reason.startswith(f"datapath: pod demo/a: eth1: {network}: not connected: no host end tap")
    with datapath.attached("c") as another:
        assert reaches(another.namespace, pair[1].addresses[0])


def test_a_subnet_that_the_node_does_not_route_is_an_event_on_its_nad(datapath: DatapathNode) -> None:
    document = nad("fabric", cidr="8.8.8.0/24", **{"opencontrail.org/ip_fabric_forwarding": "true"})
    write(datapath.manager.manifests / "fabric.yaml", document)
    with datapath.attached("a", networks="fabric"):
        datapath.manager.wait_until(lambda: _refusals(datapath) != [], what="event")
        name = "default-domain:k8s-demo:k8s-fabric-pod-network"
        problem = "no route to 8.8.8.0/24: it is not in the agent's fabric-subnets"
        message = f": network {name}: ip_fabric_forwarding: {problem}"
        ((subject, text),) = _refusals(datapath)
        assert subject == "NetworkAttachmentDefinition/demo/fabric"
        assert text.startswith("node ")
        assert text.endswith(message)
        (refused,) = datapath.report()["refused"]
        assert refused["message"] == message.removeprefix(": ")
        assert "8.8.8.0" not in subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout


def test_pods_of_an_isolated_namespace_reach_each_other_and_not_those_of_others(datapath: DatapathNode) -> None:
    annotations = {"opencontrail.org/isolation": "true"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab", "annotations": annotations}}
    write(datapath.manager.manifests / "lab.yaml", namespace)
    with (
        datapath.attached("a", networks="") as outsider,
        datapath.attached("b", networks="", namespace="lab") as first,
        datapath.attached("c", networks="", namespace="lab") as second,
    ):
        addresses = [pod.addresses[0] for pod in (outsider, first, second)]
        assert len(set(addresses)) == 3
        for source, target, is_allowed in (
            (first, 2, True),
            (second, 1, True),
            (outsider, 1, False),
            (second, 0, False),
        ):
            assert reaches(source.namespace, addresses[target], timeout=5 if is_allowed else 1) == is_allowed


def _refusals(node: DatapathNode) -> list[tuple[str, str]]:
    """Object and message of each event about a subnet without a route."""
    return [
        (f"{item['kind']}/{item['namespace']}/{item['name']}", item["message"])
        for item in node.manager.items("events")
        if item["reason"] == "SubnetRefused"
    ]


def _addresses(node: DatapathNode) -> str:
    return node.networks.run(node.vni, "ip", "address")


def _ruleset(node: DatapathNode) -> str:
    return node.networks.run(node.vni, "nft", "list", "ruleset")


@contextmanager
def _pings(pair: tuple[ConnectedPod, ConnectedPod]) -> Iterator[list[EchoStream]]:
    """Pings from the first to the second pod in both families at 1 kHz."""
    first, second = pair
    streams = [EchoStream(first.namespace, address) for address in second.addresses]
    with ExitStack() as stack:
        for stream in streams:
            stack.enter_context(stream.running())
        yield streams

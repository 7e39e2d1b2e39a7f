"""Networks of a daemon in a container: pinned on the host by the shim, they outlive the daemon."""

import signal
from concurrent.futures import ThreadPoolExecutor

from cni_contrail.datapath.namespaces import name_of
from tests.support.container_node import ContainerNode
from tests.support.echo_stream import EchoStream


def test_pods_of_a_network_reach_each_other(node: ContainerNode, vni: int) -> None:
    first, second = node.add(vni), node.add(vni)
    assert first.reaches(second)
    assert len(node.pins(vni)) == 1
    assert len(node.ports(vni)) == 2


def test_traffic_goes_on_without_the_daemon_and_its_mounts(node: ContainerNode, vni: int) -> None:
    first, second = node.add(vni), node.add(vni)
    (pinned,) = node.pins(vni)
    node.kill_daemon()
    assert first.reaches(second)
    assert node.pins(vni) == [pinned]


def test_no_packet_is_lost_while_the_daemon_is_replaced(node: ContainerNode, vni: int) -> None:
    node.desired.set(vni)
    first, second = node.add(vni), node.add(vni)
    streams = [EchoStream(first, address) for address in second.addresses]
    with streams[0].running(), streams[1].running():
        for _ in range(3):
            node.kill_daemon()
            node.start_daemon()
            node.desired.set(vni)
            node.desired.await_report()
    assert [stream.lost() for stream in streams] == [0, 0], [stream.gaps() for stream in streams]
    assert min(stream.sent for stream in streams) > 100


def test_the_next_daemon_joins_pods_to_the_same_network(node: ContainerNode, vni: int) -> None:
    first = node.add(vni)
    (pinned,) = node.pins(vni)
    node.kill_daemon()
    node.start_daemon()
    second = node.add(vni)
    assert node.pins(vni) == [pinned]
    assert second.reaches(first)
    node.call("DEL", first).succeeded()
    assert len(node.ports(vni)) == 1


def test_the_daemon_itself_mounts_nothing(node: ContainerNode, vni: int) -> None:
    node.desired.set(vni)
    node.desired.await_report()
    node.add(vni)
    mounts = [line for line in node.mounts_of_the_daemon() if line.split()[4] == f"/run/netns/{name_of(vni)}"]
    assert len(mounts) == 1
    assert " master:" in mounts[0]  # received from the host


def test_a_network_is_prepared_before_its_first_pod_and_pinned_with_it(node: ContainerNode, vni: int) -> None:
    node.desired.set(vni)
    assert node.desired.await_report()["problems"] == {}
    assert node.pins(vni) == []
    node.add(vni)
    assert len(node.pins(vni)) == 1
    assert "10.1.1.1/24" in node.host.run("ip", "-n", name_of(vni), "address", "show", "dev", "br0")


def test_a_network_without_pods_goes_from_the_host(node: ContainerNode, vni: int) -> None:
    node.desired.set(vni)
    node.desired.await_report()
    pod = node.add(vni)
    node.call("DEL", pod).succeeded()
    node.desired.set()
    node.await_removal(vni)


def test_adds_of_one_network_at_the_same_time_share_one_namespace(node: ContainerNode, vni: int) -> None:
    pods = [node.make_pod(vni) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for outcome in pool.map(lambda pod: node.call("ADD", pod), pods):
            outcome.succeeded()
    assert len(node.pins(vni)) == 1
    assert len(node.ports(vni)) == 8
    assert all(pods[0].reaches(other) for other in pods[1:])


def test_a_namespace_that_somebody_else_pinned_is_the_networks(node: ContainerNode, vni: int) -> None:
    node.desired.set(vni)
    node.desired.await_report()  # the daemon holds one of its own
    node.host.run("ip", "netns", "add", name_of(vni))
    (pinned,) = node.pins(vni)
    first, second = node.add(vni), node.add(vni)
    assert node.pins(vni) == [pinned]
    assert first.reaches(second)


def test_without_propagation_add_fails_and_says_so(node: ContainerNode, vni: int) -> None:
    node.host.run("mount", "--make-private", "/run/netns")
    assert "HostToContainer" in node.call("ADD", node.make_pod(vni)).failed(104)


def test_kill_of_the_shim_at_any_step_leaves_nothing_in_the_way(node: ContainerNode, vni: int) -> None:
    for number, when in enumerate(node.steps_of_the_shim(node.make_pod(vni)), start=1):
        killed = node.make_pod(vni + number)
        assert node.call("ADD", killed, *when.kill()).status == -signal.SIGKILL, when
        first, second = node.add(vni + number), node.add(vni + number)
        assert first.reaches(second), when
        assert len(node.pins(vni + number)) == 1, when
        node.call("DEL", killed).succeeded()
        assert len(node.ports(vni + number)) == 2, when

"""Another program that keeps changing a network: it is named, and repairs back off. Repairs cause no repairs."""

from cni_contrail.datapath.attachment import connect_ports, held_networks
from cni_contrail.datapath.desired import PENDING, LocalPort, Network, RoutedPort
from cni_contrail.datapath.routed_port import connect_routed
from cni_contrail.follower.repair_schedule import LONGEST_PAUSE
from tests.cni_contrail.drift.conftest import PORT, ROUTED_GATEWAYS, WatchedNode, settle


def test_repairs_of_a_network_that_is_changed_ten_times_a_second_back_off(node: WatchedNode, network: Network) -> None:
    for _ in range(200):
        node.run(network.vni, "nft", "flush", "ruleset")
        node.program.repair()
        node.clock.advance(0.1)
    # At 0, 1, 3, 7 and 15 s.
    assert len(repairs(node)) == 5


def test_a_repair_that_had_to_wait_is_made_without_a_further_notification(node: WatchedNode, network: Network) -> None:
    for _ in range(2):
        node.run(network.vni, "ip", "address", "flush", "dev", "br0")
        node.program.repair()
    assert "10.7.0.1" not in node.run(network.vni, "ip", "address")
    wait = node.program.next_repair()
    assert wait is not None
    node.clock.advance(wait)
    assert node.program.repair()
    assert "10.7.0.1" in node.run(network.vni, "ip", "address")


def test_the_fight_is_a_problem_that_names_object_and_program_until_it_ends(
    node: WatchedNode, network: Network
) -> None:
    for _ in range(4):
        node.run(network.vni, "nft", "flush", "ruleset")
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    problem = "another program (nft) keeps changing it (filter): repaired 4 times in a row, now every 8 s"
    assert node.program.outcome().problems == {network.vni: problem}
    assert f"datapath: network {network.vni}: {problem}" in node.log.lines
    node.clock.advance(100)
    node.program.audit()
    assert node.program.outcome().problems == {}


def test_the_pause_between_repairs_never_exceeds_that_between_audits(node: WatchedNode, network: Network) -> None:
    for _ in range(9):
        node.run(network.vni, "ip", "address", "flush", "dev", "br0")
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    assert len(repairs(node)) == 9


def test_a_fight_over_one_network_delays_no_repair_of_another(node: WatchedNode, network: Network) -> None:
    other = node.network()
    node.desire(network, other)
    for _ in range(5):
        node.run(network.vni, "nft", "flush", "ruleset")
        node.program.repair()
    node.run(other.vni, "nft", "flush", "ruleset")
    assert str(other.vni) in node.await_repair(other.vni)


def test_a_repair_causes_no_other_one(node: WatchedNode, network: Network, routed: RoutedPort) -> None:
    node.desire(network, routed=(routed,))
    node.run(network.vni, "nft", "flush", "ruleset")
    node.run(network.vni, "ip", "link", "delete", "br0")
    node.run(0, "nft", "flush", "ruleset")
    node.await_repair(network.vni)
    node.await_repair(0)
    made = len(repairs(node))
    for _ in range(10):  # what the repairs themselves cause is audited, and nothing is found
        node.program.repair()
        node.clock.advance(1)
    assert node.program.next_repair() is None
    assert len(repairs(node)) == made


def test_other_rules_of_the_node_that_change_all_the_time_cause_one_audit_a_second(
    node: WatchedNode, routed: RoutedPort
) -> None:
    assert routed
    before = node.reconciler.audits
    node.run(0, "nft", "add table inet others")
    for number in range(40):
        node.run(0, "nft", f"add chain inet others c{number}")
        node.program.repair()
        node.clock.advance(0.1)
    assert node.reconciler.audits - before == 4
    assert not repairs(node)


PODS = [LocalPort(f"tap{number}", f"02:00:00:00:01:{number}", (f"10.7.0.{number}",)) for number in range(10, 20)]


def test_pods_that_come_and_go_are_no_fight(node: WatchedNode, network: Network) -> None:
    """Each ADD changes the rules, and each DEL leaves entries of a link that is gone: an audit removes them."""
    node.desire(network._replace(ports=(*network.ports, *PODS)))
    for before, pod in zip([None, *PODS], PODS, strict=False):
        if before is not None:
            node.run(network.vni, "ip", "link", "delete", before.link)
        connect(node, network, pod)
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    assert node.reconciler.audits >= len(PODS)
    assert node.program.outcome().problems == {}
    assert repairs(node) == []


def test_pods_that_go_while_others_come_at_index_0_are_no_fight(node: WatchedNode) -> None:
    """What changes in the node's rules may concern the uplink of a network."""
    network = node.network(*PODS, snat=True)
    node.desire(network)
    for pod in PODS:
        connect(node, network, pod)
    settle(node)
    for pod in PODS:
        node.run(network.vni, "ip", "link", "delete", pod.link)
        node.run(0, "nft", f"add table inet of-{pod.link}")
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    assert node.reconciler.audits >= len(PODS)
    assert node.program.outcome().problems == {}
    assert repairs(node) == []


def test_an_audit_that_removes_what_a_del_leaves_repairs_nothing(node: WatchedNode, network: Network) -> None:
    node.run(network.vni, "ip", "link", "delete", PORT.link)
    node.program.audit()
    assert PORT.mac not in node.run(network.vni, "ip", "neighbour")
    assert node.log.lines == []
    assert node.program.unreported.repaired == 0
    node.run(network.vni, "ip", "address", "flush", "dev", "br0")
    node.program.audit()
    assert "repaired what another program had changed" in node.log.lines[0]
    assert node.program.unreported.repaired > 0


def test_pods_that_come_and_go_between_two_audits_are_no_fight(node: WatchedNode, network: Network) -> None:
    node.desire(network._replace(ports=(*network.ports, *PODS)))
    for pod in PODS:
        connect(node, network, pod)
        node.run(network.vni, "ip", "link", "delete", pod.link)
        if pod in PODS[::2]:
            node.program.audit()
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
        node.program.repair()
    assert node.program.outcome().problems == {}
    assert node.log.lines == []


def connect(node: WatchedNode, network: Network, pod: LocalPort) -> None:
    """Creates and connects a port, as ADD does."""
    node.add_link(network, pod.link)
    node.run(network.vni, "ip", "link", "set", pod.link, "master", "br0")
    with held_networks([network], node.networks.namespaces) as held:
        (namespace,) = held.values()
        connect_ports(namespace, [pod])


def test_routed_pods_that_come_and_go_are_no_fight(node: WatchedNode) -> None:
    pods = [
        RoutedPort(f"tapr{number}", f"02:00:00:00:08:{number}", (f"10.8.0.{number}",), ROUTED_GATEWAYS[:1])
        for number in range(10, 20)
    ]
    node.desire(routed=tuple(pods))
    settle(node)
    for before, pod in zip([None, *pods], pods, strict=False):
        if before is not None:
            node.run(0, "ip", "link", "delete", before.link)
        node.add_routed_link(pod)
        connect_routed(pod, PENDING)
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    assert node.reconciler.audits >= len(pods)
    assert node.program.outcome().problems == {}
    assert repairs(node) == []


def test_a_fight_while_pods_come_and_go_is_still_found(node: WatchedNode, network: Network) -> None:
    node.desire(network._replace(ports=(*network.ports, *PODS)))
    for pod in PODS:
        node.run(network.vni, "nft", "flush", "ruleset")
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
        node.add_link(network, pod.link)
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    assert "another program (nft) keeps changing it" in node.program.outcome().problems[network.vni]


def test_repairs_that_do_not_count_keep_the_pause_of_a_fight(node: WatchedNode, network: Network) -> None:
    node.desire(network._replace(ports=(*network.ports, *PODS)))
    for _ in range(5):
        node.run(network.vni, "nft", "flush", "ruleset")
        node.program.repair()
        node.clock.advance(LONGEST_PAUSE)
    node.add_link(network, PODS[0].link)
    node.run(network.vni, "nft", "flush", "ruleset")
    node.program.repair()
    audits = node.reconciler.audits
    node.run(network.vni, "nft", "flush", "ruleset")
    node.program.repair()
    node.clock.advance(10)
    node.program.repair()
    assert node.reconciler.audits == audits


def repairs(node: WatchedNode) -> list[str]:
    """What the log says of repairs."""
    return [line for line in node.log.lines if "repaired after" in line]

"""What another program changes is repaired when the kernel notifies of it: without an audit, which no test here has."""

from collections import Counter

import pytest

from agent_api.datapath.reports import REPAIR_KINDS
from cni_contrail.datapath.desired import GATEWAY_MAC, Network, RoutedPort
from cni_contrail.drift.drift_watch import DriftWatch
from cni_contrail.follower.kernel_program import BY_AUDIT
from tests.cni_contrail.drift.conftest import PORT, REMOTE, ROUTED_PORT, UNDERLAY, WatchedNode, settle

PORT_MAC = PORT.mac
OTHER_MAC = "02:00:00:00:00:99"
DROPPING = "{ type filter hook prerouting priority -300 ; policy drop ; }"
DROPPING_INGRESS = "{ type filter hook ingress device tap2 priority 0 ; policy drop ; }"
DAMAGES = {
    "bridge deleted": ("bridge", "ip link delete br0"),
    "bridge down": ("bridge", "ip link set br0 down"),
    "MAC of the bridge": ("bridge", f"ip link set br0 address {OTHER_MAC}"),
    "MTU of the bridge": ("bridge", "ip link set br0 mtu 1300"),
    "bridge without ARP": ("bridge", "ip link set br0 arp off"),
    "bridge that snoops": ("bridge", "ip link set br0 type bridge mcast_snooping 1"),
    "policy rule added": ("route", "ip rule add to 10.7.0.0/24 blackhole"),
    "policy rule deleted": ("route", "ip -6 rule delete priority 32766"),
    "port detached": ("port", "ip link set tap2 nomaster"),
    "port down": ("port", "ip link set tap2 down"),
    "port learns": ("port", "bridge link set dev tap2 learning on"),
    "port in hairpin mode": ("port", "bridge link set dev tap2 hairpin on"),
    "port isolated": ("port", "bridge link set dev tap2 isolated on"),
    "port locked": ("port", "bridge link set dev tap2 locked on"),
    "port without broadcast": ("port", "bridge link set dev tap2 bcast_flood off"),
    "port answered for": ("port", "bridge link set dev tap2 neigh_suppress on"),
    "port disabled": ("port", "bridge link set dev tap2 state disabled"),
    "port floods": ("port", "ip link set tap2 type bridge_slave flood on"),
    "forwarding entry deleted": ("forwarding entry", f"bridge fdb delete {PORT_MAC} dev tap2 master"),
    "forwarding entry moved": ("forwarding entry", f"bridge fdb replace {PORT_MAC} dev other master static"),
    "gateway's entry deleted": ("forwarding entry", f"bridge fdb delete {GATEWAY_MAC} dev br0 self"),
    "gateway's entry moved": ("forwarding entry", f"bridge fdb replace {GATEWAY_MAC} dev tap2 master static"),
    "neighbour deleted": ("neighbour", "ip neighbour delete 10.7.0.2 dev br0"),
    "neighbour replaced": ("neighbour", f"ip neighbour replace 10.7.0.2 lladdr {OTHER_MAC} nud permanent dev br0"),
    "IPv6 neighbour deleted": ("neighbour", "ip neighbour delete fd07::2 dev br0"),
    "neighbours flushed": ("neighbour", "ip neighbour flush dev br0 nud permanent"),
    "gateway deleted": ("gateway", "ip address delete 10.7.0.1/24 dev br0"),
    "IPv6 gateway deleted": ("gateway", "ip address delete fd07::1/64 dev br0"),
    "addresses flushed": ("gateway", "ip address flush dev br0 scope global"),
    "ruleset flushed": ("filter", "nft flush ruleset"),
    "table deleted": ("filter", "nft delete table bridge contrail"),
    "table dormant": ("filter", "nft add table bridge contrail { flags dormant ; }"),
    "policy of a chain": ("filter", "nft chain bridge contrail from_ports { policy accept ; }"),
    "chain added": ("filter", f"nft add chain bridge contrail other {DROPPING}"),
    "other table": ("filter", f"nft add table bridge other ; add chain bridge other dropping {DROPPING}"),
    "other table on a link": (
        "filter",
        f"nft add table netdev other ; add chain netdev other dropping {DROPPING_INGRESS}",
    ),
    "rules flushed": ("filter", "nft flush chain bridge contrail from_ports"),
    "elements flushed": ("filter", "nft flush set bridge contrail ipv6"),
}
ROUTED_DAMAGES = {
    "route deleted": ("route", "ip route delete 10.8.0.2"),
    "route replaced": ("route", "ip route replace 10.8.0.2 dev tapr3 proto 67"),
    "IPv6 route deleted": ("route", "ip -6 route delete fd08::2"),
    "neighbour deleted": ("neighbour", "ip neighbour delete 10.8.0.2 dev tapr2"),
    "neighbour replaced": ("neighbour", f"ip neighbour replace 10.8.0.2 lladdr {OTHER_MAC} nud permanent dev tapr2"),
    "gateways flushed": ("gateway", "ip address flush dev tapr2"),
    "port down": ("port", "ip link set tapr2 down"),
    "MAC of the port": ("port", f"ip link set tapr2 address {OTHER_MAC}"),
    "network of the port": ("port", "ip link set tapr2 group 7"),
    "ruleset flushed": ("filter", "nft flush ruleset"),
    "table deleted": ("filter", "nft delete table inet contrail"),
    "table dormant": ("filter", "nft add table inet contrail { flags dormant ; }"),
    "policy of a chain": ("filter", "nft chain inet contrail between_ports { policy drop ; }"),
    "elements flushed": ("filter", "nft flush set inet contrail ipv4"),
}
UPLINK_DAMAGES = {
    "link deleted": "ip link delete {link}",
    "link down": "ip link set {link} down",
    "link renamed": "ip link set {link} name renamed",
    "address deleted": "ip -4 address flush dev {link}",
    "ruleset flushed": "nft flush ruleset",
    "table dormant": "nft add table inet contrail-uplink {{ flags dormant ; }}",
    "policy of a chain": "nft chain inet contrail-uplink between_links {{ policy drop ; }}",
}
UPLINK_DAMAGES_IN_NETWORK = {
    "link deleted": "ip link delete dev up",
    "link down": "ip link set dev up down",
    "address deleted": "ip -4 address flush dev up",
    "table deleted": "nft delete table inet contrail-uplink",
    "table dormant": "nft add table inet contrail-uplink { flags dormant ; }",
    "policy of a chain": "nft chain inet contrail-uplink between_links { policy accept ; }",
}

TUNNEL_DAMAGES = {
    "tunnel deleted": ("tunnel", "ip link delete vx0"),
    "tunnel down": ("tunnel", "ip link set vx0 down"),
    "tunnel detached": ("tunnel", "ip link set vx0 nomaster"),
    "tunnel isolated": ("tunnel", "bridge link set dev vx0 isolated on"),
    "tunnel disabled": ("tunnel", "bridge link set dev vx0 state disabled"),
    "tunnel floods": ("tunnel", "bridge link set dev vx0 flood on"),
    "neighbour deleted": ("neighbour", "ip neighbour delete 10.7.0.9 dev br0"),
    "forwarding entry deleted": ("forwarding entry", "bridge fdb delete 02:00:00:00:09:09 dev vx0 master"),
    "destination deleted": ("forwarding entry", "bridge fdb delete 02:00:00:00:09:09 dev vx0 self"),
    "bridge deleted": ("bridge", "ip link delete br0"),
}
INDEX_0_DAMAGES = {
    "tunnel deleted": ("tunnel", "ip link delete contrail.0"),
    "tunnel down": ("tunnel", "ip link set contrail.0 down"),
    "route deleted": ("route", "ip route delete 10.8.0.64/26"),
    "tunnels' table dormant": ("filter", "nft add table inet contrail-tunnels { flags dormant ; }"),
    "policy of the tunnels' table": ("filter", "nft chain inet contrail-tunnels from_nodes { policy drop ; }"),
    "route of the node's own block deleted": ("route", "ip route delete unreachable 10.8.0.0/26"),
    "ruleset flushed": ("filter", "nft flush ruleset"),
}


@pytest.mark.parametrize(("kind", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_what_was_changed_in_a_network_is_repaired(node: WatchedNode, network: Network, kind: str, damage: str) -> None:
    node.run(network.vni, "ip", "link", "add", "other", "master", "br0", "type", "veth", "peer", "name", "pother")
    settle(node)
    before = node.objects(network.vni), _port(node, network)
    node.run(network.vni, *damage.split())
    assert kind in node.await_repair(network.vni)
    assert (node.objects(network.vni), _port(node, network)) == before
    assert_nothing_is_left_to_repair(node)


@pytest.mark.parametrize(
    "damage", ["port detached", "neighbour deleted", "gateway deleted", "gateway's entry deleted", "bridge deleted"]
)
def test_a_bridge_whose_usual_index_is_a_link_of_the_kernel_is_repaired(
    node: WatchedNode, network: Network, damage: str
) -> None:
    """A bridge has the name of such a link here, since not every kernel has these tunnels."""
    node.run(network.vni, "sh", "-c", "ip link delete br0 && ip link add tunl0 index 2 type bridge")
    node.await_repair(network.vni)
    settle(node)
    before = node.objects(network.vni)
    kind, command = DAMAGES[damage]
    node.log.lines.clear()
    node.clock.advance(100)
    node.run(network.vni, *command.split())
    assert kind in node.await_repair(network.vni)
    assert node.objects(network.vni) == before
    assert_nothing_is_left_to_repair(node)


@pytest.mark.parametrize(("kind", "damage"), ROUTED_DAMAGES.values(), ids=ROUTED_DAMAGES)
def test_what_was_changed_of_a_routed_port_is_repaired(
    node: WatchedNode, routed: RoutedPort, kind: str, damage: str
) -> None:
    assert routed
    before = node.objects(0)
    node.run(0, *damage.split())
    assert kind in node.await_repair(0)
    assert node.objects(0) == before
    assert_nothing_is_left_to_repair(node)


def test_a_port_of_an_isolated_network_that_is_moved_to_the_clusters_is_repaired(node: WatchedNode) -> None:
    port = ROUTED_PORT._replace(network=7)
    node.add_routed_link(port)
    node.desire(routed=(port,))
    settle(node)
    node.run(0, "ip", "link", "set", port.link, "group", "0")
    assert "port" in node.await_repair(0)
    assert "group 7 " in node.run(0, "ip", "link", "show", port.link)
    assert_nothing_is_left_to_repair(node)


def test_a_port_of_an_isolated_network_that_keeps_its_settings_is_no_drift(node: WatchedNode) -> None:
    port = ROUTED_PORT._replace(network=7)
    node.add_routed_link(port)
    node.desire(routed=(port,))
    settle(node)
    audits = node.reconciler.audits
    node.run(0, "ip", "link", "set", port.link, "txqueuelen", "77")  # notified of, with all settings
    assert not node.program.repair()
    assert node.reconciler.audits == audits


@pytest.mark.parametrize(("kind", "damage"), TUNNEL_DAMAGES.values(), ids=TUNNEL_DAMAGES)
def test_what_was_changed_of_a_network_on_other_nodes_is_repaired(node: WatchedNode, kind: str, damage: str) -> None:
    node.add_fabric()
    network = node.network()._replace(remotes=(REMOTE,), mtu=1400)
    node.desire(network, underlay=UNDERLAY)
    settle(node)
    before = node.objects(network.vni)
    node.run(network.vni, *damage.split())
    assert kind in node.await_repair(network.vni)
    assert node.objects(network.vni) == before
    assert_nothing_is_left_to_repair(node)


@pytest.mark.parametrize(("kind", "damage"), INDEX_0_DAMAGES.values(), ids=INDEX_0_DAMAGES)
def test_what_was_changed_of_index_0_on_other_nodes_is_repaired(node: WatchedNode, kind: str, damage: str) -> None:
    node.add_fabric()
    node.desire(underlay=UNDERLAY)
    settle(node)
    before = node.objects(0)
    node.run(0, *damage.split())
    assert kind in node.await_repair(0)
    assert node.objects(0) == before
    assert_nothing_is_left_to_repair(node)


def test_pods_of_other_nodes_that_come_and_go_are_no_drift(node: WatchedNode) -> None:
    node.add_fabric()
    network = node.network()._replace(mtu=1400)
    node.desire(network, underlay=UNDERLAY)
    settle(node)
    node.desire(network._replace(remotes=(REMOTE,)), underlay=UNDERLAY)
    node.desire(network, underlay=UNDERLAY)
    node.program.repair()
    node.clock.advance(60)
    node.program.repair()
    assert not [line for line in node.log.lines if "repaired" in line]


@pytest.mark.parametrize("damage", UPLINK_DAMAGES.values(), ids=UPLINK_DAMAGES)
def test_what_was_changed_of_an_uplink_on_the_node_is_repaired(node: WatchedNode, damage: str) -> None:
    network = node.network(snat=True)
    node.desire(network)
    settle(node)
    node.run(0, *damage.format(link=f"ctup-{network.vni}").split())
    assert "uplink" in node.await_repair(network.vni)
    assert_nothing_is_left_to_repair(node)


@pytest.mark.parametrize("damage", UPLINK_DAMAGES_IN_NETWORK.values(), ids=UPLINK_DAMAGES_IN_NETWORK)
def test_what_was_changed_of_an_uplink_in_its_network_is_repaired(node: WatchedNode, damage: str) -> None:
    network = node.network(snat=True)
    node.desire(network)
    settle(node)
    node.run(network.vni, *damage.split())
    node.await_repair(network.vni)
    assert_nothing_is_left_to_repair(node)


def test_a_namespace_that_was_deleted_is_made_again(node: WatchedNode, network: Network) -> None:
    node.networks.namespaces.delete(network.vni)
    assert "namespace" in node.await_repair(network.vni)
    assert "10.7.0.1" in node.run(network.vni, "ip", "address", "show", "dev", "br0")
    settle(node)
    node.run(network.vni, "ip", "address", "flush", "dev", "br0")  # the new one is watched, too
    assert "gateway" in node.await_repair(network.vni)


def test_the_program_that_changed_rules_is_named(node: WatchedNode, network: Network) -> None:
    node.run(network.vni, "nft", "flush", "ruleset")
    assert "after a change by nft: filter" in node.await_repair(network.vni)


def test_repairs_are_counted_by_network_and_by_the_kind_of_what_was_changed(
    node: WatchedNode, network: Network
) -> None:
    before = node.program.unreported
    node.run(network.vni, "nft", "flush", "ruleset")
    node.await_repair(network.vni)
    assert Counter(node.program.unreported.repairs) - Counter(before.repairs) == {"filter": 1}
    assert Counter(node.program.unreported.networks) - Counter(before.networks) == {network.vni: 1}
    node.watch(DriftWatch())  # notifications of the next change are not read
    node.run(network.vni, "sysctl", "-qw", "net.ipv6.conf.br0.disable_ipv6=1")
    node.run(network.vni, "bridge", "link", "set", "dev", PORT.link, "isolated", "on")
    node.program.audit()
    assert node.program.unreported.repairs[BY_AUDIT] == 1
    assert Counter(node.program.unreported.networks)[network.vni] == Counter(before.networks)[network.vni] + 2


def test_the_agent_knows_all_kinds_of_repairs() -> None:
    tables = (DAMAGES, ROUTED_DAMAGES, TUNNEL_DAMAGES, INDEX_0_DAMAGES)
    kinds = {kind.replace(" ", "-") for table in tables for kind, _ in table.values()} | {"uplink", "namespace"}
    assert kinds | {BY_AUDIT, "other"} == set(REPAIR_KINDS)


def test_a_table_of_another_program_in_a_network_is_removed_and_named(node: WatchedNode, network: Network) -> None:
    node.run(network.vni, "nft", "add", "table", "bridge", "other")
    node.await_line(f"datapath: network {network.vni}: repaired after a change by nft: filter")
    assert f'datapath: network {network.vni}: removed table "bridge other" of another program' in node.log.lines
    assert "other" not in node.run(network.vni, "nft", "list", "tables")
    assert_nothing_is_left_to_repair(node)


def test_a_table_of_another_program_on_the_node_stays(node: WatchedNode, routed: RoutedPort) -> None:
    assert routed
    node.run(0, *f"nft add table bridge other ; add chain bridge other dropping {DROPPING}".split())
    node.program.repair()
    node.program.audit()
    assert "table bridge other" in node.run(0, "nft", "list", "tables")


def test_a_policy_rule_of_the_node_that_diverts_a_pod_is_a_problem_until_it_goes(
    node: WatchedNode, routed: RoutedPort
) -> None:
    rule = ("to", routed.addresses[0], "blackhole")
    node.run(0, "ip", "rule", "add", *rule)
    assert node.program.repair()
    problem = f"{routed.link}: a policy rule of the node keeps packets from address {routed.addresses[0]}"
    assert node.program.outcome().problems == {0: problem}
    assert f"datapath: index 0: {problem}" in node.log.lines
    node.run(0, "ip", "rule", "delete", *rule)
    node.clock.advance(3600)
    assert node.program.repair()
    assert node.program.outcome().problems == {}


def test_the_log_tells_of_a_deleted_port_that_it_is_missing(node: WatchedNode, routed: RoutedPort) -> None:
    node.namespace.ip("link", "delete", routed.link)
    node.program.repair()
    assert node.program.next_repair() == pytest.approx(2, abs=0.1)
    node.clock.advance(2)
    assert node.program.repair()
    assert ROUTED_PORT.link in node.program.outcome().missing[0]


def test_what_a_deleted_port_leaves_is_removed_and_does_not_count_as_a_repair(
    node: WatchedNode, network: Network
) -> None:
    node.run(network.vni, "ip", "link", "delete", PORT.link)
    node.program.repair()
    assert node.program.next_repair() == pytest.approx(2, abs=0.1)
    node.clock.advance(2)
    assert node.program.repair()
    assert node.program.outcome().missing[network.vni] == {PORT.link}
    assert PORT_MAC not in "".join(node.objects(network.vni))
    assert node.program.unreported.repaired == 0
    assert not [line for line in node.log.lines if "repaired" in line]


def test_a_network_whose_ports_are_not_concerned_is_left_alone(node: WatchedNode, network: Network) -> None:
    other = node.network()
    node.desire(network, other)
    settle(node)
    node.run(other.vni, "ip", "address", "flush", "dev", "br0")
    node.await_repair(other.vni)
    assert not [line for line in node.log.lines if str(network.vni) in line]


def test_what_the_node_does_itself_is_no_drift(node: WatchedNode) -> None:
    network = node.network(snat=True)
    node.desire(network)
    node.add_link(network)
    node.add_routed_link(ROUTED_PORT)
    node.desire(network._replace(ports=(PORT,)), routed=(ROUTED_PORT,))
    node.networks.run(network.vni, "ip", "link", "delete", PORT.link)
    node.namespace.ip("link", "delete", ROUTED_PORT.link)
    node.desire(network)
    node.program.repair()
    node.clock.advance(5)
    node.program.repair()
    assert node.program.next_repair() is None
    assert not [line for line in node.log.lines if "repaired" in line]


def test_what_others_add_and_remove_for_themselves_is_no_drift(
    node: WatchedNode, network: Network, routed: RoutedPort
) -> None:
    node.desire(network, routed=(routed,))
    settle(node)
    node.namespace.ip("link", "add", "theirs", "up", "type", "veth", "peer", "name", "ptheirs")
    node.namespace.ip("address", "add", "192.0.2.1/24", "dev", "theirs")
    for verb in ("add", "delete"):
        node.namespace.ip("route", verb, "198.51.100.0/24", "dev", "theirs")
        node.namespace.ip("neighbour", verb, "192.0.2.9", "lladdr", OTHER_MAC, "dev", "theirs")
    node.namespace.ip("link", "delete", "theirs")
    assert not node.program.repair()
    assert node.program.next_repair() is None


def assert_nothing_is_left_to_repair(node: WatchedNode) -> None:
    """Fails if an audit of everything finds something."""
    node.log.lines.clear()
    node.program.audit()
    assert node.log.lines == []


def _port(node: WatchedNode, network: Network) -> str:
    return node.run(network.vni, "bridge", "-d", "link", "show", "dev", PORT.link)

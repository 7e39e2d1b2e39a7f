"""Uplinks of networks: real namespaces, links, routes and rules."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from cni_contrail.datapath.desired import Network
from cni_contrail.datapath.fabric_routes import RefusedRoute
from cni_contrail.datapath.network_lock import locked_network
from cni_contrail.datapath.network_reconciler import reconcile_network
from cni_contrail.datapath.node_reconciler import STALE_SECONDS
from cni_contrail.datapath.purge import purge
from tests.cni_contrail.datapath.uplinks.conftest import NODE, OTHER_GATEWAYS, OUTSIDE, UplinkNode
from tests.support.echo import reaches

SUBNETS = ("10.7.0.0/24", "fd07::/64")


def link_of(network: Network) -> str:
    return f"ctup-{network.vni}"


def settled(node: UplinkNode, *desired: Network) -> None:
    """Reconciles; a second round finds nothing to change."""
    outcome = node.reconcile(*desired)
    assert not outcome.problems
    again = node.reconcile(*desired)
    assert set(again.changes.values()) <= {0}


def test_pods_with_one_address_in_two_networks_reach_the_outside_with_snat(node: UplinkNode) -> None:
    red, red_pod = node.add_pod(node.network(snat=True))
    blue, blue_pod = node.add_pod(node.network(snat=True))
    settled(node, red, blue)
    for pod in (red_pod, blue_pod):
        for address in (*OUTSIDE, *NODE):
            assert reaches(pod.namespace, address), address


def test_pods_of_a_network_with_an_uplink_reach_each_other(node: UplinkNode) -> None:
    network, first = node.add_pod(node.network(snat=True))
    network, second = node.add_pod(network, number=3)
    settled(node, network)
    for address in (second.ipv4, second.ipv6):
        assert reaches(first.namespace, address), address


def test_a_network_with_neither_reaches_nothing_but_itself(node: UplinkNode) -> None:
    other, _ = node.add_pod(node.network(snat=True))
    closed, pod = node.add_pod(node.network())
    settled(node, other, closed)
    node.route_outside(*SUBNETS)
    for address in (*OUTSIDE, *NODE, "169.254.192.0"):
        assert not reaches(pod.namespace, address, timeout=0.5), address
    for address in (pod.ipv4, pod.ipv6):
        assert not reaches(node.namespace, address, timeout=0.5), address
    assert link_of(closed) not in node.namespace.links()


def test_with_forwarding_the_outside_reaches_a_pod_by_its_own_address(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(forwarding=True))
    settled(node, network)
    node.route_outside(*SUBNETS)
    for address in (pod.ipv4, pod.ipv6):
        assert reaches(node.outside, address), address
        assert reaches(node.namespace, address), address
    for address in OUTSIDE:
        assert reaches(pod.namespace, address), address


def test_without_forwarding_the_outside_does_not_reach_a_pod(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    node.route_outside(*SUBNETS)
    gateways = node.networks.run(network.vni, "ip", "-o", "-4", "address", "show", "dev", "up").split()
    uplink = gateways[gateways.index("inet") + 1].removesuffix("/31")
    node.namespace.ip("route", "add", SUBNETS[0], "via", uplink)
    assert not reaches(node.outside, pod.ipv4, timeout=0.5)
    assert not reaches(node.namespace, pod.ipv4, timeout=0.5)


@pytest.mark.parametrize(("snat", "forwarding"), [(True, False), (False, True), (True, True)])
def test_networks_do_not_reach_each_other_through_the_node(node: UplinkNode, *, snat: bool, forwarding: bool) -> None:
    red, red_pod = node.add_pod(node.network(snat=snat, forwarding=forwarding))
    other = node.network(snat=snat, forwarding=forwarding)._replace(gateways=OTHER_GATEWAYS)
    blue, blue_pod = node.add_pod(other)
    settled(node, red, blue)
    assert reaches(red_pod.namespace, NODE[0])
    for address in (blue_pod.ipv4, blue_pod.ipv6, *addresses_of_uplinks(node, blue)):
        assert not reaches(red_pod.namespace, address, timeout=0.5), address


def addresses_of_uplinks(node: UplinkNode, network: Network) -> list[str]:
    lines = node.networks.run(network.vni, "ip", "-o", "address", "show", "dev", "up", "scope", "global").splitlines()
    lines += node.networks.run(network.vni, "ip", "-o", "-4", "address", "show", "dev", "up").splitlines()
    return [line.split()[3].partition("/")[0] for line in lines]


def test_networks_and_index_0_do_not_reach_each_other_through_the_node(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True, forwarding=True))
    settled(node, network)
    for link, address in (("tapcluster", "10.8.0.2"), ("other", "10.8.1.2")):
        stranger = node.add_host(link, address)
        assert reaches(node.namespace, address)
        assert reaches(stranger, pod.ipv4, timeout=0.5) == (link == "other")
        assert reaches(pod.namespace, address, timeout=0.5) == (link == "other")


def test_no_address_of_the_link_local_range_is_reached_through_the_node(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    node.outside.ip("address", "add", "169.254.169.254/32", "dev", "eth0")
    node.namespace.ip("route", "add", "169.254.169.254", "dev", "fabric")
    assert reaches(node.namespace, "169.254.169.254")
    assert reaches(pod.namespace, OUTSIDE[0])
    assert not reaches(pod.namespace, "169.254.169.254", timeout=0.5)


@pytest.mark.parametrize(
    "route",
    ["10.7.0.0/16", "10.7.0.0/24", "10.7.0.128/25", "unreachable 10.7.0.64/26", "10.7.0.9"],
)
def test_a_subnet_that_overlaps_a_route_of_the_node_gets_no_route(node: UplinkNode, route: str) -> None:
    kind, _, destination = route.rpartition(" ")
    node.namespace.ip("route", "add", *([kind] if kind else []), destination, *([] if kind else ["dev", "fabric"]))
    network, pod = node.add_pod(node.network(forwarding=True))
    outcome = node.reconcile(network)
    assert outcome.problems == {}
    overlapped = destination if "/" in destination else f"{destination}/32"
    assert outcome.refused == [RefusedRoute(network.vni, SUBNETS[0], "node-route", overlapped)]
    node.route_outside(*SUBNETS)
    assert not reaches(node.outside, pod.ipv4, timeout=0.5)
    assert reaches(node.outside, pod.ipv6)


def test_a_subnet_of_a_network_of_the_node_gets_no_route_and_no_uplink(node: UplinkNode) -> None:
    gateways = tuple(
        each._replace(address=address) for each, address in zip(node.network().gateways, NODE, strict=True)
    )
    network = node.network(forwarding=True)._replace(gateways=gateways)
    outcome = node.reconcile(network)
    assert ("192.0.2.0/24", "node-route") in [(each.subnet, each.reason) for each in outcome.refused]
    assert outcome.missing[network.vni] == frozenset()
    assert node.namespace.links() == ["fabric"]


def test_of_two_networks_with_one_subnet_the_earlier_one_keeps_its_route(node: UplinkNode) -> None:
    earlier, later = sorted((node.network(forwarding=True), node.network(forwarding=True)), reverse=True)
    settled(node, earlier)
    outcome = node.reconcile(later, earlier)
    assert RefusedRoute(later.vni, "10.7.0.0/24", "network-route", "10.7.0.0/24", earlier.vni) in outcome.refused
    assert "10.7.0.0/24 via 169.254." in node.run("ip", "route", "show", "dev", link_of(earlier))
    outcome = node.reconcile(later)
    node.clock.advance(STALE_SECONDS)
    node.reconcile(later)
    settled(node, later)
    assert "10.7.0.0/24 via 169.254." in node.run("ip", "route", "show", "dev", link_of(later))


def test_a_route_that_another_program_adds_later_takes_precedence(node: UplinkNode) -> None:
    network = node.network(forwarding=True)
    settled(node, network)
    node.namespace.ip("route", "add", "10.7.0.0/16", "dev", "fabric")
    assert node.reconcile(network).refused == [RefusedRoute(network.vni, "10.7.0.0/24", "node-route", "10.7.0.0/16")]
    assert "10.7.0.0/24" not in node.run("ip", "route")
    node.namespace.ip("route", "delete", "10.7.0.0/16")
    settled(node, network)
    assert "10.7.0.0/24" in node.run("ip", "route")


def test_a_route_that_the_operator_allows_no_more_goes(node: UplinkNode) -> None:
    network = node.network(forwarding=True)
    settled(node, network)
    node.fabric_subnets = ("10.64.0.0/12", "fd07::/48")
    assert node.reconcile(network).refused == [RefusedRoute(network.vni, "10.7.0.0/24", "not-allowed")]
    assert "10.7.0.0/24" not in node.run("ip", "route")
    assert "fd07::/64" in node.run("ip", "-6", "route")


def test_switched_off_leaves_nothing(node: UplinkNode) -> None:
    node.namespace.run("sysctl", "-w", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    network, pod = node.add_pod(node.network())
    settled(node, network)
    before, before_within = node.objects(), within(node, network)
    for on in (network._replace(snat=True), network._replace(forwarding=True)):
        settled(node, on)
        assert node.objects() != before
        settled(node, network)
        assert node.objects() == before
        assert within(node, network) == before_within
        assert not reaches(pod.namespace, OUTSIDE[0], timeout=0.5)


def within(node: UplinkNode, network: Network) -> str:
    """Everything in the network's namespace, except what its kernel changes when the bridge gets a carrier."""
    commands = (
        ("ip", "-o", "address"),
        ("ip", "route", "show", "table", "all"),
        ("ip", "-6", "route", "show", "table", "all"),
        ("nft", "-s", "list", "ruleset"),
        ("sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"),
    )
    lines = "\n".join(node.networks.run(network.vni, *command) for command in commands).splitlines()
    kept = [line for line in lines if "fe80:" not in line and "ff00:" not in line and "anycast" not in line]
    return "\n".join(" ".join(word for word in line.split() if word != "linkdown") for line in kept)


def test_forwarding_is_switched_off_while_snat_stays(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True, forwarding=True))
    settled(node, network)
    node.route_outside(*SUBNETS)
    assert reaches(node.outside, pod.ipv4)
    settled(node, network._replace(forwarding=False))
    assert reaches(pod.namespace, OUTSIDE[0])
    assert SUBNETS[0] not in node.run("ip", "route")
    assert not reaches(node.outside, pod.ipv4, timeout=0.5)


def test_an_uplink_is_no_port_and_goes_with_its_network(node: UplinkNode) -> None:
    before = node.namespace.links()
    network = node.network(snat=True)
    settled(node, network)
    node.reconcile()
    node.clock.advance(STALE_SECONDS)
    assert node.reconcile().removed == {network.vni}
    assert node.namespace.links() == before
    assert "contrail" not in node.run("nft", "list", "ruleset")


def test_purge_removes_uplinks(node: UplinkNode) -> None:
    settled(node, *(node.network(snat=True, forwarding=forwarding) for forwarding in (False, True)))
    with node.namespace.inside():
        purged = purge(node.namespaces, with_ports=False)
    assert not purged.problems
    assert len(purged.removed) == 2
    assert node.namespace.links() == ["fabric"]
    assert "contrail" not in node.run("nft", "list", "ruleset")


def test_an_add_that_prepares_a_network_leaves_its_uplink_alone(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    with node.namespace.inside(), locked_network(node.namespaces, network.vni) as netns:
        reconcile_network(netns, network._replace(ports=(), snat=False), removes=False)
    assert reaches(pod.namespace, OUTSIDE[0])
    settled(node, network)


def test_the_mtu_follows_the_network(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    settled(node, network._replace(mtu=1400))
    assert "mtu 1400" in node.run("ip", "link", "show", link_of(network))
    assert "mtu 1400" in node.networks.run(network.vni, "ip", "link", "show", "dev", "up")
    assert reaches(pod.namespace, OUTSIDE[0])
    assert reaches(pod.namespace, OUTSIDE[1])


def test_addresses_of_an_uplink_stay_when_others_come_and_go(node: UplinkNode) -> None:
    first, second, third = (node.network(snat=True) for _ in range(3))
    settled(node, first, second)
    before = node.run("ip", "-o", "address", "show", "dev", link_of(second))
    settled(node, first._replace(snat=False), second, third)
    assert node.run("ip", "-o", "address", "show", "dev", link_of(second)) == before


def test_a_network_whose_namespace_was_deleted_gets_its_uplink_again(node: UplinkNode) -> None:
    network = node.network(snat=True)
    settled(node, network)
    node.namespaces.delete(network.vni)
    settled(node, network)
    network, pod = node.add_pod(network)
    settled(node, network)
    assert reaches(pod.namespace, OUTSIDE[0])


def test_a_link_of_another_program_with_the_name_of_an_uplink_is_named_and_left(node: UplinkNode) -> None:
    network = node.network(snat=True)
    node.namespace.ip("link", "add", link_of(network), "type", "bridge")
    assert node.reconcile(network).problems == {network.vni: f"link {link_of(network)} belongs to another program"}
    assert link_of(network) in node.namespace.links()


def test_nothing_is_interrupted_while_other_networks_change(node: UplinkNode) -> None:
    network, pod = node.add_pod(node.network(snat=True))
    settled(node, network)
    other = node.network()

    def change() -> None:
        for _ in range(5):
            settled(node, network, other._replace(snat=True))
            settled(node, network, other)

    with ThreadPoolExecutor() as threads:
        changing = threads.submit(change)
        answered = []
        while not changing.done():
            answered.append(reaches(pod.namespace, OUTSIDE[0], timeout=1, interval=1))  # asks once
        changing.result()
    assert answered
    assert all(answered)

"""Probes of temporary pods: which pairs are made, and of which an answer is expected."""

from typing import Any

import msgspec
import pytest

from contrail_config.objects import PodNetwork
from contrailctl.check.live.plan import Aim, Attached, Planned, answers, plan_probes
from contrailctl.check.live.target import Target
from contrailctl.check.live.wire import Kind
from tests.contrailctl.check.live.attached import pod_at_index_0, pod_in

OUTSIDE = Target("192.0.2.9")
SNAT: dict[str, Any] = {"ip_fabric_snat": True}
FORWARDING: dict[str, Any] = {"ip_fabric_forwarding": True}


def of(planned: list[Planned], aim: Aim) -> list[tuple[str, str, bool]]:
    """Source, target and expectation of the probes with an aim."""
    return [(each.probe.source, each.probe.target, each.probe.expected) for each in planned if each.aim is aim]


def without_ipv6(pod: Attached) -> Attached:
    addresses = pod.interface.addresses[:1]
    return pod._replace(interface=msgspec.structs.replace(pod.interface, addresses=addresses))


def test_pods_of_a_network_are_expected_to_reach_each_other_in_both_families() -> None:
    pods = [pod_in("blue", node) for node in (1, 2, 3)]
    planned = plan_probes(pods)
    for source in pods:
        others = {each.address for pod in pods if pod != source for each in pod.interface.addresses}
        found = of(planned[source.pod], Aim.POD)
        assert {target for _, target, _ in found} == others
        assert {expected for _, _, expected in found} == {True}
        assert {local for local, _, _ in found} == {each.address for each in source.interface.addresses}


def test_the_pod_that_must_answer_is_named() -> None:
    blue = [pod_in("blue", 1), pod_in("blue", 2)]
    first = plan_probes(blue)[blue[0].pod][0]
    assert (first.probe.kind, first.probe.identity, first.peer) == (Kind.RESPONDER, "blue-2", blue[1])


def test_a_family_that_one_of_both_lacks_is_left_out() -> None:
    pods = [pod_in("blue", 1), without_ipv6(pod_in("blue", 2))]
    planned = plan_probes(pods)
    assert [target for _, target, _ in of(planned[pods[0].pod], Aim.POD)] == ["10.7.0.12"]
    assert [target for _, target, _ in of(planned[pods[1].pod], Aim.POD)] == ["10.7.0.11"]


def test_pods_of_different_networks_must_not_meet_on_any_node() -> None:
    blue, red = pod_in("blue", 1), [pod_in("red", node, prefix="10.8.0") for node in (1, 2)]
    found = of(plan_probes([blue, *red])[blue.pod], Aim.POD)
    assert {target for _, target, _ in found} == {each.address for pod in red for each in pod.interface.addresses}
    assert {expected for _, _, expected in found} == {False}


def test_a_pod_does_not_ask_for_its_own_address_in_a_network_with_equal_subnets() -> None:
    blue, red = pod_in("blue", 1), pod_in("red", 1)
    assert of(plan_probes([blue, red])[blue.pod], Aim.POD) == []


def test_index_0_and_networks_must_not_meet() -> None:
    zero, blue = pod_at_index_0(1), pod_in("blue", 2)
    assert answers(zero, blue) is False
    assert answers(blue, zero) is False


@pytest.mark.parametrize("node", [1, 2])
def test_a_network_that_is_reached_from_outside_is_not_judged_from_index_0_of_other_nodes(node: int) -> None:
    zero, fabric = pod_at_index_0(1), pod_in("blue", node, **FORWARDING)
    assert answers(zero, fabric) is (False if node == 1 else None)
    assert answers(fabric, zero) is (False if node == 1 else None)


def test_packets_that_leave_a_network_are_judged_if_nothing_lets_them_into_the_other() -> None:
    nat, blue, fabric = pod_in("nat", 1, **SNAT), pod_in("blue", 2), pod_in("fabric", 3, **FORWARDING)
    assert answers(nat, blue) is False
    assert answers(blue, nat) is False
    assert answers(blue, fabric) is False
    assert answers(nat, fabric) is None


def test_index_0_of_an_isolated_namespace_is_judged_on_one_node_only() -> None:
    first, second = (pod_at_index_0(node, pod_network=PodNetwork.NAMESPACE) for node in (1, 2))
    assert answers(first, second) is None
    assert answers(pod_at_index_0(1), pod_at_index_0(2)) is True


def test_a_network_that_is_index_0_of_other_pods_is_not_judged() -> None:
    blue = pod_in("blue", 1)
    assert answers(blue, blue._replace(pod=blue.pod._replace(name="other", nad=""))) is None


def test_gateways_of_both_families_are_asked_by_echo_requests() -> None:
    blue = pod_in("blue", 1)
    planned = plan_probes([blue])[blue.pod]
    assert of(planned, Aim.GATEWAY) == [("10.7.0.11", "10.7.0.1", True), ("fd07::10:7:11", "fd07::1", True)]
    assert {each.probe.kind for each in planned} == {Kind.ECHO}
    assert plan_probes([lonely := pod_in("blue", 1, gateway=False)])[lonely.pod] == []


def test_cluster_ips_are_asked_at_index_0_alone() -> None:
    zero, blue = pod_at_index_0(1), pod_in("blue", 1)
    planned = plan_probes([zero, blue], cluster_ips=[Target("10.96.0.1", 443)])
    assert of(planned[zero.pod], Aim.CLUSTER_IP) == [("10.32.0.11", "10.96.0.1", True)]
    assert of(planned[blue.pod], Aim.CLUSTER_IP) == []
    (connect,) = [each.probe for each in planned[zero.pod] if each.aim is Aim.CLUSTER_IP]
    assert (connect.kind, connect.port) == (Kind.CONNECT, 443)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (pod_at_index_0(1), [True]),
        (pod_in("nat", 1, **SNAT), [True]),
        (pod_in("blue", 1), [False]),
        (pod_in("fabric", 1, **FORWARDING), []),
        (pod_in("nat", 1, gateway=False, **SNAT), []),
        (pod_in("blue", 1, prefix="192.0.2"), []),
    ],
    ids=["index 0", "snat", "no way out", "routes unknown", "no gateway", "within the network"],
)
def test_who_reaches_an_address_outside(source: Attached, expected: list[bool]) -> None:
    planned = plan_probes([source], outside=[OUTSIDE])[source.pod]
    assert [each for _, _, each in of(planned, Aim.OUTSIDE)] == expected


def test_an_address_outside_with_a_port_is_asked_by_tcp() -> None:
    zero = pod_at_index_0(1)
    planned = plan_probes([zero], outside=[OUTSIDE, OUTSIDE._replace(port=80), Target("2001:db8::9", 80)])[zero.pod]
    kinds = [(each.probe.kind, each.probe.port) for each in planned if each.aim is Aim.OUTSIDE]
    assert kinds == [(Kind.ECHO, 0), (Kind.CONNECT, 80), (Kind.CONNECT, 80)]

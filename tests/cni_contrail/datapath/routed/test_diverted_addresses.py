"""Policy rules of the node, which are other programs', that keep packets from pods at index 0."""

import pytest

from tests.cni_contrail.datapath.routed.conftest import RoutedNode, RoutedPod
from tests.support.echo import reaches

Pair = tuple[RoutedPod, RoutedPod]
PROBLEM = "a policy rule of the node keeps packets from address"


@pytest.mark.parametrize(
    ("rule", "diverted"),
    [
        (["add", "to", "10.8.0.2", "blackhole"], {"tap2"}),
        (["add", "to", "10.8.0.0/24", "prohibit"], {"tap2", "tap3"}),
        (["add", "lookup", "77"], {"tap3"}),
        (["delete", "priority", "32766"], {"tap2", "tap3"}),
        (["add", "to", "10.8.0.2", "lookup", "78"], set()),
        (["add", "to", "198.51.100.0/24", "blackhole"], set()),
        (["add", "priority", "40000", "blackhole"], set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_policy_rule_of_the_node_that_diverts_packets_for_pods_is_a_problem_and_stays(
    node: RoutedNode, pair: Pair, rule: list[str], diverted: set[str]
) -> None:
    node.run("ip", "route", "add", "10.8.0.3", "dev", "uplink", "table", "77")
    node.run("ip", "rule", *rule)
    before = node.run("ip", "rule")
    outcome = node.reconcile()
    assert outcome.changes == 0
    assert outcome.problems.keys() == diverted
    assert all(
        each.startswith("a policy rule of the node keeps packets from address 10.8.0.")
        for each in outcome.problems.values()
    )
    assert node.run("ip", "rule") == before
    for pod in pair:
        assert reaches(node.namespace, pod.ipv4, timeout=0.5) == (pod.port.link not in diverted)
        assert reaches(node.namespace, pod.ipv6)


def test_a_policy_rule_of_ipv6_that_diverts_packets_for_pods_is_a_problem(node: RoutedNode, pair: Pair) -> None:
    assert pair
    node.run("ip", "-6", "rule", "add", "to", "fd08::2", "unreachable")
    assert node.reconcile().problems == {"tap2": f"{PROBLEM} fd08::2"}
    node.run("ip", "-6", "rule", "delete", "to", "fd08::2", "unreachable")
    assert node.reconcile().problems == {}

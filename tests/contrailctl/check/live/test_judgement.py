"""Findings from the results of probes: what is a fault, and how many lines it takes."""

from collections.abc import Callable

import pytest

from contrailctl.check.findings import Fault, Finding
from contrailctl.check.live.judgement import judge, unready, why_unmade
from contrailctl.check.live.plan import Aim, Attached, Planned, plan_probes
from contrailctl.check.live.target import Target
from contrailctl.check.live.wire import Outcome, Result
from tests.contrailctl.check.live.attached import pod_at_index_0, pod_in

ANSWERED, TIMED_OUT = Result(Outcome.ANSWERED), Result(Outcome.NOTHING, "timed out")
NETWORK = "default-domain:k8s-demo:k8s-blue-pod-network"
BLUE = [pod_in("blue", node) for node in (1, 2, 3)]


def as_expected(each: Planned) -> Result:
    return ANSWERED if each.probe.expected else TIMED_OUT


def judged(pods: list[Attached], result: Callable[[Planned], Result], **targets: list[Target]) -> list[Finding]:
    """Findings from the results of the first pod's probes."""
    source = pods[0]
    planned = plan_probes(pods, **targets)[source.pod]
    findings = judge(planned, [result(each) for each in planned], source)
    assert all(each.advice for each in findings)
    return findings


def texts(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(each.fault, each.what, each.found) for each in findings]


def test_results_as_expected_are_no_findings() -> None:
    pods = [pod_at_index_0(1), pod_at_index_0(2), *BLUE]
    targets = {"cluster_ips": [Target("10.96.0.1", 443)], "outside": [Target("192.0.2.9")]}
    assert judged(pods, as_expected, **targets) == []
    assert judged(pods[::-1], as_expected, **targets) == []


def test_one_silent_pod_is_one_line_of_each_other_pod() -> None:
    silent = judged(BLUE, lambda each: TIMED_OUT if each.peer == BLUE[1] else ANSWERED)
    assert texts(silent) == [(Fault.UNREACHED, "no answer from pods on node-2 over IPv4 and IPv6", "timed out")]
    assert (silent[0].node, silent[0].network) == ("node-1", NETWORK)


def test_all_silent_pods_are_one_line() -> None:
    silent = judged(BLUE, lambda each: TIMED_OUT if each.peer else ANSWERED)
    assert texts(silent) == [(Fault.UNREACHED, "no answer from pods on node-2, node-3 over IPv4 and IPv6", "timed out")]


def test_nodes_that_lack_different_families_are_told_apart() -> None:
    def result(each: Planned) -> Result:
        lost = each.peer == BLUE[1] or (each.peer == BLUE[2] and ":" in each.probe.target)
        return TIMED_OUT if lost else ANSWERED

    assert [what for _, what, _ in texts(judged(BLUE, result))] == [
        "no answer from pods on node-2 over IPv4 and IPv6",
        "no answer from pods on node-3 over IPv6",
    ]


def test_many_nodes_are_counted() -> None:
    many = [pod_in("blue", node) for node in range(1, 9)]
    (found,) = texts(judged(many, lambda each: TIMED_OUT if each.peer else ANSWERED))
    assert found[1] == "no answer from pods on node-2, node-3, node-4, node-5, node-6 and 2 more over IPv4 and IPv6"


def test_another_server_that_answers_is_no_answer_of_the_pod() -> None:
    other = Result(Outcome.OTHER, "another server answers: 'red-2'")
    (first, *_) = texts(judged(BLUE[:2], lambda each: other if each.peer else ANSWERED))
    assert first == (Fault.UNREACHED, "no answer from pods on node-2 over IPv4 and IPv6", other.detail)
    apart = [BLUE[0], pod_in("red", 2)]
    assert judged(apart, lambda each: other if each.peer else ANSWERED) == []


def test_lost_long_packets_are_told_from_lost_packets() -> None:
    found = judged(BLUE[:2], lambda each: Result(Outcome.SHORT) if each.peer else ANSWERED)
    assert texts(found) == [(Fault.LOST, "long packets to pods on node-2 over IPv4 and IPv6", "short packets arrive")]


@pytest.mark.parametrize("outcome", [Outcome.ANSWERED, Outcome.SHORT])
def test_networks_that_meet_are_found(outcome: Outcome) -> None:
    pods = [BLUE[0], pod_in("red", 2)]
    found = judged(pods, lambda each: Result(outcome) if each.peer else ANSWERED)
    what = "reaches pods of network default-domain:k8s-demo:k8s-red-pod-network on node-2 over IPv4 and IPv6"
    assert texts(found) == [(Fault.LEAK, what, "")]


def test_gateways_cluster_ips_and_addresses_outside_are_named() -> None:
    found = judged(
        [pod_at_index_0(1)],
        lambda each: TIMED_OUT,
        cluster_ips=[Target("10.96.0.1", 443)],
        outside=[Target("192.0.2.9"), Target("192.0.2.9", 80)],
    )
    assert [(each.network, each.what) for each in found] == [
        ("index 0", "no answer from gateway 10.32.0.1"),
        ("index 0", "no answer from gateway fd07::1"),
        ("index 0", "no answer from ClusterIP 10.96.0.1 port 443"),
        ("index 0", "no answer from outside address 192.0.2.9"),
        ("index 0", "no answer from outside address 192.0.2.9 port 80"),
    ]
    assert len({each.advice for each in found}) == 3


def test_a_network_without_a_way_out_that_reaches_outside_is_found() -> None:
    found = judged(BLUE[:1], lambda each: ANSWERED, outside=[Target("192.0.2.9")])
    assert texts(found) == [(Fault.LEAK, "reaches outside address 192.0.2.9", "")]


def test_probes_that_the_pod_may_not_make_are_a_note() -> None:
    refused = Result(Outcome.NOT_PERMITTED, "no right")
    assert judged(BLUE[:1], lambda each: refused if each.aim is Aim.GATEWAY else ANSWERED) == []
    assert why_unmade([ANSWERED, refused], BLUE[0]) == "no right"
    assert why_unmade([ANSWERED], BLUE[0]) == ""


def test_index_0_of_another_plugin_is_a_note_and_a_missing_address_of_a_network_a_finding() -> None:
    absent = Result(Outcome.ABSENT, "no link has 10.32.0.11")
    zero = [pod_at_index_0(1), pod_at_index_0(2)]
    assert judged(zero, lambda each: absent) == []
    assert why_unmade([absent], zero[0]) == absent.detail
    assert {each.found for each in judged(BLUE, lambda each: absent)} == {absent.detail}
    assert why_unmade([absent], BLUE[0]) == ""


def test_a_pod_that_is_not_ready_is_named_with_the_reason() -> None:
    found = unready(BLUE[0].pod, NETWORK, "ErrImagePull")
    assert (found.node, found.network, found.fault) == ("node-1", NETWORK, Fault.UNREADY)
    assert (found.what, found.found) == ("temporary pod blue-1", "ErrImagePull")

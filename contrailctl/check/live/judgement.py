"""Judges the results of probes: findings, grouped so that a broken node is a few lines, not one per pair. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from contrailctl.check.findings import Fault, Finding
from contrailctl.check.live.plan import Aim, Attached, LivePod, Planned
from contrailctl.check.live.target import Target
from contrailctl.check.live.wire import Outcome, Result

_UNREACHED = (
    "see the findings of both nodes' kernels, without --store-only, and whether something between the nodes drops "
    "packets"
)
_LEAK = (
    "networks must not meet: look for a program, route or cable that joins them; without any, report it: SECURITY.md"
)
_NARROW = "raise the MTU of the underlay between the nodes, or lower the MTU of the network"
_GATEWAY = "see the problems of the network on this node: contrailctl get datapath"
_CLUSTER_IP = "see whether kube-proxy runs on this node, and whether the node reaches the API server"
_OUTSIDE = "see the node's routes and firewall, and masquerade in the configuration of its agent"
_UNREADY = "the pod's events say more; a network that only its own namespace may use needs --live-namespace"
_REACHED_OUTSIDE = "pods of this network must not leave it: look for a program or route that lets them"

_MAX_NAMED = 5  # nodes
_WITHOUT_ANSWER = {
    Aim.POD: _UNREACHED,
    Aim.GATEWAY: _GATEWAY,
    Aim.CLUSTER_IP: _CLUSTER_IP,
    Aim.OUTSIDE: _OUTSIDE,
}


class _Problem(NamedTuple):
    """What probes from one pod, whose findings are said at once, have in common; `subject` begins the text."""

    fault: Fault
    subject: str
    found: str
    advice: str


def judge(planned: Sequence[Planned], results: Sequence[Result], source: Attached) -> list[Finding]:
    """Returns the findings from the results of one pod, in the order of its probes."""
    problems: dict[_Problem, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for each, result in zip(planned, results, strict=True):
        problem = None if _is_unmade(result, source) else _problem(each, result)
        if problem is not None:
            node = each.peer.pod.node if each.peer is not None else ""
            problems[problem][node].add(Target(each.probe.target).family)
    return [
        Finding(source.pod.node, source.network, problem.fault, what, problem.found, advice=problem.advice)
        for problem, nodes in problems.items()
        for what in _texts(problem, nodes)
    ]


def unready(pod: LivePod, network: str, why: str) -> Finding:
    """Returns the finding of a pod that did not become ready."""
    return Finding(pod.node, network, Fault.UNREADY, f"temporary pod {pod.name}", why, advice=_UNREADY)


def why_unmade(results: Iterable[Result], source: Attached) -> str:
    """Returns why probes of a pod could not be made, empty if all were."""
    return next((each.detail for each in results if _is_unmade(each, source)), "")


def _is_unmade(result: Result, source: Attached) -> bool:
    """Whether a result says nothing: under a meta plugin another plugin may connect index 0, with its own address."""
    return result.outcome is Outcome.NOT_PERMITTED or (result.outcome is Outcome.ABSENT and not source.pod.nad)


def _problem(each: Planned, result: Result) -> _Problem | None:
    outcome = result.outcome
    if each.probe.expected:
        if outcome is Outcome.ANSWERED:
            return None
        if outcome is Outcome.SHORT:
            return _Problem(Fault.LOST, f"long packets to {_asked(each)}", "short packets arrive", _NARROW)
        return _Problem(Fault.UNREACHED, f"no answer from {_asked(each)}", result.detail, _WITHOUT_ANSWER[each.aim])
    if outcome not in (Outcome.ANSWERED, Outcome.SHORT):
        return None
    network = f" of network {each.peer.network}" if each.peer is not None else ""
    advice = _REACHED_OUTSIDE if each.aim is Aim.OUTSIDE else _LEAK
    return _Problem(Fault.LEAK, f"reaches {_asked(each)}{network}", "", advice)


def _asked(each: Planned) -> str:
    if each.aim is Aim.POD:
        return "pods"
    return f"{each.aim} {Target(each.probe.target, each.probe.port)}"


def _texts(problem: _Problem, nodes: dict[str, set[int]]) -> Iterator[str]:
    """Yields one text for the nodes whose pods are concerned in the same families; what is no pod has no node."""
    if "" in nodes:
        yield problem.subject
        return
    by_families: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for node, families in nodes.items():
        by_families[tuple(sorted(families))].append(node)
    for both, named in by_families.items():
        more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
        over = " and ".join(f"IPv{family}" for family in both)
        yield f"{problem.subject} on {', '.join(named[:_MAX_NAMED])}{more} over {over}"

"""Time line of a pod's start: its steps, those that last, and the longest one."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from contrail_config.kubernetes.pod_moments import moments_of
from contrail_config.kubernetes.pods import (
    Condition,
    ContainerState,
    ContainerStatus,
    CreatedMetadata,
    Pod,
    PodStatus,
    Running,
)
from contrail_config.pod_timeline import AddPhase, EndedAdd, Moments, longest_step, steps
from contrailctl.cluster.trace import Trace, trace_lines

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PHASES = (
    AddPhase("queue", 0.0, 0.25),
    AddPhase("list", 0.25, 1.0),
    AddPhase("make", 1.25, 0.25),
    AddPhase("connect", 1.5, 0.125),
    AddPhase("plug", 1.625, 0.125),
)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def add(began: float, *, message: str = "") -> EndedAdd:
    """An ADD of 2 s."""
    return EndedAdd(
        "shop", "web", "uid", "container", "eth0", at(began).timestamp(), 2.0, PHASES, 11 if message else 0, message
    )


def moments(**known: float) -> Moments:
    """Moments by seconds after the creation."""
    names = ("scheduled", "written", "sandbox", "initialized", "started", "ready")
    return msgspec.convert({"created": BEGIN, **dict.fromkeys(names), **{k: at(v) for k, v in known.items()}}, Moments)


STARTED = moments(scheduled=1, written=2, sandbox=5, started=9, ready=10)


def test_the_steps_of_a_started_pod_follow_each_other() -> None:
    found = steps(STARTED, [add(2)])
    assert [(step.name, (step.began - BEGIN).total_seconds()) for step in found] == [
        ("choose a node", 0),
        ("assign interfaces", 1),
        ("begin the sandbox", 1),
        ("ADD: wait for a slot of the daemon", 2),
        ("ADD: wait for the interface list", 2.25),
        ("ADD: create the links", 3.25),
        ("ADD: connect them to their networks", 3.5),
        ("ADD: wait for the agent to store the ports", 3.625),
        ("ADD: answer", 3.75),
        ("finish the sandbox", 4),
        ("pull images and start containers", 5),
        ("become ready", 9),
    ]
    assert all(step.ended is not None for step in found)
    longest = longest_step(found, now=at(10))
    assert longest is not None
    assert longest.name == "pull images and start containers"


def test_a_pod_that_starts_within_a_second_is_ready_after_its_add() -> None:
    """Kubernetes has the same second for all, which is earlier than the ADD."""
    found = steps(moments(scheduled=2, written=2, sandbox=4, started=4, ready=4), [add(2.5)])
    assert [step.name for step in found][-4:] == [
        "ADD: answer",
        "finish the sandbox",
        "pull images and start containers",
        "become ready",
    ]
    assert [
        (step.name, step.began, step.ended) for step in found if step.ended is None or step.ended < step.began
    ] == []
    assert {(step.began, step.ended) for step in found[-3:]} == {(at(4.5), at(4.5))}


def test_a_sandbox_that_was_ready_seconds_before_the_add_stays_so() -> None:
    """It was one before the last ADD, or clocks differ: to move it would hide that."""
    found = steps(moments(scheduled=1, written=1, sandbox=2, started=2, ready=2), [add(2.5)])
    began = {step.name: step.began for step in found}
    assert (began["finish the sandbox"], began["become ready"]) == (at(4.5), at(2))


def test_a_failed_add_and_the_wait_after_it_are_steps() -> None:
    found = steps(STARTED, [add(2, message="no addresses"), add(34)])
    details = {step.name: step.detail for step in found if step.detail.startswith("failed")}
    assert details == {"ADD: answer": "failed with code 11: no addresses"}
    longest = longest_step(found, now=at(40))
    assert longest is not None
    assert (longest.name, longest.began, longest.ended) == ("wait after a failed ADD", at(4), at(34))


def test_a_pod_whose_last_add_failed_waits_for_the_next_one() -> None:
    last = steps(moments(scheduled=1, written=2), [add(2, message="no addresses")], problem="FailedCreatePodSandBox")[
        -1
    ]
    assert (last.name, last.by, last.ended, last.detail) == (
        "wait after a failed ADD",
        "kubelet",
        None,
        "FailedCreatePodSandBox",
    )


def test_the_last_step_of_a_waiting_pod_lasts_and_says_why() -> None:
    found = steps(moments(scheduled=1), [], problem="NetworkNotFound: NAD shop/missing")
    lasting = [(step.name, step.detail) for step in found if step.ended is None]
    assert lasting == [
        ("assign interfaces", ""),
        ("create the sandbox", "NetworkNotFound: NAD shop/missing"),
    ]


def test_a_pod_without_a_node_waits_for_the_scheduler() -> None:
    assert [(step.name, step.by, step.ended) for step in steps(moments(), [])] == [("choose a node", "scheduler", None)]


@pytest.mark.parametrize("is_over", [True, False])
def test_a_pod_that_has_ended_does_not_become_ready(is_over: bool) -> None:
    phase = "Succeeded" if is_over else "Running"
    pod = Pod(CreatedMetadata(creation_timestamp=BEGIN), status=PodStatus(phase=phase, conditions=CONDITIONS))
    names = [step.name for step in steps(moments_of(pod, written=at(1), now=at(9)), [])]
    assert ("pull images and start containers" in names) is not is_over


CONDITIONS = (
    Condition("PodScheduled", "True", at(1)),
    Condition("PodReadyToStartContainers", "True", at(2)),
    Condition("Ready", "False", at(3)),
)


def test_moments_are_those_of_conditions_and_of_the_last_container() -> None:
    containers = tuple(
        ContainerStatus(name, state=ContainerState(running=Running(at(seconds))))
        for name, seconds in (("a", 4), ("b", 3))
    )
    status = PodStatus(phase="Running", conditions=CONDITIONS, container_statuses=containers)
    pod = Pod(CreatedMetadata(creation_timestamp=BEGIN), status=status)
    found = moments_of(pod, written=None, now=at(9))
    assert found == Moments(BEGIN, at(1), None, at(2), None, at(4), None)


def test_the_time_line_is_shown_as_a_table() -> None:
    found = steps(moments(scheduled=1, written=2, sandbox=5), [add(2)])
    longest = longest_step(found, now=at(65))
    trace = Trace("shop", "web", "uid", "node-1", "Pending", tuple(found), longest, "")
    assert "\n".join(trace_lines(trace, now=at(65))).splitlines() == [
        "Pod shop/web on node-1: Pending",
        "",
        "BEGAN          AFTER     TOOK          BY          STEP                                         DETAIL",
        "00:00:00       0 s       ~1 s          scheduler   choose a node                                -",
        "00:00:01       1 s       ~1 s          manager     assign interfaces                            -",
        "00:00:01       1 s       ~1 s          kubelet     begin the sandbox                            -",
        "00:00:02.000   2.000 s   0.250 s       cnid        ADD: wait for a slot of the daemon           eth0",
        "00:00:02.250   2.250 s   1.000 s       cnid        ADD: wait for the interface list             eth0",
        "00:00:03.250   3.250 s   0.250 s       cnid        ADD: create the links                        eth0",
        "00:00:03.500   3.500 s   0.125 s       cnid        ADD: connect them to their networks          eth0",
        "00:00:03.625   3.625 s   0.125 s       cnid        ADD: wait for the agent to store the ports   eth0",
        "00:00:03.750   3.750 s   0.250 s       cnid        ADD: answer                                  eth0",
        "00:00:04       4 s       ~1 s          runtime     finish the sandbox                           -",
        "00:00:05       5 s       60 s so far   kubelet     pull images and start containers             -",
        "",
        "Longest step: pull images and start containers (kubelet), 60 s so far",
    ]


def test_what_is_missing_is_said() -> None:
    trace = Trace("shop", "web", "uid", "", "Pending", (), None, "it has no node")
    assert list(trace_lines(trace, now=BEGIN)) == [
        "Pod shop/web on no node yet: Pending",
        "",
        "Without the ADDs of the pod: it has no node",
    ]

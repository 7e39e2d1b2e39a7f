"""Time line of a pod's start: its steps, from what Kubernetes, the store and the node's daemon recorded. Pure.

Kubernetes cuts its times to whole seconds, and each comes from the clock of the machine that wrote it; the times of an
ADD are exact. Manager and node work at the same time, so steps overlap.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

_TRUNCATION = timedelta(seconds=1)
"""By how much a time of Kubernetes may be too early."""

_PHASES = {
    "queue": "ADD: wait for a slot of the daemon",
    "list": "ADD: wait for the interface list",
    "make": "ADD: create the links",
    "connect": "ADD: connect them to their networks",
    "plug": "ADD: wait for the agent to store the ports",
}


class AddPhase(msgspec.Struct, frozen=True):
    """A phase of an ADD; both times are in seconds, `after` from its beginning."""

    name: str
    after: float
    seconds: float


class EndedAdd(msgspec.Struct, frozen=True):
    """An ADD that has ended: `began` in seconds since the epoch, `code` 0 and no `message` if it succeeded."""

    namespace: str
    pod: str
    uid: str
    container: str
    ifname: str
    began: float
    seconds: float
    phases: tuple[AddPhase, ...] = ()
    code: int = 0
    message: str = ""


class Step(msgspec.Struct, frozen=True):
    """A step; `ended` is None as long as it lasts. `by`: who takes it. Not `exact`: times are cut to seconds."""

    name: str
    by: str
    began: datetime
    ended: datetime | None
    exact: bool = False
    detail: str = ""


class Moments(msgspec.Struct, frozen=True):
    """When what is outside of the daemon happened; None: not yet, or not recorded.

    `written`: the interface list in the store. `sandbox`: the pod's sandbox is ready. `started`: the last container.
    `is_over`: all containers have ended for good.
    """

    created: datetime
    scheduled: datetime | None
    written: datetime | None
    sandbox: datetime | None
    initialized: datetime | None
    started: datetime | None
    ready: datetime | None
    is_over: bool = False


def steps(moments: Moments, adds: Sequence[EndedAdd], *, problem: str = "") -> list[Step]:
    """Returns the steps by their beginnings. `problem`: what the pod waits for, if it has no sandbox."""
    moments = _not_before_the_last_add(moments, adds)
    found = [*_before_the_node(moments), *_on_the_node(moments, adds, problem), *_of_containers(moments)]
    known = (step for step in found if step.ended is not None or not moments.is_over)
    return sorted(known, key=lambda step: step.began)


def longest_step(found: Iterable[Step], *, now: datetime) -> Step | None:
    """Returns the step that took longest, also one that still lasts; None if none took any time."""
    step = max(found, key=lambda each: duration(each, now=now), default=None)
    return step if step is not None and duration(step, now=now) > timedelta() else None


def duration(step: Step, *, now: datetime) -> timedelta:
    """Returns how long a step took, or has lasted; never less than 0, since clocks differ."""
    return max(timedelta(), (step.ended or now) - step.began)


def _not_before_the_last_add(moments: Moments, adds: Sequence[EndedAdd]) -> Moments:
    """Returns the moments, with those that follow the last ADD moved to its end where truncation places them before it.

    These moments and the ADD are from the node's clock. Without this, a pod would be ready before its ADD.
    """
    if not adds:
        return moments
    end = _end(adds[-1])

    def adjusted(time: datetime | None) -> datetime | None:
        return end if time is not None and time < end < time + _TRUNCATION else time

    return msgspec.structs.replace(
        moments,
        sandbox=adjusted(moments.sandbox),
        initialized=adjusted(moments.initialized),
        started=adjusted(moments.started),
        ready=adjusted(moments.ready),
    )


def _before_the_node(moments: Moments) -> Iterator[Step]:
    yield Step("choose a node", "scheduler", moments.created, moments.scheduled)
    if moments.scheduled is not None and (moments.written is not None or moments.sandbox is None):
        yield Step("assign interfaces", "manager", moments.scheduled, moments.written)


def _on_the_node(moments: Moments, adds: Sequence[EndedAdd], problem: str) -> Iterator[Step]:
    if moments.scheduled is None:
        return
    if not adds:
        yield Step("create the sandbox", "node", moments.scheduled, moments.sandbox, detail=problem)
        return
    yield Step("begin the sandbox", "kubelet", moments.scheduled, _time(adds[0].began))
    previous: EndedAdd | None = None
    for add in adds:
        if previous is not None and previous.message:
            yield Step("wait after a failed ADD", "kubelet", _end(previous), _time(add.began), exact=True)
        yield from _of_add(add)
        previous = add
    if adds[-1].message and moments.sandbox is None:
        yield Step("wait after a failed ADD", "kubelet", _end(adds[-1]), None, detail=problem)
    else:
        yield Step("finish the sandbox", "runtime", _end(adds[-1]), moments.sandbox, detail=problem)


def _of_add(add: EndedAdd) -> Iterator[Step]:
    """Yields the phases, and what was between them, which is the plugin's own work."""
    began = _time(add.began)
    until = 0.0
    for phase in add.phases:
        yield Step(
            _PHASES.get(phase.name, f"ADD: {phase.name}"),
            "cnid",
            began + timedelta(seconds=phase.after),
            began + timedelta(seconds=phase.after + phase.seconds),
            exact=True,
            detail=add.ifname,
        )
        until = phase.after + phase.seconds
    detail = f"failed with code {add.code}: {add.message}" if add.message else add.ifname
    yield Step("ADD: answer", "cnid", began + timedelta(seconds=until), _end(add), exact=True, detail=detail)


def _of_containers(moments: Moments) -> Iterator[Step]:
    begin = moments.sandbox
    if begin is None:
        return
    if moments.initialized is not None:
        yield Step("run init containers", "kubelet", begin, moments.initialized)
        begin = max(begin, moments.initialized)
    yield Step("pull images and start containers", "kubelet", begin, moments.started)
    if moments.started is not None:
        yield Step("become ready", "containers", moments.started, moments.ready)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _end(add: EndedAdd) -> datetime:
    return _time(add.began + add.seconds)

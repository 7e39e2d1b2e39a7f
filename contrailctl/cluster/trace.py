"""`contrailctl trace`: the start of one pod as a time line, with its longest step."""

import argparse
import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeNotFoundError
from contrail_config.kubernetes.pod_moments import find_virtual_machine, lacks_sandbox, moments_of, written_at
from contrail_config.kubernetes.pods import PODS, Pod
from contrail_config.pod_timeline import Step, duration, longest_step, steps
from contrailctl.cluster.node_adds import read_adds
from contrailctl.cluster.pending_pods import pending_reason
from contrailctl.errors import NotFoundError
from contrailctl.kubeconfig import connected
from contrailctl.output import Output
from contrailctl.pod_key import parse_pod_key
from contrailctl.progress import Progress
from contrailctl.table import format_table, printable

_HEADER = ("BEGAN", "AFTER", "TOOK", "BY", "STEP", "DETAIL")


class Trace(msgspec.Struct, frozen=True):
    """The start of a pod; `longest` is one of the steps, `note` says what is missing of them."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    steps: tuple[Step, ...]
    longest: Step | None
    note: str


def trace_pod(arguments: argparse.Namespace) -> Output:
    """Returns the time line of the pod NAMESPACE/NAME. Raises ContrailctlError."""
    trace = asyncio.run(_read(arguments))
    return Output("\n".join(trace_lines(trace, now=datetime.now(UTC))), trace)


async def _read(arguments: argparse.Namespace) -> Trace:
    namespace, name = parse_pod_key(arguments.pod)
    async with Progress() as progress, connected(arguments) as client:
        progress.stage("reading the pod")
        pod = await _find_pod(client, namespace, name)
        machine = await find_virtual_machine(client, pod)
        problem = ""
        if pod.spec.node_name and lacks_sandbox(pod):
            problem = ": ".join(await pending_reason(client, pod, machine))
        written = await written_at(client, pod, machine)
        progress.stage(f"asking the daemon of {pod.spec.node_name}")
        node = await read_adds(client, pod, arguments)
    now = datetime.now(UTC)
    found = steps(moments_of(pod, written=written, now=now), node.adds, problem=problem)
    longest = longest_step(found, now=now)
    return Trace(
        namespace, name, pod.metadata.uid, pod.spec.node_name, pod.status.phase, tuple(found), longest, node.note
    )


async def _find_pod(client: KubeClient, namespace: str, name: str) -> Pod:
    try:
        return await client.get(PODS, name, namespace=namespace)
    except KubeNotFoundError as error:
        raise NotFoundError(f"pod {namespace}/{name} not found") from error


def trace_lines(trace: Trace, *, now: datetime) -> Iterator[str]:
    """Yields the time line as text."""
    yield f"Pod {trace.namespace}/{trace.name} on {trace.node or 'no node yet'}: {trace.phase}"
    if trace.steps:
        first = trace.steps[0].began
        yield from ("", format_table(_HEADER, [_row(step, first, now) for step in trace.steps]))
    yield ""
    if trace.longest is not None:
        step = trace.longest
        yield f"Longest step: {step.name} ({step.by}), {_took(step, now)}"
    if trace.note:
        yield f"Without the ADDs of the pod: {printable(trace.note)}"


def _row(step: Step, first: datetime, now: datetime) -> tuple[str, ...]:
    digits = 3 if step.exact else 0
    began = step.began.strftime("%H:%M:%S") + (f".{step.began.microsecond // 1000:03}" if step.exact else "")
    after = f"{max(0.0, (step.began - first).total_seconds()):.{digits}f} s"
    return (began, after, _took(step, now), step.by, step.name, step.detail)


def _took(step: Step, now: datetime) -> str:
    seconds = duration(step, now=now).total_seconds()
    if step.ended is None:
        return f"{seconds:.0f} s so far"
    return f"{seconds:.3f} s" if step.exact else f"~{seconds:.0f} s"

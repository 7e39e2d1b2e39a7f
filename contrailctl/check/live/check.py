"""The live check: creates temporary pods, lets each make its probes, judges the results, and removes the pods."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient
from contrail_config.kube.errors import KubeNotFoundError
from contrail_config.kube.selector import Selector
from contrail_config.kubernetes.kinds import NAMESPACE_LABEL
from contrail_config.kubernetes.validated import VALIDATED_VIRTUAL_MACHINES
from contrail_config.objects import VirtualNetwork
from contrailctl.check.commands import CONCURRENT, CommandError, answer_of, kubectl_exec
from contrailctl.check.findings import Fault, Finding
from contrailctl.check.live import wire
from contrailctl.check.live.interrupts import interrupts_cancel
from contrailctl.check.live.judgement import judge, unready, why_unmade
from contrailctl.check.live.manifests import CONTAINER, SERVICES, pod_manifest
from contrailctl.check.live.options import has_gateway
from contrailctl.check.live.plan import Attached, LivePod, Planned, plan_probes
from contrailctl.check.live.removal import BY_HAND, removed_at_end
from contrailctl.check.live.run import new_run
from contrailctl.check.live.target import Target
from contrailctl.check.live.temporary_pods import TemporaryPods, remove_left_behind
from contrailctl.check.node_agent import INDEX_0_NAME

READY_SECONDS = 120.0
"""Until pods are ready."""

_EXEC_SECONDS = 30.0  # for what is not waiting for answers
_REMOVE_SECONDS = 60.0
_NOT_RUN = "see whether kubectl exec works by hand in a pod of this node, and whether --image is this release"
_NO_INTERFACE = "no interface in the store"


class LivePlan(NamedTuple):
    """What is created: places of the pods, their networks by NAD, and the image of each node.

    `namespace` is empty for a temporary one. `kubectl` are options of that command.
    """

    places: Sequence[tuple[str, str]]
    networks: Mapping[str, VirtualNetwork]
    images: Mapping[str, str]
    namespace: str
    outside: Sequence[Target]
    kubectl: Sequence[str]


class LiveResult(NamedTuple):
    """What was found, what was not checked, and how many probes were made."""

    findings: list[Finding]
    notes: list[str]
    probes: int


async def check_live(client: KubeClient, plan: LivePlan, *, limit: float | None) -> LiveResult:
    """Runs the check; pods have `limit` seconds to be ready. Raises KubeError, KeyboardInterrupt."""
    ready_seconds, probe_seconds = limit or READY_SECONDS, _probe_seconds(len(plan.places))
    seconds = ready_seconds + probe_seconds * math.ceil(len(plan.places) / CONCURRENT) + _REMOVE_SECONDS
    run = new_run(seconds)
    pods = [LivePod(f"{run.name}-{number}", *place) for number, place in enumerate(plan.places, start=1)]
    made = TemporaryPods(client, run, namespace=plan.namespace)
    manifests = [
        pod_manifest(
            run,
            pod,
            image=plan.images[pod.node],
            seconds=math.ceil(seconds),
            default_gateway=bool(pod.nad) and has_gateway(plan.networks[pod.nad]),
        )
        for pod in pods
    ]
    with interrupts_cancel():
        await remove_left_behind(client)
        async with removed_at_end(made, seconds=_REMOVE_SECONDS) as left:
            reasons = await made.create(manifests)
            names = [pod.name for pod in pods if pod.name not in reasons]
            awaited = await made.await_ready(names, seconds=ready_seconds)
            attached = await _attached(client, made.namespace, [pod for pod in pods if pod.name in awaited.ready])
            result = await _probed(client, plan, made.namespace, attached, limit=probe_seconds)
    known = {each.pod for each in attached}
    reasons = {**reasons, **awaited.reasons}
    result.findings.extend(
        unready(pod, _network_name(pod, plan), reasons.get(pod.name, _NO_INTERFACE)) for pod in pods if pod not in known
    )
    result.findings.extend(Finding("", "", Fault.STALE, each, advice=BY_HAND) for each in left)
    return result


def _probe_seconds(pods: int) -> float:
    """Returns how long the probes of one of so many pods may take, if none of the answers comes that must come."""
    rounds = math.ceil(2 * pods / wire.CONCURRENT)  # in two families
    return _EXEC_SECONDS + rounds * (wire.EXPECTED_SECONDS + wire.LONG_SECONDS + wire.UNEXPECTED_SECONDS)


def _network_name(pod: LivePod, plan: LivePlan) -> str:
    return plan.networks[pod.nad].name if pod.nad else INDEX_0_NAME


async def _attached(client: KubeClient, namespace: str, pods: Sequence[LivePod]) -> list[Attached]:
    """Returns the pods whose interface the store has."""
    selector = Selector(labels=f"{NAMESPACE_LABEL}={namespace}")
    items = await client.list_all(VALIDATED_VIRTUAL_MACHINES, selector)
    machines = {each.spec.pod: each.spec for each in items if each.is_trusted and each.is_in_place}
    found = []
    for pod in pods:
        interfaces = machines[pod.name].interfaces if pod.name in machines else ()
        if len(interfaces) > pod.position:
            found.append(Attached(pod, interfaces[pod.position]))
    return found


async def _probed(
    client: KubeClient, plan: LivePlan, namespace: str, attached: Sequence[Attached], *, limit: float
) -> LiveResult:
    planned = plan_probes(attached, cluster_ips=await _cluster_ips(client), outside=plan.outside)
    slots = asyncio.Semaphore(CONCURRENT)

    async def probe(source: Attached) -> tuple[list[Finding], list[str]]:
        async with slots:
            command = kubectl_exec(plan.kubectl, namespace, source.pod.name, CONTAINER, "--stdin")
            return await probe_pod(source, planned[source.pod], command, limit=limit)

    results = await asyncio.gather(*(probe(source) for source in attached))
    findings = [finding for each, _ in results for finding in each]
    return LiveResult(findings, [note for _, notes in results for note in notes], sum(map(len, planned.values())))


async def probe_pod(
    source: Attached, planned: Sequence[Planned], command: Sequence[str], *, limit: float
) -> tuple[list[Finding], list[str]]:
    """Lets a pod make its probes, by a command that runs another one in it; returns findings and notes."""
    given = msgspec.json.encode([each.probe for each in planned])
    try:
        results = await answer_of(
            [*command, "contrailctl", "check", "probe", "--output", "json"], list[wire.Result], limit=limit, given=given
        )
    except CommandError as error:
        return [_unprobed(source, str(error))], []
    if len(results) != len(planned):
        return [_unprobed(source, f"{len(results)} results of {len(planned)} probes")], []
    note = why_unmade(results, source)
    return judge(planned, results, source), [f"{source.pod.node}: {source.network}: {note}"] if note else []


def _unprobed(source: Attached, why: str) -> Finding:
    what = f"probes from temporary pod {source.pod.name}"
    return Finding(source.pod.node, source.network, Fault.UNCHECKED, what, why, advice=_NOT_RUN)


async def _cluster_ips(client: KubeClient) -> list[Target]:
    """Returns those of the Service of the API server, which every cluster has."""
    try:
        service = await client.get(SERVICES, "kubernetes", namespace="default")
    except KubeNotFoundError:
        return []
    return [Target(address, port.port) for address in service.spec.cluster_ips for port in service.spec.ports]

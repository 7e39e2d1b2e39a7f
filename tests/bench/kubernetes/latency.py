"""Benchmark of latency from the binding of a pod until the agent of its node serves its interfaces.

Everything except kubelet is real: kube-apiserver with etcd, a manager and an agent. Existing pods are bound at fixed
times. Latency counts from the response to the binding until the response to `/vm-cfg?wait=`, which is requested
immediately, as by a plugin. All pods are on one node, so its agent has the load of many nodes. They are deleted after
each round: no node has thousands of pods, nor slices with as many endpoints. The manager writes network slices, as in
`deploy/base`. Writes are counted with slices and events, without leases.

At the end the manager is killed and started again on the same host.

Server, manager, agent and client share the host, so the median of several rounds is reported, with the processor use of
each process.
"""

import asyncio
import functools
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from contrail_config.kube.client import connect
from contrail_config.kube.configuration.load import load_client_config
from tests.bench.agent_vm_cfg import Connect, get, processor_seconds
from tests.bench.built_apiserver import built_apiserver
from tests.bench.kubernetes.processes import pid_of
from tests.bench.kubernetes.server_writes import counted_writes_and_events
from tests.bench.process_timing import summary
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.real_apiserver.server import ApiServer

RATE = 100  # pods per second
ROUNDS = 5
SECONDS = 5.0  # of a round
QUICK_SECONDS = 0.5
SETTLING_SECONDS = 60.0
NODE = "bench-node"
NETWORKS = {"net-a": "10.64.0.0/14", "net-b": "10.128.0.0/14,fd00:128::/64"}  # three interfaces, four addresses


class Cluster(NamedTuple):
    """The processes, and the client that creates pods."""

    server: ApiServer
    agent: AgentProcess
    users: NamespaceObjects
    pids: dict[str, int]


class Round(NamedTuple):
    """Latency of each pod in seconds, and duration, processor seconds and writes of the round."""

    times: list[float]
    seconds: float
    processor: dict[str, float]
    writes: Counter[str]


def main(*, quick: bool = False) -> dict[str, Any]:
    """Builds the server if the environment names no binaries, runs the benchmark and returns the results."""
    with built_apiserver() as server, tempfile.TemporaryDirectory() as temporary:
        work, kubeconfig = Path(temporary), server.kubeconfig()
        manager = ManagerProcess(work, kubeconfig, network_slices=True)
        _add_node(server)
        agent = AgentProcess(work, kubeconfig, node=NODE)
        with running(manager, agent):
            manager.wait_until_it_leads()
            measured = asyncio.run(_measure(server, manager, agent, quick=quick))
            return measured | {"killed manager, restarted": {"leads_again_s": _restart_killed(manager)}}


def _add_node(server: ApiServer) -> None:
    """Creates the node with the address that its network slices need."""
    server.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})
    status = {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}
    server.ask("PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status})


def _restart_killed(manager: ManagerProcess) -> float:
    """Seconds from the kill until the manager leads again and has compared all pods."""
    started = time.perf_counter()
    manager.kill()
    manager.launch()
    manager.wait_until_it_leads()
    return round(time.perf_counter() - started, 1)


async def _measure(server: ApiServer, manager: ManagerProcess, agent: AgentProcess, *, quick: bool) -> dict[str, Any]:
    pods = int(RATE * (QUICK_SECONDS if quick else SECONDS))
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig()))) as client:
        pids = {"manager": pid_of(manager), "agent": pid_of(agent), "apiserver": server.pid, "etcd": server.etcd.pid}
        cluster = Cluster(server, agent, NamespaceObjects(client, "default"), pids)
        for name, cidr in NETWORKS.items():
            await cluster.users.add_nad(name, cidr=cidr)
        await _round(cluster, "warm", pods)
        rounds = [await _round(cluster, f"round-{number}", pods) for number in range(1 if quick else ROUNDS)]
    rounds.sort(key=lambda each: summary(each.times)["p99_ms"])
    return _report(rounds, pods)


async def _round(cluster: Cluster, name: str, pods: int) -> Round:
    """Creates pods, then binds them at the fixed rate."""
    names = [f"{name}-{number}" for number in range(pods)]
    for pod in names:
        await cluster.users.add_pod(pod, networks=",".join(NETWORKS))
    before_processor, before_writes = _processor(cluster), counted_writes_and_events(cluster.server)
    begin = time.perf_counter() + 0.1
    ask: Connect = functools.partial(asyncio.open_unix_connection, str(cluster.agent.socket))

    async def bind(number: int) -> float:
        await asyncio.sleep(begin + number / RATE - time.perf_counter())
        await cluster.users.bind(names[number], NODE)
        return await _served(ask, names[number])

    times = await asyncio.gather(*map(bind, range(pods)))
    seconds = time.perf_counter() - begin
    processor = {key: value - before_processor[key] for key, value in _processor(cluster).items()}
    await _end_of_writes(cluster.server)
    writes = counted_writes_and_events(cluster.server) - before_writes
    for pod in names:
        await cluster.users.remove_pod(pod)
    await _end_of_writes(cluster.server)
    return Round(times, seconds, processor, writes)


async def _end_of_writes(server: ApiServer) -> None:
    """Waits until nothing was written for a second: network statuses and events follow in the background."""
    deadline = time.monotonic() + SETTLING_SECONDS
    written = None
    while written != (written := counted_writes_and_events(server)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the manager still writes after {SETTLING_SECONDS:g} s")
        await asyncio.sleep(1)


async def _served(ask: Connect, pod: str) -> float:
    """Seconds until the response of the agent."""
    started = time.perf_counter()
    await get(ask, f"/vm-cfg/k8s__default__{pod}?wait=30")
    return time.perf_counter() - started


def _processor(cluster: Cluster) -> dict[str, float]:
    """Processor seconds used by each process."""
    used = {name: processor_seconds(pid) for name, pid in cluster.pids.items()}
    return used | {"asking": time.process_time()}


def _without_events(writes: Counter[str]) -> int:
    return sum(count for what, count in writes.items() if not what.endswith(" events"))


def _report(rounds: list[Round], pods: int) -> dict[str, Any]:
    middle = rounds[len(rounds) // 2]
    return {
        f"bound to served, {RATE} pods/s": summary(middle.times)
        | {"worst_p99_ms": summary(rounds[-1].times)["p99_ms"], "best_p99_ms": summary(rounds[0].times)["p99_ms"]},
        "writes of a pod": {what: round(count / pods, 2) for what, count in sorted(middle.writes.items())}
        | {
            "all": round(middle.writes.total() / pods, 2),
            "without events": round(_without_events(middle.writes) / pods, 2),
        },
        "processors taken": {name: round(used / middle.seconds, 2) for name, used in middle.processor.items()},
        "load of the machine": round(os.getloadavg()[0], 1),
    }

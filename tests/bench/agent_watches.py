"""Benchmark of the agents' watches of virtual machines: cost for a Kubernetes API server, and latency.

Two methods are compared on a real server while virtual machines are written at a fixed rate:

- A watch of virtual machines by node label, as agents do it. Watches of custom resources have no index, even with
  `selectableFields`, so the server matches each change with each watch: the cost grows with nodes times changes.
- A watch of pods by `spec.nodeName`, which is indexed, and for each new pod a watch of the virtual machine of that
  name, which is indexed, too, until it exists. The cost does not grow with nodes, but each pod needs a request, and
  each change of a pod causes an event.

The result is processor time of the server process, which is more meaningful than durations on a shared host. One
process simulates all agents, with one connection per watch.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.resource import Resource
from contrail_config.kube.selector import Selector
from contrail_config.kube.watch import WatchType
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import VIRTUAL_MACHINES, virtual_machine_object
from contrail_config.kubernetes.virtual_machines import node_selector
from manager.kubernetes.wire import PODS
from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.built_apiserver import built_apiserver
from tests.bench.process_timing import summary
from tests.support.real_apiserver.server import ApiServer
from tests.support.virtual_machines import make_virtual_machine, pod_interface

RATE = 100  # virtual machines per second
SECONDS = 10.0  # of a round
WATCHES = (0, 50, 200, 500)
CLUSTER = 5000  # nodes for which the cost is extrapolated
INTERFACES = 3
QUIET_TIME = 1.0  # seconds for background work of the server after many watches started

_CORES = f"cores_at_{RATE}_pods_per_s_on_{CLUSTER}_nodes"

Follow = Callable[["Agents", str], Coroutine[None, None, None]]
"""Watches a node until it is cancelled and records virtual machines in the agents."""


class Round(NamedTuple):
    """Processor seconds and memory (MiB) of the server, and the latency from the start of each write to its event."""

    processor: float
    memory: float
    times: list[float]


class Agents:
    """Simulated agents of many nodes; they record when they received each virtual machine, by pod name."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.received: dict[str, float] = {}
        self.watching = 0
        self._changed = asyncio.Event()

    def watch_started(self) -> None:
        """Counts a started watch."""
        self.watching += 1
        self._changed.set()

    def receive(self, pod: str) -> None:
        """Records the virtual machine of a pod."""
        self.received[pod] = time.perf_counter()
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition holds."""
        async with asyncio.timeout(60):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


async def follow_machines(agents: Agents, node: str) -> None:
    """Watches virtual machines by node label, as agents do."""
    since = await _version(agents.client, VIRTUAL_MACHINES)
    async with agents.client.watch(VIRTUAL_MACHINES, node_selector(node), since=since, seconds=3600) as events:
        agents.watch_started()
        async for event in events:
            if event.type is WatchType.ADDED:
                agents.receive(event.metadata.name)


async def follow_pods(agents: Agents, node: str) -> None:
    """Watches the pods of the node, and the virtual machine of each."""
    since = await _version(agents.client, PODS)
    selection = Selector(fields=f"spec.nodeName={node}")
    async with (
        asyncio.TaskGroup() as tasks,
        agents.client.watch(PODS, selection, since=since, seconds=3600) as events,
    ):
        agents.watch_started()
        async for event in events:
            if event.type is WatchType.ADDED:
                tasks.create_task(_watch_until_created(agents, event.metadata.name))


async def _watch_until_created(agents: Agents, name: str) -> None:
    """Revision 0 makes the server send existing objects first, then changes."""
    selection = Selector(namespace="default", fields=f"metadata.name={name}")
    async with agents.client.watch(VIRTUAL_MACHINES, selection, since="0", seconds=60) as events:
        async for event in events:
            if event.type is WatchType.ADDED:
                agents.receive(name)
                return


async def _version(client: KubeClient, resource: Resource[Any]) -> str:
    async with contextlib.aclosing(client.pages(resource, length=1)) as pages:
        async for page in pages:
            return page.resource_version
    raise AssertionError("a list has at least one page")


async def measure(server: ApiServer) -> dict[str, Any]:
    """Runs all rounds and returns the results."""
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig()))) as client:
        await ensure_crds(client)
        await one_round(server, client, follow_pods, watches=10, with_pods=True)  # warm-up: the first round costs more
        labels = {count: await one_round(server, client, follow_machines, watches=count) for count in WATCHES}
        pods = {
            count: await one_round(server, client, follow_pods, watches=count, with_pods=True)
            for count in (WATCHES[0], WATCHES[-1])
        }
    return {
        "watches of machines by label": _rounds(labels) | _cost_per_watch(labels),
        "watches of pods by node, and of each machine by name": _rounds(pods) | _cost_per_pod(pods),
    }


async def one_round(
    server: ApiServer, client: KubeClient, follow: Follow, *, watches: int, with_pods: bool = False
) -> Round:
    """Writes virtual machines (each after its pod if `with_pods`) at the fixed rate, spread over one node per watch."""
    async with _following(client, follow, watches=watches) as agents:
        worked = processor_seconds(server.pid)
        begin = time.perf_counter()
        names = [uuid.uuid4().hex for _ in range(int(RATE * SECONDS))]

        async def write(number: int, name: str) -> float:
            await asyncio.sleep(begin + number / RATE - time.perf_counter())
            return await _write(client, name, node=f"node-{number % max(1, watches)}", with_pod=with_pods)

        started = dict(zip(names, await asyncio.gather(*map(write, range(len(names)), names)), strict=True))
        await agents.until(lambda: not watches or agents.received.keys() >= started.keys())
        await asyncio.sleep(begin + SECONDS + QUIET_TIME - time.perf_counter())
        processor = processor_seconds(server.pid) - worked
        times = [agents.received[name] - started[name] for name in names] if watches else []
        return Round(processor, _memory_mib(server.pid), times)


@contextlib.asynccontextmanager
async def _following(client: KubeClient, follow: Follow, *, watches: int) -> AsyncIterator[Agents]:
    agents = Agents(client)
    tasks = [asyncio.create_task(follow(agents, f"node-{number}")) for number in range(watches)]
    try:
        await agents.until(lambda: agents.watching == watches)
        await asyncio.sleep(QUIET_TIME)
        yield agents
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _write(client: KubeClient, name: str, *, node: str, with_pod: bool) -> float:
    """Writes a virtual machine and returns the time when the write started."""
    if with_pod:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    uid = str(uuid.uuid4())
    interfaces = tuple(pod_interface(uid, index) for index in range(INTERFACES))
    virtual_machine = make_virtual_machine(name, uid=uid, interfaces=interfaces, node=node)
    started = time.perf_counter()
    await client.create(VIRTUAL_MACHINES, virtual_machine_object(virtual_machine), namespace="default")
    return started


def _rounds(rounds: dict[int, Round]) -> dict[str, Any]:
    return {
        f"{count} watches": {
            "processor_s": round(each.processor, 2),
            "memory_mib": round(each.memory),
            **(summary(each.times) if each.times else {}),
        }
        for count, each in rounds.items()
    }


def _cost_per_watch(rounds: dict[int, Round]) -> dict[str, Any]:
    """Cost of one change at one watch, and of a cluster: each pod causes two changes, a creation and a deletion."""
    most = max(rounds)
    each = (rounds[most].processor - rounds[0].processor) / (RATE * SECONDS * most)
    cores = each * 2 * RATE * CLUSTER
    return {"cost": {"us_per_watch_and_change": round(each * 1e6, 2), _CORES: round(cores, 2)}}


def _cost_per_pod(rounds: dict[int, Round]) -> dict[str, Any]:
    """Cost of one new pod, independent of the number of nodes; the cost of later changes is not included."""
    each = (rounds[max(rounds)].processor - rounds[0].processor) / (RATE * SECONDS)
    return {"cost": {"us_per_pod": round(each * 1e6), _CORES: round(each * RATE, 2)}}


def _memory_mib(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def main() -> dict[str, Any]:
    """Builds the server if the environment names no binaries, and runs the benchmark."""
    with built_apiserver() as server:
        return asyncio.run(measure(server))

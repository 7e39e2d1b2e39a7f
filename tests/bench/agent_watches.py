"""What it costs a Kubernetes API server that each agent hears of its own node's machines, and how soon they hear.

Two ways are measured side by side on a real server, while machines are written at a fixed rate:

- a watch of machines by the node's label, as agents do it. Watches of custom kinds have no index, `selectableFields` or
  not, so the server holds each change against each watch: the cost grows with nodes times changes;
- a watch of pods by `spec.nodeName`, which has an index, and for each pod that comes one watch of the machine of its
  name, which has one too (the server finds watches of a single name at once), until the machine is there. The cost does
  not grow with the nodes, but there is one request for each pod, and an event for each change of a pod.

Told are processor seconds of the server's process, which say more on a shared machine than durations do. All agents
are played by one process, with a connection for each watch.
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

RATE = 100  # machines a second
SECONDS = 10.0  # of a round
WATCHES = (0, 50, 200, 500)
CLUSTER = 5000  # nodes that the costs are told for
INTERFACES = 3
SETTLING = 1.0  # seconds for what the server does on its own after many watches began

_CORES = f"cores_at_{RATE}_pods_per_s_on_{CLUSTER}_nodes"

Follow = Callable[["Agents", str], Coroutine[None, None, None]]
"""Follows a node for ever, and tells the agents what it hears of."""


class Round(NamedTuple):
    """Processor seconds and memory (MiB) of the server, and the time from each write's begin to its being heard of."""

    processor: float
    memory: float
    times: list[float]


class Agents:
    """Agents of many nodes: they note when they heard of a machine, by its pod's name."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.heard: dict[str, float] = {}
        self.watching = 0
        self._news = asyncio.Event()

    def watches(self) -> None:
        """One more watch was answered."""
        self.watching += 1
        self._news.set()

    def hear(self, pod: str) -> None:
        """The machine of a pod is there."""
        self.heard[pod] = time.perf_counter()
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when the condition holds."""
        async with asyncio.timeout(60):
            while not condition():
                self._news.clear()
                await self._news.wait()


async def follow_machines(agents: Agents, node: str) -> None:
    """As agents do it."""
    since = await _version(agents.client, VIRTUAL_MACHINES)
    async with agents.client.watch(VIRTUAL_MACHINES, node_selector(node), since=since, seconds=3600) as events:
        agents.watches()
        async for event in events:
            if event.type is WatchType.ADDED:
                agents.hear(event.metadata.name)


async def follow_pods(agents: Agents, node: str) -> None:
    """By the pods of the node, and the machine of each."""
    since = await _version(agents.client, PODS)
    selection = Selector(fields=f"spec.nodeName={node}")
    async with (
        asyncio.TaskGroup() as tasks,
        agents.client.watch(PODS, selection, since=since, seconds=3600) as events,
    ):
        agents.watches()
        async for event in events:
            if event.type is WatchType.ADDED:
                tasks.create_task(_await_machine(agents, event.metadata.name))


async def _await_machine(agents: Agents, name: str) -> None:
    """From version 0 on means: what is there first, then what changes."""
    selection = Selector(namespace="default", fields=f"metadata.name={name}")
    async with agents.client.watch(VIRTUAL_MACHINES, selection, since="0", seconds=60) as events:
        async for event in events:
            if event.type is WatchType.ADDED:
                agents.hear(name)
                return


async def _version(client: KubeClient, resource: Resource[Any]) -> str:
    async with contextlib.aclosing(client.pages(resource, length=1)) as pages:
        async for page in pages:
            return page.resource_version
    raise AssertionError("a list has at least one page")


async def measure(server: ApiServer) -> dict[str, Any]:
    """Runs all rounds and returns the numbers."""
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig()))) as client:
        await ensure_crds(client)
        await one_round(server, client, follow_pods, watches=10, with_pods=True)  # the server's first work is dearer
        labels = {count: await one_round(server, client, follow_machines, watches=count) for count in WATCHES}
        pods = {
            count: await one_round(server, client, follow_pods, watches=count, with_pods=True)
            for count in (WATCHES[0], WATCHES[-1])
        }
    return {
        "watches of machines by label": _rounds(labels) | _grows(labels),
        "watches of pods by node, and of each machine by name": _rounds(pods) | _stays(pods),
    }


async def one_round(
    server: ApiServer, client: KubeClient, follow: Follow, *, watches: int, with_pods: bool = False
) -> Round:
    """Writes machines (and a pod before each) at the fixed rate, spread over as many nodes as there are watches."""
    async with _following(client, follow, watches=watches) as agents:
        worked = processor_seconds(server.pid)
        begin = time.perf_counter()
        names = [uuid.uuid4().hex for _ in range(int(RATE * SECONDS))]

        async def write(number: int, name: str) -> float:
            await asyncio.sleep(begin + number / RATE - time.perf_counter())
            return await _write(client, name, node=f"node-{number % max(1, watches)}", with_pod=with_pods)

        begun = dict(zip(names, await asyncio.gather(*map(write, range(len(names)), names)), strict=True))
        await agents.until(lambda: not watches or agents.heard.keys() >= begun.keys())
        await asyncio.sleep(begin + SECONDS + SETTLING - time.perf_counter())
        processor = processor_seconds(server.pid) - worked
        times = [agents.heard[name] - begun[name] for name in names] if watches else []
        return Round(processor, _memory_mib(server.pid), times)


@contextlib.asynccontextmanager
async def _following(client: KubeClient, follow: Follow, *, watches: int) -> AsyncIterator[Agents]:
    agents = Agents(client)
    tasks = [asyncio.create_task(follow(agents, f"node-{number}")) for number in range(watches)]
    try:
        await agents.until(lambda: agents.watching == watches)
        await asyncio.sleep(SETTLING)
        yield agents
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _write(client: KubeClient, name: str, *, node: str, with_pod: bool) -> float:
    """Returns the moment at which the writing of the machine began."""
    if with_pod:
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    uid = str(uuid.uuid4())
    interfaces = tuple(pod_interface(uid, index) for index in range(INTERFACES))
    machine = make_virtual_machine(name, uid=uid, interfaces=interfaces, node=node)
    begun = time.perf_counter()
    await client.create(VIRTUAL_MACHINES, virtual_machine_object(machine), namespace="default")
    return begun


def _rounds(rounds: dict[int, Round]) -> dict[str, Any]:
    return {
        f"{count} watches": {
            "processor_s": round(each.processor, 2),
            "memory_mib": round(each.memory),
            **(summary(each.times) if each.times else {}),
        }
        for count, each in rounds.items()
    }


def _grows(rounds: dict[int, Round]) -> dict[str, Any]:
    """The cost of one change at one watch, and of all at all: a machine is made and deleted, and that is two."""
    most = max(rounds)
    each = (rounds[most].processor - rounds[0].processor) / (RATE * SECONDS * most)
    cores = each * 2 * RATE * CLUSTER
    return {"cost": {"us_per_watch_and_change": round(each * 1e6, 2), _CORES: round(cores, 2)}}


def _stays(rounds: dict[int, Round]) -> dict[str, Any]:
    """The cost of one pod that is told and read, wherever it is; what its later changes cost is not in it."""
    each = (rounds[max(rounds)].processor - rounds[0].processor) / (RATE * SECONDS)
    return {"cost": {"us_per_pod": round(each * 1e6), _CORES: round(each * RATE, 2)}}


def _memory_mib(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def main() -> dict[str, Any]:
    """Builds the server if no binaries are named, and measures."""
    with built_apiserver() as server:
        return asyncio.run(measure(server))

"""Benchmark of the agents' watches of virtual machines: processor time of a Kubernetes API server, and latency.

Each agent watches the bucket of its node, by the node's label. The server compares each change with the watches of the
same namespace only, so the cost falls with the number of buckets. Virtual machines are created and deleted at a fixed
rate while 5,000 agents watch, with several numbers of buckets; with one, which is how all virtual machines in one
namespace would perform, fewer agents watch and the cost is extrapolated.

The cost is the processor time of the server beyond that of the same writes without a watch, divided by the time that
the writes take at the nominal rate: a busy machine writes slower, but needs the same time for each write. Rounds take
turns, and their means are compared: the large heap of a server with 5,000 watches is collected in some of them only.
One process simulates all agents, with one connection per watch.
"""

import asyncio
import contextlib
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.selector import Selector
from contrail_config.kube.watch import WatchType
from contrail_config.kubernetes.bucket_namespaces import NAMESPACES, bucket_number
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import NODE_LABEL, VIRTUAL_MACHINES, virtual_machine_object
from contrail_config.kubernetes.node_buckets import BUCKETS
from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.built_apiserver import built_apiserver
from tests.bench.process_timing import summary
from tests.support.real_apiserver.server import ApiServer
from tests.support.virtual_machines import make_virtual_machine, pod_interface

RATE = 100  # virtual machines created per second, and deleted per second
PODS = 1000  # of a round
LIFETIME = 1.0  # seconds from the creation of a virtual machine to its deletion
AGENTS = 5000
AGENTS_OF_ONE_BUCKET = 500  # 5,000 would need more than the machine has
NUMBERS = (16, 32, 64)  # of buckets
TURNS = 3
INTERFACES = 3
QUIET_TIME = 2.0  # seconds for background work of the server after many watches started
CONCURRENT_STARTS = 64
CONCURRENT_WRITES = 32


class Round(NamedTuple):
    """Processor seconds and memory (MiB) of the server, and the latency from the start of each write to its event."""

    processor: float
    memory: float
    times: list[float]


class Agents:
    """Simulated agents; they record when they received each virtual machine, by uuid."""

    def __init__(self, client: KubeClient, *, buckets: int) -> None:
        self.client = client
        self.buckets = buckets
        self.received: dict[str, float] = {}
        self.watching = 0
        self._starts = asyncio.Semaphore(CONCURRENT_STARTS)
        self._changed = asyncio.Event()

    async def follow(self, node: str, *, since: str) -> None:
        """Watches the virtual machines of a node, after a resourceVersion, until it is cancelled."""
        selector = Selector(namespace=namespace_of(node, self.buckets), labels=f"{NODE_LABEL}={node}")
        is_first = True
        while True:  # a busy server closes watches whose readers fall behind
            async with contextlib.AsyncExitStack() as stack:
                async with self._starts:
                    watch = self.client.watch(VIRTUAL_MACHINES, selector, since=since, seconds=3600)
                    events = await stack.enter_async_context(watch)
                self.watching += is_first
                is_first = False
                self._changed.set()
                async for event in events:
                    since = event.metadata.resource_version
                    if event.type is WatchType.ADDED:
                        self.received[event.metadata.name] = time.perf_counter()
                        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition holds."""
        async with asyncio.timeout(900):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


def namespace_of(node: str, buckets: int) -> str:
    """The namespace of a node's virtual machines, with this number of buckets."""
    return f"bench-{buckets}-{bucket_number(node, buckets):02d}"


async def _version(client: KubeClient) -> str:
    async with contextlib.aclosing(client.pages(VIRTUAL_MACHINES, length=1)) as pages:
        return (await anext(pages)).resource_version


async def measure(server: ApiServer) -> dict[str, Any]:
    """Runs all rounds and returns the results."""
    async with connect(await load_client_config(kubeconfig=str(server.kubeconfig())), deadline=120) as client:
        await ensure_crds(client)
        await client.list_all(VIRTUAL_MACHINES)  # retried while the server initializes the storage of the new kind
        for buckets in (1, *NUMBERS):
            for number in range(buckets):
                await client.create(NAMESPACES, {"metadata": {"name": f"bench-{buckets}-{number:02d}"}})
        await one_round(server, client, buckets=BUCKETS, agents=10)  # warm-up: the first round costs more
        idle, one, many = list[Round](), list[Round](), {buckets: list[Round]() for buckets in NUMBERS}
        for _ in range(TURNS):
            idle.append(await one_round(server, client, buckets=BUCKETS, agents=0))
            one.append(await one_round(server, client, buckets=1, agents=AGENTS_OF_ONE_BUCKET))
            for buckets, rounds in many.items():
                rounds.append(await one_round(server, client, buckets=buckets, agents=AGENTS))
    without = statistics.fmean(each.processor for each in idle)
    return {
        "without watches": {"processor_s": [round(each.processor, 2) for each in idle]},
        "1 bucket": _result(one, without, agents=AGENTS_OF_ONE_BUCKET),
        **{f"{buckets} buckets": _result(rounds, without, agents=AGENTS) for buckets, rounds in many.items()},
    }


async def one_round(server: ApiServer, client: KubeClient, *, buckets: int, agents: int) -> Round:
    """Creates and deletes virtual machines at the fixed rate, spread over the nodes of the agents."""
    async with _following(client, buckets=buckets, agents=agents) as watchers:
        worked, begin = processor_seconds(server.pid), time.perf_counter()

        writes = asyncio.Semaphore(CONCURRENT_WRITES)

        async def live(number: int) -> tuple[str, float]:
            await asyncio.sleep(begin + number / RATE - time.perf_counter())
            return await _live(client, writes, node=f"node-{number % max(1, agents)}", buckets=buckets)

        started = dict(await asyncio.gather(*map(live, range(PODS))))
        if agents:
            await watchers.until(lambda: watchers.received.keys() >= started.keys())
        await asyncio.sleep(QUIET_TIME)
        processor = processor_seconds(server.pid) - worked
        times = [watchers.received[uid] - when for uid, when in started.items()] if agents else []
        return Round(processor, _memory_mib(server.pid), times)


@contextlib.asynccontextmanager
async def _following(client: KubeClient, *, buckets: int, agents: int) -> AsyncIterator[Agents]:
    watchers, since = Agents(client, buckets=buckets), await _version(client)
    async with asyncio.TaskGroup() as group:  # an agent that fails ends the benchmark
        tasks = [group.create_task(watchers.follow(f"node-{number}", since=since)) for number in range(agents)]
        await watchers.until(lambda: watchers.watching == agents)
        await asyncio.sleep(QUIET_TIME)
        yield watchers
        for task in tasks:
            task.cancel()


async def _live(client: KubeClient, writes: asyncio.Semaphore, *, node: str, buckets: int) -> tuple[str, float]:
    """Creates and deletes a virtual machine; returns its uuid and the time when its creation started."""
    uid = str(uuid.uuid4())
    interfaces = tuple(pod_interface(uid, index) for index in range(INTERFACES))
    item = virtual_machine_object(make_virtual_machine(uid, uid=uid, interfaces=interfaces, node=node))
    namespace = namespace_of(node, buckets)
    item = msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, namespace=namespace))
    async with writes:
        started = time.perf_counter()
        await client.create(VIRTUAL_MACHINES, item, namespace=namespace)
    await asyncio.sleep(LIFETIME)
    async with writes:
        await client.delete(VIRTUAL_MACHINES, uid, namespace=namespace)
    return uid, started


def _result(rounds: list[Round], without: float, *, agents: int) -> dict[str, Any]:
    """Cost of the watches, also of one watch and change, and extrapolated to all agents."""
    cost = statistics.fmean(each.processor for each in rounds) - without
    cores = cost / (PODS / RATE)
    return {
        "agents": agents,
        "processor_s": [round(each.processor, 2) for each in rounds],
        "memory_mib": round(max(each.memory for each in rounds)),
        **summary([seconds for each in rounds for seconds in each.times]),
        "us_per_watch_and_change": round(cost / (2 * PODS * agents) * 1e6, 3),
        f"cores_of_{AGENTS}_watches": round(cores * AGENTS / agents, 2),
    }


def _memory_mib(pid: int) -> float:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024


def main() -> dict[str, Any]:
    """Builds the server if the environment names no binaries, and runs the benchmark."""
    with built_apiserver() as server:
        return asyncio.run(measure(server))

"""Benchmark of the agents' watches of network slices: processor time of a Kubernetes API server, and deliveries.

Each simulated agent watches the slices of 20 networks, with one watch for all of them that are in one bucket, as real
agents do. Slices are changed at a fixed rate. The server compares each change with the watches of its bucket, and
delivers it to the agents of its network. Changes in a bucket with many watches of other networks tell what one
comparison costs, and large networks what one delivery does. From both follows the cost of a cluster that no single
machine can simulate, beside that which was designed for.

The cost is the processor time of the server beyond that of the same changes without a watch, as for virtual machines
(`agent_watches`). One process simulates all agents, with one connection per watch.
"""

import asyncio
import contextlib
import itertools
import random
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from statistics import mean
from typing import Any, NamedTuple

import msgspec

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kube.selector import Selector
from contrail_config.kube.watch import WatchType
from contrail_config.kubernetes.bucket_namespaces import NAMESPACES, bucket_namespace
from contrail_config.kubernetes.crds import ensure_crds
from contrail_config.kubernetes.kinds import (
    NETWORK_LABEL,
    NETWORK_SLICES,
    network_slice_name,
    network_slice_object,
)
from contrail_config.kubernetes.network_buckets import NETWORK_BUCKETS, network_bucket
from contrail_config.objects import Endpoint, NetworkSlice, network_uuid
from tests.bench.agent_vm_cfg import processor_seconds
from tests.bench.built_apiserver import built_apiserver
from tests.bench.process_timing import summary
from tests.support.real_apiserver.server import ApiServer

NETWORKS_OF_AGENT = 20
SIZES = (10, 100)
"""Agents of a network: a change is delivered to each."""

RATE = 100  # changes per second

CLUSTER_AGENTS = 5000
CLUSTER_RATE = 400  # changes of slices per second, of 100 pods that start and end with two networks each
CLUSTERS = {10: 0.14, 1000: 14.0, 5000: 70.0}
"""Agents of a network in the cluster, and the cores that deliveries were designed to take."""

MATCHING_CORES = 1.2
"""Cores that comparisons were designed to take."""

_NODE, _NAME = "node-1", ("default-domain", "k8s-bench", "k8s-slices-pod-network")
_CHANGED = 100  # networks whose slices are changed, in turn
_ENDPOINTS = 6  # of a slice
_QUIET_TIME = 2.0
_STARTS, _WRITES = 64, 32
_DEADLINE = 240.0


class Network(NamedTuple):
    """A network and the numbers of its agents."""

    uuid: str
    agents: tuple[int, ...]


class Load(NamedTuple):
    """Numbers of simulated agents, of watches of other networks in one bucket, and of changes in each round."""

    agents: int
    crowd: int
    changes: int


class Round(NamedTuple):
    """By change: processor seconds of the server, watches compared, deliveries. And all watches and latencies."""

    processor: float
    watches: int
    compared: float
    deliveries: float
    times: list[float]


class Rounds(NamedTuple):
    """Without watches, with those of one bucket that receive nothing, and by the size of networks."""

    idle: Round
    comparisons: Round
    by_size: dict[int, Round]


LOAD, QUICK_LOAD = Load(agents=250, crowd=2000, changes=1000), Load(agents=20, crowd=100, changes=40)


class Agents:
    """Simulated agents; they record when they received which version of a slice."""

    def __init__(self, client: KubeClient) -> None:
        self.client = client
        self.received: dict[str, list[float]] = defaultdict(list)  # by resourceVersion
        self.deliveries = 0
        self.watching = 0
        self._starts = asyncio.Semaphore(_STARTS)

    async def follow(self, selector: Selector, *, since: str) -> None:
        """Watches slices, after a resourceVersion, until it is cancelled."""
        is_first = True
        while True:  # a busy server closes watches whose readers fall behind
            async with contextlib.AsyncExitStack() as stack:
                async with self._starts:
                    watch = self.client.watch(NETWORK_SLICES, selector, since=since, seconds=3600)
                    events = await stack.enter_async_context(watch)
                self.watching += is_first
                is_first = False
                async for event in events:
                    since = event.metadata.resource_version
                    if event.type is WatchType.MODIFIED:
                        self.deliveries += 1
                        self.received[since].append(time.perf_counter())


def measure_watches(*, quick: bool) -> dict[str, Any]:
    """Measures the server, which is built if the environment names no binaries."""
    with built_apiserver() as server:
        return asyncio.run(_measure(server, QUICK_LOAD if quick else LOAD))


async def _measure(server: ApiServer, load: Load) -> dict[str, Any]:
    configuration = await load_client_config(kubeconfig=str(server.kubeconfig()))
    async with connect(configuration, deadline=120) as client:
        await ensure_crds(client)
        await client.list_all(NETWORK_SLICES)  # retried while the server initializes the storage of the new kind
        for bucket in NETWORK_BUCKETS:
            await client.create(NAMESPACES, bucket_namespace(bucket))
        crowded = list(_networks_of_bucket(NETWORK_BUCKETS[0], _CHANGED))
        others = [_selector(NETWORK_BUCKETS[0], [str(uuid.uuid4())]) for _ in range(load.crowd)]
        await _round(server, client, load, crowded, [])  # warm-up: the first round costs more
        idle = await _round(server, client, load, crowded, [])
        comparisons = await _round(server, client, load, crowded, others)
        rounds = {}
        for size in SIZES:
            networks = list(_networks(load.agents, size))
            changed = random.Random(0).sample(networks, min(_CHANGED, len(networks)))
            rounds[size] = await _round(server, client, load, changed, list(_selectors(networks)))
    return _report(Rounds(idle, comparisons, rounds), load)


async def _round(
    server: ApiServer, client: KubeClient, load: Load, changed: list[Network], selectors: list[Selector]
) -> Round:
    """Changes slices of these networks at the fixed rate while there are these watches."""
    for network in changed:
        item = network_slice_object(_slice(network, 0))
        await client.create(NETWORK_SLICES, item, namespace=item.metadata.namespace)
    async with _following(client, selectors) as watchers:
        worked = processor_seconds(server.pid)
        started = await _change(client, changed, load.changes)
        expected = sum(len(changed[number % len(changed)].agents) for number in range(load.changes))
        await _until(lambda: watchers.deliveries >= expected)
        await asyncio.sleep(_QUIET_TIME)
        processor = processor_seconds(server.pid) - worked
    for network in changed:
        name = network_slice_name(network.uuid, _NODE)
        await client.delete(NETWORK_SLICES, name, namespace=network_bucket(network.uuid))
    in_bucket = Counter(selector.namespace for selector in selectors)
    compared = mean(in_bucket[network_bucket(network.uuid)] for network in changed)
    times = [at - since for version, since in started.items() for at in watchers.received[version]]
    return Round(processor / load.changes, len(selectors), compared, expected / load.changes, times)


def _networks_of_bucket(bucket: str, count: int) -> Iterator[Network]:
    """Yields networks without agents that are in one bucket."""
    names = (("default-domain", "bench", f"crowded-{number}") for number in itertools.count())
    uuids = (identity for identity in map(network_uuid, names) if network_bucket(identity) == bucket)
    return (Network(identity, ()) for identity in itertools.islice(uuids, count))


def _networks(agents: int, size: int) -> Iterator[Network]:
    """Yields networks: each agent is in the same number of them, with others each time."""
    numbers = list(range(agents))
    for turn in range(NETWORKS_OF_AGENT):
        random.Random(turn).shuffle(numbers)
        for start in range(0, agents, size):
            identity = network_uuid(("default-domain", "bench", f"{size}-{turn}-{start}"))
            yield Network(identity, tuple(numbers[start : start + size]))


def _selectors(networks: list[Network]) -> Iterator[Selector]:
    """Yields those of all watches of all agents."""
    watched = defaultdict[tuple[int, str], list[str]](list)
    for network in networks:
        for agent in network.agents:
            watched[agent, network_bucket(network.uuid)].append(network.uuid)
    for (_, bucket), uuids in watched.items():
        yield _selector(bucket, uuids)


def _selector(bucket: str, uuids: list[str]) -> Selector:
    """As that of an agent for the networks in a bucket."""
    return Selector(namespace=bucket, labels=f"{NETWORK_LABEL} in ({','.join(sorted(uuids))})")


def _slice(network: Network, change: int) -> NetworkSlice:
    """The slice of the network on one node, with other endpoints after each change."""
    numbers = range(change, change + _ENDPOINTS)
    endpoints = tuple(
        Endpoint(f"02:00:00:00:{at >> 8:02x}:{at & 255:02x}", (f"10.7.{at >> 8}.{at & 255}",)).text for at in numbers
    )
    return NetworkSlice(network.uuid, _NODE, _NAME, 5, tunnel=("192.0.2.1",), endpoints=endpoints)


async def _change(client: KubeClient, networks: list[Network], changes: int) -> dict[str, float]:
    """Changes the slices in turn; returns when each change began, by resourceVersion."""
    begin, writes, started = time.perf_counter(), asyncio.Semaphore(_WRITES), dict[str, float]()

    async def change(number: int) -> None:
        await asyncio.sleep(begin + number / RATE - time.perf_counter())
        item = network_slice_object(_slice(networks[number % len(networks)], number + 1))
        patch = {"spec": msgspec.to_builtins(item.spec), "status": msgspec.to_builtins(item.status)}
        async with writes:
            now = time.perf_counter()
            written = await client.patch(NETWORK_SLICES, item.metadata.name, patch, namespace=item.metadata.namespace)
        started[written.metadata.resource_version] = now

    await asyncio.gather(*map(change, range(changes)))
    return started


@contextlib.asynccontextmanager
async def _following(client: KubeClient, selectors: list[Selector]) -> AsyncIterator[Agents]:
    async with contextlib.aclosing(client.pages(NETWORK_SLICES, length=1)) as pages:
        since = (await anext(pages)).resource_version
    watchers = Agents(client)
    async with asyncio.TaskGroup() as group:  # an agent that fails ends the benchmark
        tasks = [group.create_task(watchers.follow(selector, since=since)) for selector in selectors]
        await _until(lambda: watchers.watching >= len(selectors))
        await asyncio.sleep(_QUIET_TIME)
        yield watchers
        for task in tasks:
            task.cancel()


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(_DEADLINE):
        while not holds():  # noqa: ASYNC110 - many tasks count
            await asyncio.sleep(0.05)


def _report(measured: Rounds, load: Load) -> dict[str, Any]:
    idle, large = measured.idle.processor, measured.by_size[max(SIZES)]
    comparison = (measured.comparisons.processor - idle) / measured.comparisons.compared
    delivery = (large.processor - idle - large.compared * comparison) / large.deliveries
    compared = measured.by_size[min(SIZES)].compared * CLUSTER_AGENTS / load.agents
    return {
        "without watches": {"ms_per_change": round(idle * 1000, 2)},
        **{f"{load.agents} agents, networks of {size}": _of(each, idle) for size, each in measured.by_size.items()},
        "one comparison": {"us": round(comparison * 1e6, 2)},
        "one delivery": {"us": round(delivery * 1e6, 1)},
        f"{CLUSTER_AGENTS} agents, {CLUSTER_RATE} changes/s, comparisons": {
            "cores": round(CLUSTER_RATE * compared * comparison, 2),
            "designed": MATCHING_CORES,
        },
        **{
            f"the same, deliveries in networks of {size}": {
                "deliveries_per_s": CLUSTER_RATE * size,
                "cores": round(CLUSTER_RATE * size * delivery, 2),
                "designed": designed,
            }
            for size, designed in CLUSTERS.items()
        },
    }


def _of(measured: Round, idle: float) -> dict[str, Any]:
    return {
        "watches": measured.watches,
        "ms_per_change": round((measured.processor - idle) * 1000, 2),
        "deliveries_per_s": round(measured.deliveries * RATE),
        **summary(measured.times),
    }

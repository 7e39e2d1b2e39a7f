"""Benchmark of pods beside a tenant's NADs: what other pods wait for while networks are created, or one is changed.

The processes are those of `latency`. Pods of one namespace are bound at a fixed rate, first alone, then while another
namespace gets many NADs as fast as the server takes them, then while a label of one NAD changes all the time, and
last while NADs with long lists are created.
"""

import asyncio
import functools
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from contrail_config.kube.client import KubeClient, connect
from contrail_config.kube.configuration.load import load_client_config
from contrail_config.kubernetes.kinds import VIRTUAL_NETWORKS
from manager.kubernetes.wire import NADS
from manager.parsing.nad_network import CIDR_KEY, EXCLUDE_KEY
from tests.bench.agent_vm_cfg import Connect, get
from tests.bench.built_apiserver import built_apiserver
from tests.bench.process_timing import summary
from tests.e2e.kubernetes.namespace_objects import NamespaceObjects
from tests.support.cluster_processes import AgentProcess, ManagerProcess, running
from tests.support.pods import OWN_CONFIG

RATE = 20  # pods per second
SECONDS = 10.0
QUICK_SECONDS = 0.5
NADS_CREATED = 650
QUICK_NADS = 20
CHANGES = 55  # of a label, per second
LONG_NADS = 60
QUICK_LONG_NADS = 4
LONG_LIST = 1000
NODE = "bench-node"
_CALLS = 16  # NADs that are created at the same time
_DEADLINE = 120.0


class Tenants(NamedTuple):
    """The agent, the namespace whose pods are measured, and the one whose NADs come and change."""

    agent: AgentProcess
    measured: NamespaceObjects
    other: NamespaceObjects


def main(*, quick: bool = False) -> dict[str, Any]:
    """Builds the server if the environment names no binaries, runs the benchmark and returns the results."""
    with built_apiserver() as server, tempfile.TemporaryDirectory() as temporary:
        work, kubeconfig = Path(temporary), server.kubeconfig()
        server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
        agent = AgentProcess(work, kubeconfig, node=NODE)
        manager = ManagerProcess(work, kubeconfig)
        with running(manager, agent):
            manager.wait_until_it_leads()
            return asyncio.run(_measure(kubeconfig, agent, quick=quick))


async def _measure(kubeconfig: Path, agent: AgentProcess, *, quick: bool) -> dict[str, Any]:
    pods = int(RATE * (QUICK_SECONDS if quick else SECONDS))
    async with connect(await load_client_config(kubeconfig=str(kubeconfig))) as client:
        tenants = Tenants(agent, NamespaceObjects(client, "default"), NamespaceObjects(client, "other"))
        await tenants.measured.add_nad("own", cidr="10.64.0.0/14")
        await tenants.other.add_nad("changing", cidr="10.1.0.0/24")
        await _round(tenants, "warm", pods)
        alone = await _round(tenants, "alone", pods)
        creation = asyncio.create_task(_create(tenants.other, QUICK_NADS if quick else NADS_CREATED))
        beside = await _round(tenants, "beside", pods)
        created = await creation
        async with _meanwhile(_change_label(client)):
            changing = await _round(tenants, "changing", pods)
        async with _meanwhile(_create_long(tenants.other, QUICK_LONG_NADS if quick else LONG_NADS)):
            beside_long = await _round(tenants, "long", pods)
    return {
        f"bound to served, {RATE} pods/s, alone": summary(alone),
        f"beside {QUICK_NADS if quick else NADS_CREATED} new NADs": summary(beside) | {"all_networks_s": created},
        f"beside {CHANGES} label changes/s of one NAD": summary(changing),
        f"beside {QUICK_LONG_NADS if quick else LONG_NADS} NADs of {LONG_LIST} subnets": summary(beside_long),
    }


async def _round(tenants: Tenants, name: str, pods: int) -> list[float]:
    """Seconds of each pod, of which every second one has the namespace's own NAD."""
    names = [f"{name}-{number}" for number in range(pods)]
    for number, pod in enumerate(names):
        await tenants.measured.add_pod(pod, networks="own" if number % 2 else "")
    begin = time.perf_counter() + 0.1
    ask: Connect = functools.partial(asyncio.open_unix_connection, str(tenants.agent.socket))

    async def bind(number: int) -> float:
        await asyncio.sleep(begin + number / RATE - time.perf_counter())
        await tenants.measured.bind(names[number], NODE)
        started = time.perf_counter()
        await get(ask, f"/vm-cfg/k8s__default__{names[number]}?wait=60")
        return time.perf_counter() - started

    return list(await asyncio.gather(*map(bind, range(pods))))


async def _create(tenant: NamespaceObjects, count: int) -> float:
    """Creates NADs and returns the seconds until the last one has its network."""
    began, calls = time.perf_counter(), asyncio.Semaphore(_CALLS)

    async def create(number: int) -> None:
        async with calls:
            await tenant.add_nad(f"flood-{number}", cidr=f"10.{2 + number // 250}.{number % 250}.0/24")

    await asyncio.gather(*map(create, range(count)))
    async with asyncio.timeout(_DEADLINE):
        while len(await tenant.client.list_all(VIRTUAL_NETWORKS)) < count + 3:  # noqa: ASYNC110 - the server is polled
            await asyncio.sleep(0.5)
    return round(time.perf_counter() - began, 1)


async def _create_long(tenant: NamespaceObjects, count: int) -> None:
    numbers = [f"{number // 250}.{number % 250}" for number in range(LONG_LIST)]
    lists = {
        CIDR_KEY: ",".join(f"10.{number}.0/24" for number in numbers),
        EXCLUDE_KEY: ",".join(f"10.{number}.7" for number in numbers),
    }
    for number in range(count):
        body = {"metadata": {"name": f"long-{number}", "annotations": lists}, "spec": {"config": OWN_CONFIG}}
        await tenant.client.create(NADS, body, namespace=tenant.namespace)


async def _change_label(client: KubeClient) -> None:
    number = 0
    while True:
        number += 1
        patch = {"metadata": {"labels": {"number": str(number)}}}
        await asyncio.gather(asyncio.sleep(1 / CHANGES), client.patch(NADS, "changing", patch, namespace="other"))


@asynccontextmanager
async def _meanwhile(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()  # raises what it failed with

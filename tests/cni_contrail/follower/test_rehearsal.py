"""A follower rehearses when it learns that the datapath is the kernel's, until no module is missing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agent_api.datapath.desired_state import DatapathOptions
from agent_api.datapath.kind import Datapath
from cni_contrail.agent.http import Endpoint
from cni_contrail.datapath.desired import Masquerade
from cni_contrail.datapath.node_reconciler import NodeReconciler
from cni_contrail.follower.follower import Follower
from cni_contrail.follower.rehearsal import named_modules
from cni_contrail.log import Log
from contrail_config.embedded.store import SqliteStore
from tests.support.node_networks import NodeNetworks
from tests.support.served_agent import ServedAgent, serve_agent

MISSING = "kernel module bridge is missing: create bridge: Operation not supported"


class Kernel:
    """Lacks a module until it is loaded; `tried` has the masquerade of each rehearsal."""

    def __init__(self) -> None:
        self.problem = MISSING
        self.tried: list[Masquerade | None] = []

    def rehearse(self, masquerade: Masquerade | None) -> str:
        self.tried.append(masquerade)
        return self.problem


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def follower_of(served: ServedAgent, networks: NodeNetworks, kernel: Kernel) -> Follower:
    endpoint, reconciler = Endpoint(str(served.socket), "", 0), NodeReconciler(networks.namespaces)
    return Follower(endpoint, reconciler, Log(), rehearse=kernel.rehearse, audit_interval=0.05)


async def readyz(served: ServedAgent) -> tuple[int, Any]:
    async with served.unix.get("/readyz") as answer:
        return answer.status, (await answer.json())["reasons"]


async def follow(follower: Follower, rounds: int = 1) -> None:
    for _ in range(rounds):
        await asyncio.to_thread(follower.follow_once)


async def test_a_missing_module_makes_the_agent_unready_before_the_first_pod_until_it_is_loaded(
    served: ServedAgent, networks: NodeNetworks, kernel: Kernel
) -> None:
    follower = follower_of(served, networks, kernel)
    await follow(follower)
    assert await readyz(served) == (503, [f"datapath: index 0: {MISSING}"])
    assert served.agent.missing_modules() == ("bridge",)
    kernel.problem = ""
    await follow(follower, rounds=3)
    assert await readyz(served) == (200, [])
    assert served.agent.missing_modules() == ()
    assert len(kernel.tried) == 2, "not again after it succeeded"


async def test_what_index_0_needs_depends_on_its_masquerade(
    store: SqliteStore, tmp_path: Path, networks: NodeNetworks, kernel: Kernel
) -> None:
    options = DatapathOptions(masquerade=None)
    async with serve_agent(store, tmp_path, datapath=Datapath.LINUX, options=options) as served:
        await follow(follower_of(served, networks, kernel))
    assert kernel.tried == [None]


async def test_without_a_linux_datapath_no_module_is_needed(
    store: SqliteStore, tmp_path: Path, networks: NodeNetworks, kernel: Kernel
) -> None:
    async with serve_agent(store, tmp_path, datapath=Datapath.NONE) as served:
        await follow(follower_of(served, networks, kernel))
    assert kernel.tried == []


def test_modules_are_named_once() -> None:
    vxlan = "kernel module vxlan is missing: create tunnel: Operation not supported"
    assert named_modules([f"{MISSING}; no route", vxlan, MISSING, "no bridge"]) == ["bridge", "vxlan"]

"""Calls leak no resources of the daemon; the benchmark repeats this with ten thousand calls."""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cni_contrail.conftest import until
from tests.support.plugin import Plugin, PodSandbox
from tests.support.plugin_callers import ShimAndDaemon
from tests.support.scripted_agents import ScriptedAgent, ServePod

pytestmark = pytest.mark.machine

PAIRS = 100
WARM = 30
LARGEST_GROWTH = 1024  # KiB, for what the allocator has not settled yet


class Size(NamedTuple):
    descriptors: int
    threads: int
    memory: int


def size(process: int) -> Size:
    status = Path(f"/proc/{process}/status").read_text()
    return Size(
        descriptors=len(os.listdir(f"/proc/{process}/fd")),
        threads=len(os.listdir(f"/proc/{process}/task")),
        memory=int(status.split("VmRSS:")[1].split()[0]),
    )


def test_calls_leak_no_descriptors_threads_or_memory(
    agent: ScriptedAgent, plugin: Plugin, pod: PodSandbox, serve_pod: ServePod, caller: ShimAndDaemon
) -> None:
    serve_pod(agent, 2)

    def attach_and_detach(times: int) -> None:
        for _ in range(times):
            plugin.add(pod).succeeded()
            plugin.delete(pod).succeeded()

    attach_and_detach(WARM)
    process = caller.pid
    before = size(process)
    attach_and_detach(PAIRS)
    until(lambda: size(process).descriptors <= before.descriptors)
    after = size(process)
    assert after.threads <= before.threads + 1
    assert after.memory - before.memory < LARGEST_GROWTH
    assert after.memory < 60 * 1024
